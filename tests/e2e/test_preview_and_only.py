"""`plan rollback --dry-run` and `--only`, through the command on real sandboxes."""

import os
import sqlite3
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.support.agents import Answer
from tests.support.refusals import refused
from tests.support.terminals import asking
from tests.support.trees import Tree, tree_of
from tests.support.world import CODE, PlanHandle, World, shell, write


@pytest.fixture
def plan(world: World) -> PlanHandle:
    return world.run(
        write("one.txt", "one\n", "one"),
        shell("mkdir -p a/b; echo x > a/b/x; echo y > a/y; ln -s y a/l; chmod 640 run.sh", "two"),
        shell("rm -r README.md a; echo two > one.txt; echo n > new; echo 3 > src/app.py", "three"),
    )


def look(plan: PlanHandle, wanted: str, *only: str) -> Mapping[str, Any]:
    return ask(plan, wanted, "--dry-run", *only).ok().data


def ask(plan: PlanHandle, wanted: str, flag: str, *only: str) -> Answer:
    chosen = [word for path in only for word in ("--only", path)]
    return plan.agents("plan", "rollback", flag, *chosen, plan.id, wanted)


def changes(data: Mapping[str, Any]) -> dict[str, str]:
    return {item["file"]: item["action"] for item in data["changes_reverted"]}


# --- looking ahead ------------------------------------------------------------------------------


@pytest.mark.parametrize("wanted", ["start", "after file.write one.txt", "after shell two"])
def test_a_dry_run_changes_nothing_and_tells_exactly_what_would_happen(
    world: World, plan: PlanHandle, wanted: str
) -> None:
    # Also what nobody has captured yet, such as a person's own edits.
    (plan.sandbox / "edited by hand").write_text("x")
    user, files, records = world.project.fingerprint(), plan.tree(), world.records()

    foretold = look(plan, wanted)

    assert (world.project.fingerprint(), plan.tree(), world.records()) == (user, files, records)
    assert foretold["dry_run"] is True
    assert changes(foretold)["edited by hand"] == "removed"
    done = plan.rollback(wanted).ok().data
    assert {**done, "dry_run": True} == foretold


def test_a_dry_run_of_a_damaged_or_unknown_checkpoint_is_refused_as_the_rollback_is(
    world: World, plan: PlanHandle
) -> None:
    refused(ask(plan, "nothing", "--dry-run"), "checkpoint-not-found")
    with sqlite3.connect(world.agents.data_dir / "snapshots" / f"{plan.id}.db") as database:
        database.execute("UPDATE contents SET data=x'00' WHERE data IS NOT NULL")
    refused(ask(plan, "after shell two", "--dry-run"), "snapshot-damaged")
    plan("cancel").ok()
    refused(ask(plan, "start", "--dry-run"), "plan-cancelled")


def test_effects_that_stay_are_told_before(world: World) -> None:
    tools = {"mail": {"command": ["touch", "sent"], "side_effects": ["a mail to the boss"]}}
    plan = world.run({"name": "m", "tool": "mail"}, tools=tools)
    answer = ask(plan, "start", "--dry-run").ok()
    assert answer.envelope["status"] == "warn"
    assert any("a mail to the boss" in text for text in answer.envelope["messages"])


def test_the_question_comes_with_what_would_change(world: World, plan: PlanHandle) -> None:
    with asking(world, "plan", "rollback", plan.id, "start") as (process, terminal):
        os.write(terminal, b"n\n")
        out, _ = process.communicate(timeout=60)
        shown = os.read(terminal, 100_000).decode()
    assert process.returncode == 1
    assert "declined" in out.decode()
    for text in ("README.md", "restored", "one.txt", "removed", "3 decisions", "3 tool calls"):
        assert text in shown, shown


# --- single files -------------------------------------------------------------------------------


def part(tree: Tree, *paths: str) -> dict[bytes, object]:
    wanted = [os.fsencode(path) for path in paths]
    return {
        path: entry
        for path, entry in tree.items()
        if any(path == one or path.startswith(one + b"/") for one in wanted)
    }


