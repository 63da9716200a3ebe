"""The main path through the command, with processes restarted where that could matter."""

import re
import shlex
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from tests.support.agents import Answer
from tests.support.promises import (
    CHECKPOINT_ROW,
    EXECUTION,
    FAILURE,
    ROLLBACK,
    SANDBOX,
    STATUS,
)
from tests.support.trees import Tree, tree_of
from tests.support.world import Group, PlanHandle, World, action, groups_of, shell, write

COMMANDS = (
    "printf 'one\\n' > new.txt; mkdir -p deep/er; printf x > deep/er/f",
    "printf 'more\\r\\n' >> windows.txt; chmod 600 README.md; chmod a-x run.sh; mkdir hollow",
    "rm src/old.py; mv data.bin moved.bin; rm link; ln -s README.md link; echo 2 > src/app.py",
    "rm -r deep; printf f > deep; echo no > x.log; mkdir build; echo o > build/o; "
    "printf nl > 'new\nline'; rmdir hollow; ln -s nowhere dangling",
)


class Run:
    """A plan whose every step is a shell command, and the tree that each group must stand for."""

    def __init__(self, world: World, agents: Callable[..., Answer]) -> None:
        """`agents` carries out what changes something; to look, no process is started."""
        self.world = world
        self.agents = agents
        self.trees = world.replay(COMMANDS)
        steps = [shell(command, f"step {index}") for index, command in enumerate(COMMANDS)]
        used = agents("plan", "use", world.write_action(action(*steps))).ok()
        self.plan_id = used.data["plan_id"]
        self.executed = agents("plan", "execute", self.plan_id).ok()
        self.plan = PlanHandle(world.agents, self.plan_id)

    def ask(self, *words: str) -> Mapping[str, Any]:
        return self.plan(*words).ok().data

    def rollback(self, wanted: str) -> Mapping[str, Any]:
        return self.agents("plan", "rollback", "--yes", self.plan_id, wanted).ok().data

    def expected(self, group: Group) -> Tree:
        done = group.reason == "on_tool_write_complete"
        return self.trees[group.step_index + (1 if done else 0)]

    def sandbox(self) -> Tree:
        return tree_of(self.plan.sandbox)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Only looked at, so one is enough. In a new HOME: the first command makes everything."""
    world = World(tmp_path_factory.mktemp("must-show"))
    return Run(world, world.agents.json)


@pytest.fixture
def processes(world: World) -> Run:
    return Run(world, lambda *argv: world.agents.fork(*argv).answer())


@pytest.fixture
def run(world: World) -> Run:
    """The same in one process, for what does not depend on a restart."""
    return Run(world, world.agents)


def test_execute_completes_the_plan_and_the_sandbox_holds_the_result(finished: Run) -> None:
    assert finished.executed.data["state"] == "complete"
    assert finished.sandbox() == finished.trees[-1]


def test_status_has_exactly_the_promised_keys_and_a_head(finished: Run) -> None:
    status = finished.ask("status")
    assert set(status) >= STATUS
    assert set(status["execution"]) == EXECUTION
    assert [set(sandbox) for sandbox in status["sandboxes"]] == [SANDBOX]
    assert set(status["timing"]) == {"started", "elapsed"}
    assert status["progress"] == [
        {"step": f"step {index}", "status": "complete"} for index in range(len(COMMANDS))
    ]
    assert status["last_checkpoint_id"] is not None
    assert status["last_completed_step"] == len(COMMANDS) - 1


def test_there_is_one_group_per_decision_and_one_per_trigger(finished: Run) -> None:
    groups = groups_of(finished.ask("checkpoint", "list"))
    per_step = ["decision", "on_tool_write", "on_tool_write_complete"]
    assert [group.reason for group in groups] == ["decision", *per_step * len(COMMANDS)]
    assert groups[0].label == "start"
    assert finished.ask("status")["execution"]["checkpoints"] == len(groups)


def test_the_groups_of_the_decisions_are_those_that_the_tree_names(finished: Run) -> None:
    root = finished.ask("tree")["tree"]
    nodes = {node["id"]: node["checkpoint"] for node in (root, *root["children"])}
    groups = groups_of(finished.ask("checkpoint", "list"))
    made = [group for group in groups if group.reason == "decision"]
    assert {group.decision_id: group.head for group in made} == nodes
    assert len(nodes) == len(COMMANDS) + 1


def test_every_row_has_exactly_the_promised_keys_with_values(finished: Run) -> None:
    for row in finished.ask("checkpoint", "list")["checkpoints"]:
        assert set(row) == CHECKPOINT_ROW
        assert all(value not in ("", None) for value in row.values()), row
        assert re.fullmatch(r"sha256:[0-9a-f]{64}", row["state_hash"])
        assert re.fullmatch(r"[0-9A-HJKMNP-TV-Z]{26}", row["checkpoint_id"])
        assert row["created_at"].endswith("Z")


def test_a_group_has_a_checkpoint_of_the_checkout_only_where_it_was_modified(
    finished: Run,
) -> None:
    for group in groups_of(finished.ask("checkpoint", "list")):
        kinds = {row["checkpoint_type"] for row in group.rows}
        changed = group.label == "start" or group.reason == "on_tool_write_complete"
        assert kinds == ({"git-checkout", "plan-state"} if changed else {"plan-state"})


def test_the_head_after_execute_is_the_newest_group(finished: Run) -> None:
    groups = groups_of(finished.ask("checkpoint", "list"))
    assert finished.ask("status")["last_checkpoint_id"] == groups[-1].head


def test_rollback_to_the_head_and_to_each_group_gives_the_tree_of_that_moment(
    processes: Run,
) -> None:
    run = processes
    groups = groups_of(run.ask("checkpoint", "list"))
    run.rollback(run.ask("status")["last_checkpoint_id"])
    assert run.sandbox() == run.trees[-1]
    # Back and forth, and never from a clean sandbox.
    for group in (*groups[::-2], *groups[1::2]):
        (run.plan.sandbox / "stray").write_text("somebody was here")
        (run.plan.sandbox / "README.md").write_text("and here")
        run.rollback(group.group_id)
        assert run.sandbox() == run.expected(group), group.label


def test_rollback_answers_with_exactly_the_promised_keys(run: Run) -> None:
    start = groups_of(run.ask("checkpoint", "list"))[0]
    data = run.rollback(start.head)
    assert set(data) >= {*ROLLBACK, "changes_reverted"}
    assert {part: set(data[part]) for part in ROLLBACK} == ROLLBACK
    assert data["rollback_summary"] == {
        "plan": run.plan_id,
        "checkpoint": start.head,
        "label": "start",
        "files_reverted": len(data["changes_reverted"]),
    }
    assert data["impact"] == {
        "child_plans_invalidated": 0,
        "sandbox": f"restored to {start.head}",
        "decisions_after_cp": f"{len(COMMANDS)} discarded",
        "tool_calls_after_cp": f"{len(COMMANDS)} undone",
    }
    assert data["post_rollback_state"]["phase"] == "execute"
    assert data["post_rollback_state"]["state"] == "queued (awaiting input)"
    listed = groups_of(run.ask("checkpoint", "list"))
    assert data["post_rollback_state"]["checkpoints_remaining"] == len(listed)


def test_rollback_names_each_file_that_it_restored_or_removed(run: Run) -> None:
    data = run.rollback("start")
    changed = {
        item["file"]: item["action"]
        for item in data["changes_reverted"]
        if not item["file"].endswith("/")
    }
    before, after = run.trees[0], run.trees[-1]
    files = {path for path in {*before, *after} if before.get(path) != after.get(path)}
    expected = {
        path.decode(): "restored" if path in before else "removed"
        for path in files
        if "folder" not in (before.get(path, after.get(path)) or ("",))[0]
    }
    assert expected.items() <= changed.items()


def test_after_a_rollback_the_plan_stands_on_the_target_and_later_decisions_do_not_count(
    run: Run,
) -> None:
    target = run.plan.group("decision 3: step 2")
    run.rollback(target.group_id)
    status = run.ask("status")
    assert status["last_checkpoint_id"] == target.head
    assert (status["phase"], status["state"]) == ("execute", "queued")
    assert status["last_completed_step"] == 1
    live = run.ask("tree")
    assert [node["description"] for node in live["tree"]["children"]] == [
        "shell: step 0",
        "shell: step 1",
        "shell: step 2",
    ]
    assert live["summary"]["superseded"] == 1
    shown = run.ask("tree", "--show-superseded")["tree"]["children"]
    assert [node.get("superseded", False) for node in shown] == [False, False, False, True]
    undone = [call["undone"] for call in run.ask("artifacts")["artifacts"]]
    assert undone == [False, False, True, True]


def test_a_rollback_can_be_undone_by_the_group_that_it_names(processes: Run) -> None:
    run = processes
    head = run.ask("status")["last_checkpoint_id"]
    answer = run.world.agents.json("plan", "rollback", "--yes", run.plan_id, "start").ok()
    assert run.sandbox() == run.trees[0]
    told = next(text for text in answer.envelope["messages"] if text.startswith("undo it: "))
    words = shlex.split(told.removeprefix("undo it: agents "))
    run.world.agents.process(*words, "--yes").ok()
    assert run.sandbox() == run.trees[-1]
    status = run.ask("status")
    assert status["last_completed_step"] == len(COMMANDS) - 1
    assert run.ask("tree")["summary"] == {
        "nodes": len(COMMANDS) + 1,
        "depth": 2,
        "child_plans": 0,
        "superseded": 0,
    }
    assert status["last_checkpoint_id"] != head
    assert run.ask("execute")["state"] == "complete"


@pytest.mark.parametrize("label", ["start", "after shell step 1", "before shell step 3"])
def test_resume_after_a_rollback_gives_the_same_final_tree(run: Run, label: str) -> None:
    run.rollback(label)
    assert run.ask("resume")["state"] == "complete"
    assert run.sandbox() == run.trees[-1]
    counted = [call for call in run.ask("artifacts")["artifacts"] if not call["undone"]]
    assert [call["step_index"] for call in counted] == list(range(len(COMMANDS)))


def test_executing_a_complete_plan_again_changes_nothing(run: Run) -> None:
    before = run.world.records()
    assert run.ask("execute")["state"] == "complete"
    assert run.world.records() == before


# --- a step that fails --------------------------------------------------------------------------


class Failed:
    """A plan whose second step fails until `cure` is there, and leaves half of its work behind."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.cure = world.top / "cure"
        self.plan = world.use(
            shell("echo first > first.txt", "first"),
            shell(f"echo half >> second.txt; rm README.md; test -e {self.cure}", "second"),
            write("third.txt", "third\n", "third"),
        )
        self.answer = self.plan.execute()
        self.before = world.replay(["echo first > first.txt"])[-1]


