"""Every guard of a rollback, through the command: refused, told why, and nothing has changed."""

import os
import shutil
import signal
import time
from unittest import mock

import pytest
from tests.support.agents import Answer
from tests.support.guarded import nothing_changes, plan
from tests.support.refusals import refused
from tests.support.terminals import asking
from tests.support.world import PlanHandle, World, shell, wait_for, write

__all__ = ["plan"]


# --- which checkpoint ---------------------------------------------------------------------------


def test_an_unknown_checkpoint_is_refused(world: World, plan: PlanHandle) -> None:
    with nothing_changes(world, plan.sandbox):
        for wanted in ("01ARZ3NDEKTSV4RRFFQ69G5FAV", "no such label", "zz", "-99", "01"):
            said = refused(
                world.agents("plan", "rollback", "--yes", plan.id, "--", wanted),
                "checkpoint-not-found",
            )
            assert f"agents plan checkpoint list {plan.id}" in said


def test_a_pruned_checkpoint_is_refused_with_when_and_why_it_went(
    world: World, plan: PlanHandle
) -> None:
    gone = plan.groups[4]
    few = world.agents.having(CLEVERAGENTS_CHECKPOINT_MAX_PER_PLAN="2")
    few("plan", "checkpoint", "prune", "--yes", plan.id).ok()
    with nothing_changes(world, plan.sandbox):
        for wanted in (gone.group_id, gone.checkpoint_id, gone.label):
            said = refused(plan.rollback(wanted), "checkpoint-not-found")
            assert "it was pruned at" in said
            assert "among the oldest" in said


def test_a_checkpoint_of_another_plan_is_refused(world: World, plan: PlanHandle) -> None:
    other = world.run(write("other.txt", "x"))
    head = other.status["last_checkpoint_id"]
    with nothing_changes(world, plan.sandbox):
        for wanted in (head, other.groups[0].group_id):
            said = refused(plan.rollback(wanted), "checkpoint-of-another-plan")
            assert other.id in said
            assert f"agents plan checkpoint list {plan.id}" in said


def test_an_ambiguous_prefix_is_refused_and_the_matches_are_named(
    world: World, plan: PlanHandle
) -> None:
    groups = plan.groups
    prefix = os.path.commonprefix([group.group_id for group in groups])
    with nothing_changes(world, plan.sandbox):
        said = refused(plan.rollback(prefix), "checkpoint-ambiguous")
    lines = said.splitlines()
    for group in groups:
        called = (f"  {group.label}", f" ({group.label})")
        line = next(line for line in lines if any(name in line for name in called))
        assert any(group.group_id.endswith(w) and len(w) >= 4 for w in line.split())


def test_an_ambiguous_label_is_refused(world: World) -> None:
    plan = world.run(write("a", "1", "same"), write("a", "2", "same"))
    with nothing_changes(world, plan.sandbox):
        refused(plan.rollback("after file.write a"), "checkpoint-ambiguous")


def test_a_missing_checkpoint_is_a_usage_error_that_lists_what_there_is(
    world: World, plan: PlanHandle
) -> None:
    with nothing_changes(world, plan.sandbox):
        said = refused(plan("rollback", "--yes"), "checkpoint-required", exit_code=2)
    told = [line.split(maxsplit=4) for line in said.partition(" name it by")[0].splitlines()[1:]]
    assert [line[0] for line in told] == [str(number) for number in range(len(told))]
    assert told[0][4] == "start"
    for line in told:  # each by what it is told by
        by_number = plan("rollback", "--dry-run", "{}", line[0]).ok().data["rollback_summary"]
        by_ending = plan("rollback", "--dry-run", "{}", line[3]).ok().data["rollback_summary"]
        assert by_number == by_ending