def test_only_what_is_named_comes_back_as_it_was(world: World, plan: PlanHandle) -> None:
    at_two = world.replay(
        [
            "echo one > one.txt",
            "mkdir -p a/b; echo x > a/b/x; echo y > a/y; ln -s y a/l; chmod 640 run.sh",
        ]
    )[-1]
    before = plan.tree()
    user, status = world.project.fingerprint(), plan.status
    foretold = look(plan, "after shell two", "a/b", "one.txt", "README.md", "new")

    answer = ask(plan, "after shell two", "--yes", "a/b", "one.txt", "README.md", "new").ok()

    assert changes(answer.data) == {
        "README.md": "restored",
        "a/b/x": "restored",
        "new": "removed",
        "one.txt": "restored",
    }
    assert {**answer.data, "dry_run": True} == foretold
    after = plan.tree()
    chosen = part(at_two, "a/b", "one.txt", "README.md", "a")
    chosen = {key: chosen[key] for key in chosen if key not in (b"a/y", b"a/l")}
    expected = {**before, **chosen}
    del expected[b"new"]
    assert after == expected
    assert world.project.fingerprint() == user
    now = plan.status
    assert (now["state"], now["last_completed_step"]) == ("complete", 2)
    assert now["last_checkpoint_id"] == plan.groups[-1].head != status["last_checkpoint_id"]
    assert now["execution"]["tool_calls"] == status["execution"]["tool_calls"]
    plan("checkpoint", "verify").ok()


def test_it_is_undone_as_its_last_line_says_and_applied_like_everything_else(
    world: World, plan: PlanHandle
) -> None:
    before = plan.tree()
    answer = ask(plan, "start", "--yes", "src").ok()
    assert (plan.sandbox / "src/app.py").read_text() == world.project.read("src/app.py")
    undo = answer.envelope["messages"][-1].rsplit(" ", 1)[1]

    plan.rollback(undo).ok()
    assert plan.tree() == before
    plan.execute().ok()
    ask(plan, "start", "--yes", "README.md").ok()
    plan("apply", "--yes").ok()

    assert (world.project.path / "README.md").exists()
    assert world.project.read("src/app.py") == "3\n"


def test_a_plan_that_failed_goes_on_with_the_file_that_came_back(world: World) -> None:
    plan = world.use(
        write("config", "good", "one"),
        write("config", "bad", "two"),
        shell("echo half > half; grep good config", "three"),
    )
    assert plan.execute().code == 1

    answer = ask(plan, "after file.write config", "--yes", "config")
    refused(answer, "checkpoint-ambiguous")
    group = next(g for g in plan.groups if g.label == "after file.write config")
    ask(plan, group.group_id, "--yes", "config").ok()

    assert plan.status["state"] == "queued"
    assert not (plan.sandbox / "half").exists()
    plan("resume").ok()
    assert (plan.sandbox / "config").read_text() == "good"


def test_unknown_paths_are_refused_with_what_was_probably_meant(
    world: World, plan: PlanHandle
) -> None:
    files, records = plan.tree(), world.records()
    said = refused(ask(plan, "start", "--yes", "src/ap.py"), "path-not-found")
    assert "did you mean `src/app.py`" in said
    assert "src/app.py" in refused(ask(plan, "start", "--yes", "app.py"), "path-not-found")
    refused(ask(plan, "start", "--yes", "one.txt", "zzzzz"), "path-not-found")
    refused(ask(plan, "start", "--yes", "../elsewhere"), "path-outside-sandbox")
    refused(ask(plan, "start", "--yes", "/etc/passwd"), "path-outside-sandbox")
    assert (plan.tree(), world.records()) == (files, records)