@pytest.fixture
def failed(world: World) -> Failed:
    return Failed(world)


def test_a_failing_step_exits_with_1_and_says_which_step_and_what_next(failed: Failed) -> None:
    assert failed.answer.code == 1
    assert failed.answer.error["code"] == "step-failed"
    assert "step 2 (shell)" in failed.answer.error["message"]
    assert f"agents plan errors {failed.plan.id}" in failed.answer.error["hint"]


def test_a_failing_step_leaves_one_on_error_group_and_an_errored_plan(failed: Failed) -> None:
    assert failed.plan.reasons.count("on_error") == 1
    status = failed.plan.status
    assert (status["phase"], status["state"]) == ("execute", "errored")
    assert set(status) >= STATUS | {"error"}
    assert set(status["error"]) == FAILURE
    assert (status["error"]["tool"], status["error"]["step"]) == ("shell", 1)
    assert status["error"]["recoverable"] is True
    assert [item["status"] for item in status["progress"]] == ["complete", "errored", "queued"]
    assert status["last_checkpoint_id"] == failed.plan.groups[-1].head


def test_plan_errors_tells_a_way_back_that_works_as_printed(failed: Failed) -> None:
    answer = failed.plan("errors").ok()
    assert [call["step_index"] for call in answer.data["failures"]] == [1]
    back = next(text for text in answer.data["next_steps"] if "rollback" in text)
    words = shlex.split(back.partition("agents ")[2])
    failed.world.agents(*words, "--yes").ok()
    assert failed.plan.tree() == failed.before
    assert failed.plan.status["state"] == "queued"
    assert "error" not in failed.plan.status


