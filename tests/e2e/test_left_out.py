"""What an apply leaves out is told: by `plan diff`, before the question, and by its result."""

import os

from tests.support.agents import Answer
from tests.support.terminals import asked, asking
from tests.support.world import World, shell

MAKE = shell(
    "mkdir -p hollow/inner with && touch with/file && echo x > kept.log"
    " && rm -r docs 2>/dev/null; git mv README.md with/README.md; rm src/*; true"
)


def left_out(answer: Answer) -> dict[str, str]:
    return {row["path"]: row["reason"] for row in answer.data["left_out"]}


def told(answer: Answer) -> str:
    return "\n".join(answer.envelope["messages"])


def test_empty_folders_and_ignored_files_are_told_everywhere(world: World) -> None:
    plan = world.run(MAKE)
    expected = {
        "kept.log": "ignored or excluded",
        "hollow/": "an empty folder",
        "src/": "an empty folder",
    }

    shown = plan("diff").ok()
    assert left_out(shown) == expected
    assert "git keeps no empty folders" in told(shown) and "hollow/, src/" in told(shown)

    with asking(world, "plan", "apply", plan.id) as (process, terminal):
        question = asked(terminal, b"]:").decode()
        os.write(terminal, b"n\n")
        process.communicate(timeout=60)
    assert "git keeps no empty folders" in question.replace("\r\n", " ")
    assert "kept.log" in question

    done = world.agents("plan", "apply", "--yes", plan.id).ok()
    assert left_out(done) == expected
    assert "hollow/, src/" in told(done) and "kept.log" in told(done)
    assert not (world.project.path / "hollow").exists()


def test_a_folder_with_files_of_any_kind_is_not_empty(world: World) -> None:
    plan = world.run(shell("mkdir a b && touch a/file && echo x > b/kept.log && ln -s a other"))
    found = left_out(plan("diff").ok())
    assert found["b/kept.log"] == "ignored or excluded"
    assert "an empty folder" not in found.values()


def test_an_empty_folder_keeps_no_sandbox(world: World) -> None:
    plan = world.run(shell("mkdir empty; echo x > new.txt"))
    done = world.agents("plan", "apply", "--yes", plan.id).ok()
    assert (left_out(done), done.data["sandboxes_kept"]) == ({"empty/": "an empty folder"}, {})


def test_a_plain_folder_keeps_empty_folders_and_tells_what_is_excluded(world: World) -> None:
    (world.top / "assets").mkdir()
    assets = {"type": "fs-directory", "path": str(world.top / "assets"), "exclude": ["cache"]}
    plan = world.run(shell("mkdir empty cache; touch cache/x"), resources={"code": assets})
    assert left_out(plan("diff").ok()) == {"cache": "ignored or excluded"}
    world.agents("plan", "apply", "--yes", plan.id).ok()
    assert (world.top / "assets" / "empty").is_dir()


def test_many_are_counted_for_people_and_all_in_the_data(world: World) -> None:
    plan = world.run(shell("for n in $(seq 30); do mkdir empty$n; done"))
    answer = plan("diff").ok()
    assert len(left_out(answer)) == 30
    assert "and 20 more" in told(answer)