def test_a_link_in_the_way_is_replaced_and_not_followed(world: World) -> None:
    outside = world.top / "outside"
    outside.mkdir()
    (outside / "f").write_text("theirs")
    plan = world.run(
        shell("mkdir d; echo 1 > d/f; echo 2 > d/g", "one"),
        shell(f"rm -r d; ln -s {outside} d", "two"),
    )

    ask(plan, "after shell one", "--yes", "d/f").ok()

    assert (outside / "f").read_text() == "theirs"
    assert not (plan.sandbox / "d").is_symlink()
    assert [path.name for path in (plan.sandbox / "d").iterdir()] == ["f"]


def test_damage_to_another_file_does_not_keep_a_file_from_coming_back(
    world: World, plan: PlanHandle
) -> None:
    file = world.agents.data_dir / "snapshots" / f"{plan.id}.db"
    with sqlite3.connect(file) as database:
        assert database.execute("UPDATE contents SET data=x'00' WHERE size=2").rowcount
    refused(plan.rollback("after shell two"), "snapshot-damaged")
    ask(plan, "after shell two", "--yes", "README.md").ok()
    assert (plan.sandbox / "README.md").exists()


# --- several resources --------------------------------------------------------------------------


@pytest.fixture
def three(world: World) -> PlanHandle:
    assets, database = world.top / "assets", world.top / "app.db"
    assets.mkdir()
    (assets / "logo").write_text("old")
    with sqlite3.connect(database) as connection:
        connection.execute("create table t (x)")
    resources = {
        **CODE,
        "assets": {"type": "fs-directory", "path": str(assets)},
        "db": {"type": "sqlite", "path": str(database)},
    }
    return world.run(
        {
            "name": "sql",
            "tool": "sql.execute",
            "with": {"resource": "db", "sql": "insert into t values (1)"},
        },
        {
            "name": "logo",
            "tool": "file.write",
            "with": {"resource": "assets", "path": "logo", "content": "new"},
        },
        write("logo", "code's own"),
        resources=resources,
    )


def place(plan: PlanHandle, name: str) -> Path:
    found = {item["resource"]: item["path"] for item in plan.status["sandboxes"]}
    return Path(found[name])


def rows(plan: PlanHandle) -> int:
    with sqlite3.connect(place(plan, "db")) as connection:
        return connection.execute("select count(*) from t").fetchone()[0]


def test_with_several_resources_each_file_says_whose_it_is(three: PlanHandle) -> None:
    said = refused(ask(three, "start", "--yes", "logo"), "usage", exit_code=2)
    assert "assets:logo" in said

    assert changes(look(three, "start", "assets:logo")) == {"assets:logo": "restored"}
    ask(three, "start", "--yes", "assets:logo").ok()

    assert (place(three, "assets") / "logo").read_text() == "old"
    assert (place(three, "code") / "logo").read_text() == "code's own"
    assert rows(three) == 1


def test_a_database_comes_back_whole(three: PlanHandle) -> None:
    code = tree_of(place(three, "code"))
    assert changes(look(three, "start", "db")) == {"db:app.db": "restored"}
    foretold = look(three, "start")
    assert changes(foretold)["db:app.db"] == "restored"

    answer = ask(three, "start", "--yes", "db").ok()

    assert changes(answer.data) == {"db:app.db": "restored"}
    assert rows(three) == 0
    assert tree_of(place(three, "code")) == code
    assert changes(look(three, "start", "db:app.db")) == {}
    three.rollback(answer.envelope["messages"][-1].rsplit(" ", 1)[1]).ok()
    assert rows(three) == 1


def test_a_database_that_is_gone_or_is_in_use_is_foretold(three: PlanHandle) -> None:
    file = place(three, "db")
    with sqlite3.connect(file) as connection:
        connection.execute("pragma journal_mode=wal")
        connection.execute("insert into t values (2)")
        connection.commit()
        assert changes(look(three, "start", "db")) == {"db:app.db": "restored"}
    file.unlink()
    assert changes(look(three, "start", "db")) == {"db:app.db": "restored"}
    file.symlink_to("elsewhere")
    assert changes(look(three, "start", "db")) == {"db:app.db": "restored"}
