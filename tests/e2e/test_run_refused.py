"""What `agents run` refuses, in words that say what to type instead; nothing was made then."""

import os
import subprocess
from pathlib import Path

import pytest
from tests.support.agents import COMMAND, Answer
from tests.support.world import World


def run(world: World, *words: str, at: Path | None = None) -> Answer:
    agents = world.agents if at is None else world.agents.at(at)
    return agents.process("--format", "json", "run", *words)


def no_plans(world: World) -> bool:
    return world.agents("plan", "list").ok().data["plans"] == []


@pytest.mark.parametrize("place", ["home", "top", "above home", "data"])
def test_a_place_that_is_no_project_is_refused(world: World, place: str) -> None:
    inside = world.agents.data_dir / "snapshots"
    inside.mkdir(parents=True, exist_ok=True)
    for folder in (world.agents.data_dir, inside):
        folder.chmod(0o700)
    places = {"home": world.home, "top": Path("/"), "above home": world.top, "data": inside}

    refused = run(world, "--", "true", at=places[place])

    assert refused.code == 1
    assert refused.error["code"] == "place-refused"
    assert str(places[place]) in refused.error["message"]
    assert "--resource code=" in refused.error["hint"]
    assert no_plans(world)


def test_a_program_that_is_not_there_is_named_with_one_that_is(world: World) -> None:
    refused = run(world, "--", "pyhton3", "-V")

    assert refused.error["code"] == "program-not-found"
    assert "`pyhton3`" in refused.error["message"]
    assert "did you mean `python3" in refused.error["message"]
    assert no_plans(world)


def test_an_agent_that_is_not_installed_is_named(world: World) -> None:
    agents = world.agents.having(PATH="/usr/bin:/bin")
    refused = agents.process("--format", "json", "run", "--", "gemini")

    assert refused.error["code"] == "program-not-found"
    assert "`gemini`" in refused.error["message"]


@pytest.mark.parametrize("url", ["postgresql://me:secret@db/x", "postgres://db/x"])
def test_postgres_is_refused_with_the_truth(world: World, url: str) -> None:
    for words in (("--db", url), ("--resource", f"db={url}")):
        refused = run(world, *words, "--", "true")

        assert refused.error["code"] == "resource-unusable"
        assert "cannot be worked on yet" in refused.error["message"]
        assert "secret" not in refused.out


def test_a_task_without_an_agent_says_what_to_type(world: World) -> None:
    refused = run(world, "fix the rounding")

    assert refused.code == 2
    assert refused.error["code"] == "nothing-to-run"
    assert "agents config set run.agent" in refused.error["hint"]


def test_nothing_at_all_says_what_to_type(world: World) -> None:
    for words in ((), ("--",)):
        refused = run(world, *words)
        assert refused.code == 2
        assert refused.error["code"] == "nothing-to-run"
        assert "agents run -- " in refused.error["hint"]


def test_a_command_without_the_dashes_says_where_they_belong(world: World) -> None:
    refused = run(world, "ls", "docs")

    assert refused.code == 2
    assert "agents run -- COMMAND" in refused.error["message"]


def test_an_agent_that_nobody_knows_is_refused(world: World) -> None:
    refused = run(world, "--agent", "cladue", "--", "true")

    assert refused.code == 2
    assert "did you mean `claude`?" in refused.error["message"]


@pytest.mark.parametrize("words", [("--yes", "--keep"), ("--yes", "--apply-if", "true")])
def test_ends_that_exclude_each_other_are_refused(world: World, words: tuple[str, ...]) -> None:
    refused = run(world, *words, "--", "true")

    assert refused.code == 2
    assert "exclude each other" in refused.error["message"]


def test_a_resource_that_is_none_is_refused(world: World) -> None:
    assert run(world, "--resource", "docs", "--", "true").code == 2
    missing = run(world, "--db", "nowhere.db", "--", "true")
    assert missing.code == 1
    assert "nowhere.db" in missing.error["message"]
    assert no_plans(world)


def test_a_path_with_spaces_works_and_one_that_is_no_text_is_refused(world: World) -> None:
    spaced = world.top / "with some spaces"
    world.project.path.rename(spaced)
    done = run(world, "--yes", "--", "sh", "-c", "echo 1 > 'a b'", at=spaced)
    assert done.ok().data["applied"]
    assert (spaced / "a b").exists()

    odd = world.top / os.fsdecode(b"n\xff")
    spaced.rename(odd)
    refused = subprocess.run(
        [COMMAND, "run", "--", "true"], cwd=odd, env=world.agents.environ, capture_output=True
    )
    assert refused.returncode == 1
    assert b"not UTF-8" in refused.stderr


def test_file_names_that_are_no_text_are_fine(world: World) -> None:
    done = run(world, "--yes", "--", "sh", "-c", "printf x > \"$(printf 'n\\377')\"")

    assert done.ok().data["applied"]
    assert (world.project.path / os.fsdecode(b"n\xff")).read_text() == "x"


def test_a_program_that_takes_too_long_is_ended(world: World) -> None:
    refused = run(world, "--timeout", "2", "--", "sh", "-c", "echo 1 > a; sleep 60")

    assert refused.code == 1
    assert refused.data["state"] == "errored"
    assert refused.data["exit_code"] is None
    assert "2" in refused.error["message"]
