"""Commands on plans in every state they can be in: an answer or a clean refusal, never a bug."""

import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing

import pytest
from tests.support.promises import ENVELOPE
from tests.support.world import PlanHandle, World, shell, write


def _queued(world: World) -> PlanHandle:
    return world.use(write("a", "1", "one"), write("b", "2", "two"))


def _complete(world: World) -> PlanHandle:
    plan = _queued(world)
    plan.execute().ok()
    return plan


def _errored(world: World) -> PlanHandle:
    plan = world.use(write("a", "1", "one"), shell("echo half > half; false", "bad"))
    assert plan.execute().code == 1
    return plan


def _rolled_back(world: World) -> PlanHandle:
    plan = _complete(world)
    plan.rollback("start").ok()
    return plan


def _constrained(world: World) -> PlanHandle:
    plan = _complete(world)
    world.project.write("a", "mine")
    assert plan("apply", "--yes").error["code"] == "apply-conflict"
    return plan


def _cancelled(world: World) -> PlanHandle:
    plan = _complete(world)
    plan("cancel").ok()
    return plan


def _applied(world: World) -> PlanHandle:
    plan = _complete(world)
    plan("apply", "--yes").ok()
    return plan


def _without_sandbox(world: World) -> PlanHandle:
    plan = _errored(world)
    shutil.rmtree(plan.sandbox)
    return plan


def _without_project(world: World) -> PlanHandle:
    plan = _errored(world)
    world.project.path.rename(world.top / "moved away")
    return PlanHandle(world.agents.at(world.top), plan.id)


STATES = [
    _queued,
    _complete,
    _errored,
    _rolled_back,
    _constrained,
    _cancelled,
    _applied,
    _without_sandbox,
    _without_project,
]
COMMANDS = [
    ("status",),
    ("tree", "--show-superseded"),
    ("diff",),
    ("artifacts",),
    ("errors",),
    ("resume", "--dry-run"),
    ("checkpoint", "list"),
    ("checkpoint", "show", "{}", "start"),
    ("checkpoint", "verify"),
    ("checkpoint", "diff", "{}", "start", "start"),
    ("checkpoint", "create", "--label", "mine"),
    ("rollback", "--yes", "{}", "start"),
    ("checkpoint", "delete", "--yes", "{}", "mine"),
    ("resume",),
    ("apply", "--yes"),
    ("cancel",),
]


@pytest.mark.parametrize("make", STATES)
def test_no_command_meets_a_state_that_it_does_not_know(
    world: World, make: Callable[[World], PlanHandle]
) -> None:
    plan = make(world)
    for words in COMMANDS:
        answer = plan(*words)
        assert set(answer.envelope) == ENVELOPE, words
        assert answer.code in (0, 1), (words, answer)
        if answer.code:
            assert answer.error["code"] != "internal-error", (words, answer.error)
            assert answer.error["hint"], words
        assert "Traceback" not in answer.err


@pytest.mark.parametrize("make", STATES)
def test_every_state_can_be_shown_to_people(
    world: World, make: Callable[[World], PlanHandle]
) -> None:
    plan = make(world)
    for words in COMMANDS[:8]:
        for format in ("rich", "plain"):
            filled = [plan.id if word == "{}" else word for word in words]
            last = [] if "{}" in words else [plan.id]
            answer = plan.agents.inside("--format", format, "plan", *filled, *last)
            assert answer.out or answer.err
            assert "bug in agents" not in answer.err, (words, answer.err)


def _died_after_its_commit(world: World) -> PlanHandle:
    # The ignored file keeps the sandbox, so the moment before the last record can be set again.
    plan = world.run(shell("echo 1 > a.txt; echo 2 > a.log", "s"))
    plan("apply", "--yes").ok()
    with closing(sqlite3.connect(world.agents.data_dir / "cleveragents.db")) as database:
        database.execute("UPDATE plans SET state='processing', applied_json='{}', finished_at=NULL")
        database.commit()
    return plan


def test_an_apply_that_died_after_its_commit_is_finished_and_cannot_be_rolled_back(
    world: World,
) -> None:
    plan = _died_after_its_commit(world)
    head = world.project.head
    assert plan.rollback("start").code == 1
    assert plan("cancel").code == 1
    plan("apply", "--yes").ok()
    assert (world.project.head, plan.status["state"]) == (head, "applied")


def test_status_of_an_apply_that_died_says_to_apply_again(world: World) -> None:
    plan = _died_after_its_commit(world)
    told = " ".join(plan("status").envelope["messages"])
    assert f"agents plan apply {plan.id}" in told


def test_after_apply_no_checkpoint_is_said_to_be_restorable(world: World) -> None:
    plan = _applied(world)
    assert plan("checkpoint", "verify").error["code"] == "plan-applied"


def test_a_hand_made_label_can_be_used_once_and_gone_back_to(world: World) -> None:
    plan = _complete(world)
    made = plan("checkpoint", "create", "--label", "as I like it").ok().data
    assert made["label"] == "as I like it"
    again = plan("checkpoint", "create", "--label", "as I like it")
    assert (again.code, again.error["code"]) == (1, "label-taken")
    (plan.sandbox / "b").unlink()
    plan.rollback("as I like it").ok()
    assert (plan.sandbox / "b").read_text() == "2"


def test_checkpoint_diff_names_what_differs_between_two_groups(world: World) -> None:
    plan = world.run(
        write("a", "1", "one"), shell("echo 2 > src/app.py; rm src/old.py; mkdir hollow", "two")
    )
    groups = plan.groups
    first, last = groups[0].group_id, groups[-1].group_id
    there = plan("checkpoint", "diff", "{}", first, last).ok().data["files"]
    assert {(item["path"], item["status"]) for item in there} >= {
        ("a", "added"),
        ("src/app.py", "modified"),
        ("src/old.py", "deleted"),
    }
    back = plan("checkpoint", "diff", "{}", last, first).ok().data["files"]
    assert ("src/old.py", "added") in {(item["path"], item["status"]) for item in back}
    assert plan("checkpoint", "diff", "{}", first, first).ok().data["files"] == []


def test_explain_tells_why_a_decision_was_made_and_what_came_of_it(world: World) -> None:
    plan = _complete(world)
    node = plan("tree").data["tree"]["children"][0]
    told = world.agents("plan", "explain", node["id"]).ok().data
    assert told["type"] == "tool_invocation"
    assert told["question"]
    assert told["chosen"] == "file.write: one"
    assert told["checkpoint"] == node["checkpoint"]
    assert [call["files"] for call in told["tool_calls"]] == [[{"path": "a", "change": "added"}]]