def test_plan_errors_tells_how_to_go_on_and_that_works_after_the_cure(failed: Failed) -> None:
    failed.cure.touch()
    answer = failed.plan("errors").ok()
    on = next(text for text in answer.data["next_steps"] if "resume" in text)
    failed.world.agents(*shlex.split(on.partition("agents ")[2])).ok()
    assert failed.plan.status["state"] == "complete"
    # `>>` shows that the failed attempt was undone before the second one.
    assert (failed.plan.sandbox / "second.txt").read_text() == "half\n"


def test_the_on_error_group_holds_what_the_failed_step_left(failed: Failed) -> None:
    group = next(group for group in failed.plan.groups if group.reason == "on_error")
    failed.plan.rollback("start").ok()
    failed.plan.rollback(group.group_id).ok()
    left = failed.plan.tree()
    assert left[b"second.txt"][2] == b"half\n"
    assert b"README.md" not in left
    failed.cure.touch()
    failed.plan("resume").ok()
    assert (failed.plan.sandbox / "second.txt").read_text() == "half\n"


def test_resuming_without_a_cure_fails_again_and_keeps_the_first_step(failed: Failed) -> None:
    again = failed.plan("resume")
    assert (again.code, again.error["code"]) == (1, "step-failed")
    assert failed.plan.status["last_completed_step"] == 0
    assert (failed.plan.sandbox / "second.txt").read_text() == "half\n"