def test_an_unambiguous_prefix_a_checkpoint_and_a_label_all_work(plan: PlanHandle) -> None:
    groups = plan.groups
    target = groups[3]
    names = [name for group in groups for name in (group.group_id, group.head)]
    mine = {target.group_id, target.head, *(row["checkpoint_id"] for row in target.rows)}
    others = [name for name in names if name not in mine]
    prefix = next(
        target.group_id[:length]
        for length in range(4, 27)
        if not any(name.startswith(target.group_id[:length]) for name in others)
    )
    expected = None
    for wanted in (target.label, target.head, target.rows[0]["checkpoint_id"], prefix.lower()):
        plan.rollback("start").ok()
        plan.rollback(wanted).ok()
        expected = expected or plan.tree()
        assert plan.tree() == expected
        assert plan.status["last_checkpoint_id"] == target.head


def test_a_plan_that_is_not_there_is_refused(world: World) -> None:
    said = refused(
        world.agents("plan", "rollback", "--yes", "01ARZ3NDEKTSV4RRFFQ69G5FAV", "x"),
        "plan-not-found",
    )
    assert "agents plan list" in said


def test_a_plan_that_has_not_run_has_nothing_to_go_back_to(world: World) -> None:
    plan = world.use(write("a", "1"))
    assert "(none yet)" in refused(plan("rollback", "--yes"), "checkpoint-required", exit_code=2)
    refused(plan.rollback("start"), "checkpoint-not-found")


def test_a_clock_that_goes_back_changes_no_order(world: World) -> None:
    cure = world.top / "cure"
    plan = world.use(write("a", "1", "one"), shell(f"test -e {cure}", "wait"), write("b", "2", "b"))
    assert plan.execute().code == 1
    before = [group.group_id for group in plan.groups]
    cure.touch()
    years_ago = time.time_ns() - 10 * 365 * 86_400 * 10**9
    with mock.patch("cleveragents.infrastructure.clock.time.time_ns", lambda: years_ago):
        plan("resume").ok()
    groups = [group.group_id for group in plan.groups]
    assert groups[: len(before)] == before
    assert plan.status["last_checkpoint_id"] == plan.groups[-1].head
    assert groups[-1] < before[0], "the ids themselves go back"
    plan.rollback("decision 3: b").ok()
    assert not (plan.sandbox / "b").exists()
    done = plan.rollback(before[0]).ok().data
    assert done["impact"]["decisions_after_cp"] == "3 discarded"
    plan.execute().ok()
    assert (plan.sandbox / "b").exists()


# --- the plan's state ---------------------------------------------------------------------------


def test_an_applied_plan_is_refused(world: World, plan: PlanHandle) -> None:
    target = plan.groups[0].group_id
    plan("apply", "--yes").ok()
    user, records = world.project.fingerprint(), world.records()
    said = refused(plan.rollback(target), "plan-applied")
    assert f"agents undo --plan {plan.id}" in said
    assert (world.project.fingerprint(), world.records()) == (user, records)


def test_a_cancelled_plan_is_refused(world: World, plan: PlanHandle) -> None:
    target = plan.groups[0].group_id
    sandbox = plan.sandbox
    plan("cancel").ok()
    with nothing_changes(world, sandbox):
        assert "agents plan use" in refused(plan.rollback(target), "plan-cancelled")


def test_a_plan_in_use_by_a_live_process_is_refused_and_its_owner_named(world: World) -> None:
    plan = world.use(write("a", "1", "one"), shell("touch started; sleep 30", "slow"))
    running = world.agents.start("plan", "execute", plan.id)
    try:
        wait_for(lambda: bool(plan.status["sandboxes"]) and (plan.sandbox / "started").exists())
        target = plan.groups[0].group_id
        with nothing_changes(world, plan.sandbox):
            for words in (
                ("plan", "rollback", "--yes", plan.id, target),
                ("plan", "execute", plan.id),
                ("plan", "apply", "--yes", plan.id),
                ("plan", "checkpoint", "create", "--label", "x", plan.id),
                ("plan", "checkpoint", "delete", "--yes", plan.id, target),
                ("plan", "checkpoint", "prune", "--yes", plan.id),
                ("plan", "rollback", "--dry-run", plan.id, target),
            ):
                said = refused(world.agents(*words), "plan-locked")
                assert str(running.pid) in said
                assert f"agents plan status {plan.id}" in said
    finally:
        running.terminate()
        assert running.wait(10) == 130
    plan.rollback(target).ok()


