"""Correcting a decision: what depends on it is done again, everything else stays as it is."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.support.corrections import SIX, correct, decisions, read, step_file
from tests.support.refusals import refused
from tests.support.trees import Tree, tree_of
from tests.support.world import Step, World, shell, write


def two(text: str) -> Step:
    return write("new/two.txt", text, "write two")


# --- in the middle ------------------------------------------------------------------------------


def test_only_what_depends_on_the_decision_is_done_again(world: World) -> None:
    plan = world.run(*SIX)
    before, kept = decisions(plan), plan.tree()
    better = step_file(world, two("better\n"))

    answer = correct(plan, before[1], "--step-file", better, guidance="say it better").ok()

    after = decisions(plan)
    assert {index for index in before if before[index] != after[index]} == {1, 3}
    assert answer.data["steps"] == [1, 3]
    assert [item["step_index"] for item in answer.data["kept"]] == [2, 4, 5]
    assert {item["file"]: item["action"] for item in answer.data["changes_reverted"]} == {
        "new/two.txt": "removed",
        "copy.txt": "removed",
    }
    now = plan.tree()
    assert read(plan, "new/two.txt") == read(plan, "copy.txt") == "better\n"
    changed = {b"new/two.txt", b"copy.txt"}
    assert {k: v for k, v in now.items() if k not in changed} == {
        k: v for k, v in kept.items() if k not in changed
    }
    status = plan.status
    assert (status["state"], status["attempt"]) == ("complete", 2)
    assert [item["status"] for item in status["progress"]] == ["complete"] * 6


def test_it_is_as_if_the_plan_had_run_with_the_new_step(world: World) -> None:
    other = two("better\n")
    plan = world.run(*SIX)
    fresh = world.run(SIX[0], other, *SIX[2:])

    correct(plan, decisions(plan)[1], "--step-file", step_file(world, other)).ok()

    assert plan.tree() == fresh.tree()


def test_a_folder_that_only_the_corrected_step_made_goes_with_it(world: World) -> None:
    plan = world.run(*SIX)

    other = step_file(world, write("elsewhere.txt", "x"))
    correct(plan, decisions(plan)[2], "--step-file", other).ok()

    assert not (plan.sandbox / "other").exists()
    assert read(plan, "elsewhere.txt") == "x"
    assert read(plan, "new/four.txt") == "four\n"


def test_a_dry_run_shows_the_impact_and_changes_nothing(world: World) -> None:
    plan = world.run(*SIX)
    records, tree = world.records(), plan.tree()

    answer = correct(plan, decisions(plan)[1], "--dry-run").ok()

    assert answer.data["dry_run"] is True
    assert answer.data["steps"] == [1, 3]
    assert [item["file"] for item in answer.data["changes_reverted"]] == ["copy.txt", "new/two.txt"]
    assert (world.records(), plan.tree()) == (records, tree)


def test_the_history_can_be_looked_at(world: World) -> None:
    plan = world.run(*SIX)
    before = decisions(plan)

    done = correct(plan, before[1], guidance="say it better").ok().data

    old = plan.agents("plan", "explain", before[1]).ok().data
    assert old["superseded"] is True
    assert [call["undone"] for call in old["tool_calls"]] == [True]
    (told,) = old["corrections"]
    assert (told["correction_id"], told["guidance"]) == (done["correction_id"], "say it better")
    made = plan.agents("plan", "explain", done["intervention_id"]).ok().data
    assert (made["type"], made["chosen"]) == ("user_intervention", "say it better")
    assert made["checkpoint"] is not None
    again = plan.agents("plan", "explain", decisions(plan)[1]).ok().data
    assert again["context"]["guidance"] == ["say it better"]
    assert again["attempt"] == 2
    hidden = plan("tree").ok().data
    shown = plan("tree", "--show-superseded").ok().data
    assert hidden["summary"]["superseded"] == 2
    assert shown["summary"]["nodes"] == hidden["summary"]["nodes"] + 2


def test_correcting_twice_works_and_the_attempts_are_counted(world: World) -> None:
    plan = world.run(*SIX)
    for number, text in ((2, "second\n"), (3, "third\n")):
        file = step_file(world, two(text))
        correct(plan, decisions(plan)[1], "--step-file", file, guidance=text).ok()
        assert read(plan, "copy.txt") == text
        assert plan.status["attempt"] == number

    # The correction itself was wrong: the first step's own words count again.
    first = plan("tree").ok().data["tree"]["children"]
    intervention = next(node["id"] for node in first if node["type"] == "user_intervention")
    correct(plan, intervention, guidance="as it was").ok()

    assert read(plan, "copy.txt") == "two\n"
    assert plan.status["attempt"] == 4


def test_a_rollback_to_before_a_correction_brings_back_what_it_took_and_forward_again(
    world: World,
) -> None:
    plan = world.run(*SIX)
    before, tree = decisions(plan), plan.tree()
    file = step_file(world, two("better\n"))
    done = correct(plan, before[1], "--step-file", file).ok().data
    after, better = decisions(plan), plan.tree()

    back = plan.rollback(done["undo_checkpoint"]).ok().data
    assert (plan.tree(), decisions(plan)) == (tree, before)
    assert plan.status["attempt"] == 1
    plan.execute().ok()
    assert (plan.tree(), decisions(plan)) == (tree, before)

    undo = [group for group in plan.groups if group.reason == "before_rollback"][-1]
    assert undo.group_id != done["undo_checkpoint"], back
    plan.rollback(undo.group_id).ok()
    assert (plan.tree(), decisions(plan)) == (better, after)
    plan.execute().ok()
    assert (plan.tree(), plan.status["state"]) == (better, "complete")


def test_without_execute_the_plan_waits_at_the_corrected_step(world: World) -> None:
    plan = world.run(*SIX)

    correct(plan, decisions(plan)[1], "--no-execute").ok()

    status = plan.status
    assert (status["state"], status["last_completed_step"]) == ("queued", 0)
    waiting = ["complete", "queued", "complete", "queued", "complete", "complete"]
    assert [item["status"] for item in status["progress"]] == waiting
    assert not (plan.sandbox / "copy.txt").exists()
    plan.execute().ok()
    assert read(plan, "copy.txt") == "two\n"
    assert plan.status["execution"]["tool_calls"] == 6


def test_a_failed_step_is_corrected(world: World) -> None:
    plan = world.use(SIX[0], shell("echo half > half.txt; exit 3", "break"), SIX[5])
    assert plan.execute().code == 1
    file = step_file(world, shell("echo whole > whole.txt"))

    correct(plan, decisions(plan)[1], "--step-file", file).ok()

    assert not (plan.sandbox / "half.txt").exists()
    assert read(plan, "whole.txt") == "whole\n"
    assert plan.status["state"] == "complete"


def test_a_step_that_now_changes_what_a_later_one_changed_is_followed_by_that_one(
    world: World,
) -> None:
    plan = world.run(*SIX)
    both = shell("mkdir -p new; echo mine > five.txt; echo b > new/two.txt", "write two")
    fresh = world.run(SIX[0], both, *SIX[2:])

    correct(plan, decisions(plan)[1], "--step-file", step_file(world, both)).ok()

    assert read(plan, "five.txt") == "five\n"
    assert plan.tree() == fresh.tree()


def test_git_state_takes_the_whole_checkout_back(world: World) -> None:
    plan = world.run(SIX[0], shell("git add -A", "stage"), SIX[5])

    answer = correct(plan, decisions(plan)[1], "--dry-run").ok()

    assert answer.data["whole_resources"] == ["code"]
    assert answer.data["steps"] == [1, 2]


class Mixed:
    """A checkout, a folder and a database, with a chain through all three and steps beside it."""

    def __init__(self, world: World) -> None:
        self.world = world
        (world.top / "assets").mkdir()
        (world.top / "assets" / "logo").write_text("old\n")
        with closing(sqlite3.connect(world.top / "app.db")) as database:
            database.execute("create table t (x)")
            database.commit()
        self.plan = world.run(
            write("a.txt", "a\n", "code"),
            self.step("shell", "asset", ["code"], resource="assets", command="echo n > logo"),
            self.step(
                "sql.execute", "rows", ["asset"], resource="db", sql="insert into t values (1)"
            ),
            write("free.txt", "free\n", "free"),
            self.step("file.write", "free asset", [], resource="assets", path="free", content="f"),
            resources={
                "code": {"type": "git-checkout", "path": str(world.project.path)},
                "assets": {"type": "fs-directory", "path": str(world.top / "assets")},
                "db": {"type": "sqlite", "path": str(world.top / "app.db")},
            },
        )

    @staticmethod
    def step(tool: str, name: str, uses: list[str], **arguments: Any) -> Step:
        return {"name": name, "tool": tool, "uses": uses, "with": arguments}

    def state(self) -> tuple[dict[str, Tree], list[Any]]:
        paths = {s["resource"]: Path(s["path"]) for s in self.plan.status["sandboxes"]}
        trees = {name: tree_of(paths[name]) for name in ("code", "assets")}
        with closing(sqlite3.connect(paths["db"])) as database:
            return trees, database.execute("select x from t").fetchall()


@pytest.fixture
def mixed(world: World) -> Mixed:
    return Mixed(world)


def test_files_folders_and_databases_go_back_and_forth_together(mixed: Mixed) -> None:
    before = mixed.state()
    answer = correct(mixed.plan, decisions(mixed.plan)[0], "--no-execute").ok()

    trees, rows = mixed.state()
    assert answer.data["steps"] == [0, 1, 2]
    assert rows == []
    assert b"a.txt" not in trees["code"] and b"free.txt" in trees["code"]
    assert trees["assets"][b"logo"][2] == b"old\n" and b"free" in trees["assets"]

    mixed.plan.execute().ok()
    assert mixed.state() == before


# --- refused ------------------------------------------------------------------------------------


def test_what_cannot_be_corrected_is_refused_and_nothing_changes(world: World) -> None:
    plan = world.run(*SIX)
    old = decisions(plan)[1]
    root = plan("tree").ok().data["tree"]["id"]
    correct(plan, old).ok()
    records, tree = world.records(), plan.tree()

    refused(correct(plan, old), "correction-refused")
    refused(correct(plan, root), "correction-refused")
    refused(correct(plan, "7ZZZZZZZ"), "decision-not-found")
    refused(correct(plan, old[:4]), "decision-ambiguous")
    refused(correct(plan, decisions(plan)[1], guidance=" "), "usage", 2)
    without_yes = ("plan", "correct", "--mode", "revert", "--guidance", "x", decisions(plan)[1])
    refused(world.agents(*without_yes), "confirmation-needed", 2)
    assert (world.records(), plan.tree()) == (records, tree)

    plan("cancel").ok()
    refused(correct(plan, decisions(plan)[1]), "plan-cancelled")


def test_a_subtree_with_an_applied_child_is_refused_and_nothing_changes(world: World) -> None:
    grandchild = {"name": "deep", "steps": [write("d.txt", "d")]}
    child = {"name": "c", "steps": [{"name": "deeper", "subplans": {"plans": [grandchild]}}]}
    plan = world.run(write("a", "1", "one"), {"name": "split", "subplans": {"plans": [child]}})
    (deep,) = plan.status["children"][0]["children"]
    with closing(sqlite3.connect(world.agents.data_dir / "cleveragents.db")) as database:
        # No command makes this: children are not applied by themselves.
        sql = "UPDATE plans SET phase = 'apply', state = 'applied' WHERE plan_id = ?"
        database.execute(sql, (deep["plan_id"],))
        database.commit()
    records, tree = world.records(), plan.tree()

    told = refused(correct(plan, decisions(plan)[1]), "correction-refused")

    assert deep["plan_id"] in told
    assert "is applied" in told
    refused(correct(plan, decisions(plan)[1], "--dry-run"), "correction-refused")
    assert (world.records(), plan.tree()) == (records, tree)
    correct(plan, decisions(plan)[0]).ok()  # what the child does not depend on is free


@pytest.mark.parametrize(
    ("step", "told"),
    [
        ({"tool": "file.wriet"}, "did you mean `file.write`?"),
        ({"tool": "shell", "with": {"resource": "code"}}, "`shell` needs `command`"),
        ({"tool": "shell", "wiht": {}}, "line 1: wiht: unknown key"),
        (
            {"tool": "shell", "with": {"resource": "code", "command": "x"}, "uses": ["write five"]},
            "there is no step `write five`",
        ),
        (
            {"name": "other", "tool": "shell", "with": {"resource": "code", "command": "true"}},
            "a later step uses `write two` by that name",
        ),
        ([], "must be a mapping"),
    ],
)
def test_a_step_file_is_checked_like_an_action_file(world: World, step: Any, told: str) -> None:
    plan = world.run(*SIX)
    records = world.records()
    file = step_file(world, step)

    answer = correct(plan, decisions(plan)[1], "--step-file", file)

    assert told in refused(answer, "step-file-invalid")
    refused(correct(plan, decisions(plan)[1], "--step-file", "none.yaml"), "action-not-found")
    assert world.records() == records


def test_a_plan_that_keeps_no_checkpoints_cannot_take_a_decision_back(world: World) -> None:
    plan = world.run(*SIX, rollback_policy={"enabled": False})

    refused(correct(plan, decisions(plan)[1]), "correction-refused")


# --- comparing ----------------------------------------------------------------------------------


def test_a_correction_is_compared_with_the_state_before_it(mixed: Mixed) -> None:
    plan = mixed.plan
    file = step_file(mixed.world, write("a.txt", "better\n", "code"))
    done = correct(plan, decisions(plan)[0], "--step-file", file).ok().data

    answer = plan("diff", "--correction", done["correction_id"]).ok()

    assert [item["path"] for item in answer.data["files"]] == ["code:a.txt"]
    assert "-a\n+better\n" in answer.data["patch"]
    other = mixed.world.run(SIX[0])
    refused(other("diff", "--correction", done["correction_id"]), "correction-not-found")
    refused(plan("diff", "--correction", plan.id), "correction-not-found")

    correct(plan, decisions(plan)[2], "--no-execute").ok()
    told = plan("diff", "--correction", done["correction_id"]).ok().data
    assert {item["path"] for item in told["files"]} == {"code:a.txt", "db:app.db/t"}