def test_a_process_that_is_stopped_keeps_its_plan_until_it_is_ended(world: World) -> None:
    plan = world.use(write("a", "1", "one"), shell("touch started; sleep 30", "slow"))
    running = world.agents.start("plan", "execute", plan.id)
    try:
        wait_for(lambda: bool(plan.status["sandboxes"]) and (plan.sandbox / "started").exists())
        os.kill(running.pid, signal.SIGSTOP)
        said = refused(plan.rollback("start"), "plan-locked")
        assert f"process {running.pid}" in said
        assert "stopped" in said
        assert f"kill -CONT {running.pid}" in said
    finally:
        running.kill()
        running.wait(10)
    # Taken over at once; what the dead one had started is ended before its work is undone.
    assert plan.status["state"] == "processing"
    plan.rollback("start").ok()
    assert not (plan.sandbox / "started").exists()


# --- the sandbox --------------------------------------------------------------------------------


def test_a_deleted_sandbox_is_refused(world: World, plan: PlanHandle) -> None:
    sandbox, target = plan.sandbox, plan.groups[0].group_id
    shutil.rmtree(sandbox)
    user, records = world.project.fingerprint(), world.records()
    said = refused(plan.rollback(target), "sandbox-missing")
    # Before the question: nobody is asked about what cannot be done.
    refused(world.agents("plan", "rollback", plan.id, target), "sandbox-missing")
    assert str(sandbox) in said
    assert f"agents plan resume --rebuild {plan.id}" in said
    assert not sandbox.exists()
    assert (world.project.fingerprint(), world.records()) == (user, records)


def test_a_sandbox_replaced_by_a_link_is_refused_and_the_link_not_followed(
    world: World, plan: PlanHandle
) -> None:
    sandbox, target = plan.sandbox, plan.groups[0].group_id
    elsewhere = world.top / "elsewhere"
    sandbox.rename(elsewhere)
    sandbox.symlink_to(elsewhere)
    with nothing_changes(world, elsewhere):
        refused(plan.rollback(target), "sandbox-missing")
    sandbox.unlink()
    elsewhere.rename(sandbox)
    plan.rollback(target).ok()


def test_a_sandbox_replaced_by_the_users_own_project_is_refused(
    world: World, plan: PlanHandle
) -> None:
    sandbox, target = plan.sandbox, plan.groups[0].group_id
    shutil.rmtree(sandbox)
    sandbox.symlink_to(world.project.path)
    with nothing_changes(world, world.project.path):
        refused(plan.rollback(target), "sandbox-missing")
        assert plan("execute").code == 0  # complete: there is nothing to do
        assert plan("apply", "--yes").code == 1


# --- the person ---------------------------------------------------------------------------------


def test_without_a_terminal_a_rollback_needs_yes(world: World, plan: PlanHandle) -> None:
    with nothing_changes(world, plan.sandbox):
        said = refused(
            world.agents("plan", "rollback", plan.id, "start"), "confirmation-needed", exit_code=2
        )
    assert "--yes" in said


@pytest.mark.parametrize(("answer", "code"), [("n", 1), ("y", 0)])
def test_on_a_terminal_a_rollback_asks_first(
    world: World, plan: PlanHandle, answer: str, code: int
) -> None:
    before = plan.tree()
    with asking(world, "plan", "rollback", plan.id, "start") as (process, terminal):
        os.write(terminal, f"{answer}\n".encode())
        out, _ = process.communicate(timeout=20)
    told = Answer(argv=(), code=process.returncode, out=out.decode(), err="")
    assert told.code == code
    if code:
        refused(told, "declined")
        assert plan.tree() == before
    else:
        assert plan.tree() == world.replay([])[0]
