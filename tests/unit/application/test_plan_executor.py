"""Execute: decide, checkpoint, run the tool, commit the step; nothing counts before that."""

from collections.abc import Iterable

import pytest
from service_world import THREE_STEPS, ServiceWorld, after, append, look, plan_of
from service_world import resource as a_resource

from cleveragents.domain.action import RollbackPolicy
from cleveragents.domain.changes import ChangeKind, FileChange
from cleveragents.domain.checkpoint import DEFAULT_TRIGGERS, CheckpointReason, Trigger
from cleveragents.domain.decision import DecisionContext, DecisionType, ToolCallStatus
from cleveragents.domain.events import (
    CheckpointRecorded,
    PlanFinished,
    PlanStarted,
    StepFinished,
    StepStarted,
)
from cleveragents.domain.plan import Phase, State

# --- decisions and their groups -----------------------------------------------------------------


def test_every_decision_is_stored_in_one_commit_with_the_group_to_go_back_to() -> None:
    world = ServiceWorld()
    world.run()

    for decision in world.decisions[1:]:
        key = decision.decision_id
        tables = next(tables for tables in world.database.history if key in tables.decisions)
        groups = [group for group in tables.groups.values() if group.decision_id == key]
        reasons = [group.reason for group in groups]
        assert reasons == [CheckpointReason.DECISION, CheckpointReason.ON_TOOL_WRITE]
        assert groups[0].resource_states == groups[1].resource_states
        assert plan_of(world, tables).head == groups[1].head
        assert plan_of(world, tables).last_completed_step == (decision.step_index or 0) - 1


def test_the_root_decision_gets_its_group_when_there_is_something_to_capture() -> None:
    world = ServiceWorld()
    world.run()

    root, first = world.decisions[:2]
    start = world.groups[0]
    assert (start.label, start.decision_id) == ("start", root.decision_id)
    assert first.parent_id == root.decision_id


def test_a_decision_keeps_what_the_actor_said() -> None:
    world = ServiceWorld()
    world.run()

    decision = world.decisions[2]
    assert decision.type is DecisionType.TOOL_INVOCATION
    assert decision.question == "What is step 1?"
    assert decision.chosen == "append: add b"
    assert decision.rationale == "the list says so"
    assert decision.alternatives == ("wait",)
    assert decision.confidence == 0.5
    assert decision.context == DecisionContext(tool="append", actor_state={"seen": ["add a"]})
    assert (decision.phase, decision.step_index, decision.attempt) == ("execute", 1, 1)


def test_files_are_on_disk_before_a_commit_names_them() -> None:
    world = ServiceWorld()
    known: set[str] = set()
    keep = world.database.keep

    def look_and_keep(tables):
        stored = {ref for refs in world.snapshots.versions.values() for ref in refs}
        for group in tables.groups.values():
            for state in group.resource_states:
                assert {state.snapshot, state.boundary} <= stored
                known.add(state.snapshot)
        keep(tables)

    world.database.keep = look_and_keep
    world.run()

    assert len(known) == 4


def test_a_decision_made_before_an_error_is_carried_out_and_not_made_again() -> None:
    world = ServiceWorld()
    world.tools.broken.add("b")
    world.run()
    decided = [decision.decision_id for decision in world.decisions]
    world.tools.broken.clear()

    world.run()

    assert [d.decision_id for d in world.decisions][: len(decided)] == decided
    assert [d.step_index for d in world.decisions] == [None, 0, 1, 2]
    retried = [call for call in world.calls if call.step_index == 1]
    assert {call.decision_id for call in retried} == {decided[2]}
    assert [call.status for call in retried] == [ToolCallStatus.FAILED, ToolCallStatus.SUCCEEDED]


def test_a_step_and_its_progress_are_stored_together() -> None:
    world = ServiceWorld()
    world.run()

    for tables in world.database.history:
        done = [call.step_index for call in tables.tool_calls.values()]
        assert done == list(range(plan_of(world, tables).last_completed_step + 1))


def test_each_thing_that_happens_has_a_position_of_its_own() -> None:
    world = ServiceWorld(triggers=Trigger)
    world.run()

    positions = [item.position.seq for item in (*world.decisions, *world.calls, *world.groups)]
    assert len(set(positions)) == len(positions)
    assert max(positions) == world.plan.seq


def test_a_call_is_stored_with_what_it_did() -> None:
    world = ServiceWorld(append("a"))
    world.run()

    (call,) = world.calls
    assert (call.tool, call.arguments) == ("append", {"line": "a", "resource": "code"})
    assert call.status is ToolCallStatus.SUCCEEDED
    assert call.result.output == "appended"
    assert call.error is None
    assert call.changes == (
        FileChange(path="one.txt", kind=ChangeKind.ADDED),
        FileChange(path="two.txt", kind=ChangeKind.ADDED),
    )
    assert call.started_at < call.finished_at


# --- triggers -----------------------------------------------------------------------------------

DECISIONS = ["decision", "decision"]
END = "complete"


@pytest.mark.parametrize(
    ("triggers", "expected"),
    [
        ([], [*DECISIONS, END]),
        ([Trigger.ON_TOOL_WRITE], [*DECISIONS, "on_tool_write", END]),
        ([Trigger.ON_TOOL_WRITE_COMPLETE], [*DECISIONS, "on_tool_write_complete"]),
        ([Trigger.BEFORE_STEP], ["decision", "before_step", "decision", END]),
        ([Trigger.AFTER_STEP], [*DECISIONS, "after_step"]),
        ([Trigger.ON_ERROR], [*DECISIONS, END]),
        ([Trigger.BEFORE_APPLY], [*DECISIONS, END]),
        ([Trigger.ON_SUBPLAN_SPAWN, Trigger.AFTER_SUBPLAN], [*DECISIONS, END]),
        (DEFAULT_TRIGGERS, [*DECISIONS, "on_tool_write", "on_tool_write_complete"]),
        (
            Trigger,
            [
                "decision",
                "before_step",
                "decision",
                "on_tool_write",
                "on_tool_write_complete",
                "after_step",
            ],
        ),
    ],
)
def test_each_trigger_adds_its_groups_and_no_others(
    triggers: Iterable[Trigger], expected: list[str]
) -> None:
    world = ServiceWorld(append("a"), triggers=triggers)

    world.run()

    assert world.reasons == expected


@pytest.mark.parametrize(
    ("triggers", "expected"),
    [
        ([], DECISIONS),
        ([Trigger.ON_ERROR], [*DECISIONS, "on_error"]),
        ([Trigger.AFTER_STEP, Trigger.ON_TOOL_WRITE_COMPLETE], DECISIONS),
        ([Trigger.ON_TOOL_WRITE, Trigger.ON_ERROR], [*DECISIONS, "on_tool_write", "on_error"]),
    ],
)
def test_a_step_that_fails_has_the_groups_of_a_failure(
    triggers: Iterable[Trigger], expected: list[str]
) -> None:
    world = ServiceWorld(append("a"), triggers=triggers)
    world.tools.broken.add("a")

    world.run()

    assert world.reasons == expected


def test_a_tool_that_only_reads_fires_no_write_trigger() -> None:
    world = ServiceWorld(look())

    world.run()

    assert world.reasons == [*DECISIONS, END]
    assert world.calls[0].result.values == {"size": 4}
    assert world.plan.last_completed_step == 0


def test_a_group_has_a_checkpoint_only_of_what_changed() -> None:
    world = ServiceWorld(
        append("a"), append("b"), resources=(a_resource("code"), a_resource("docs"))
    )
    world.run()

    rows = {group.label: [c.resource for c in group.checkpoints] for group in world.groups}
    assert rows["start"] == ["code", "docs", "plan"]
    assert rows["decision 1: add a"] == ["plan"]
    assert rows["before append add a"] == ["plan"]
    assert rows["after append add a"] == ["code", "plan"]
    assert rows["decision 2: add b"] == ["plan"]
    assert rows["after append add b"] == ["code", "plan"]


@pytest.mark.parametrize("broken", [False, True])
def test_a_plan_without_rollback_policy_makes_no_group_but_does_its_steps(*, broken: bool) -> None:
    world = ServiceWorld(rollback_policy=RollbackPolicy(enabled=False), triggers=Trigger)
    if broken:
        world.tools.broken.add("b")
        world.run()
        assert world.plan.state is State.ERRORED
        world.tools.broken.clear()

    world.run()

    assert world.plan.state is State.COMPLETE
    assert world.files() == after("a", "b", "c")
    assert [group for group in world.groups if group.label != "before resume"] == []


# --- the end ------------------------------------------------------------------------------------


def test_a_plan_that_did_all_its_steps_is_complete() -> None:
    world = ServiceWorld()

    plan = world.run()

    assert plan == world.plan
    assert (plan.phase, plan.state, plan.last_completed_step) == (
        Phase.EXECUTE,
        State.COMPLETE,
        2,
    )
    assert plan.head == world.groups[-1].head
    assert plan.actor_state == {"seen": ["add a", "add b", "add c"]}
    assert plan.started_at and plan.finished_at and plan.started_at < plan.finished_at
    assert world.files() == after("a", "b", "c")


def test_executing_a_complete_plan_again_changes_nothing() -> None:
    world = ServiceWorld()
    world.run()
    tables, files = world.tables.copy(), world.all_files()
    world.files()["by hand.txt"] = "mine"
    world.restart()
    world.events.events.clear()

    plan = world.run()

    assert plan.state is State.COMPLETE
    assert world.tables == tables
    assert world.all_files() != files
    assert world.files()["by hand.txt"] == "mine"
    assert set(world.faults.calls) == {"read"}
    assert world.events.events == []


def test_what_happened_is_told_in_its_order() -> None:
    world = ServiceWorld(append("a"), look(), triggers=[])

    world.run()

    told = [event for event in world.events.events if not isinstance(event, CheckpointRecorded)]
    assert told[1:] == [
        PlanStarted(plan=world.plan.name, steps=("add a", "look"), first_step=0),
        StepStarted(step_index=0, name="add a", tool="append"),
        StepFinished(step_index=0, name="add a", files_changed=2),
        StepStarted(step_index=1, name="look", tool="look"),
        StepFinished(step_index=1, name="look"),
        PlanFinished(plan=world.plan.name, state="complete"),
    ]


# --- errors -------------------------------------------------------------------------------------


@pytest.fixture
def errored() -> ServiceWorld:
    world = ServiceWorld()
    world.tools.broken.add("b")
    world.run()
    return world


def test_a_step_that_fails_makes_the_plan_errored_with_everything_about_it(
    errored: ServiceWorld,
) -> None:
    plan = errored.plan

    assert (plan.phase, plan.state, plan.last_completed_step) == (Phase.EXECUTE, State.ERRORED, 0)
    assert plan.error is not None
    assert (plan.error.message, plan.error.hint) == ("the tool is broken", "mend it")
    assert (plan.error.code, plan.error.tool, plan.error.step) == ("tool-failed", "append", 1)
    assert plan.error.checkpoint == errored.group("before append add b").head
    assert plan.error.recoverable
    assert plan.finished_at is not None
    assert errored.calls[-1].status is ToolCallStatus.FAILED
    assert errored.calls[-1].error == "the tool is broken"


def test_the_state_in_which_it_failed_is_kept_with_the_boundary_to_resume_from(
    errored: ServiceWorld,
) -> None:
    group = errored.group("error in append add b")
    (state,) = group.resource_states

    assert errored.files()["one.txt"] == "a\nb\n"
    assert state.snapshot != state.boundary
    assert errored.resources[0].boundary == state.boundary
    assert errored.plan.head == group.head


def test_resuming_undoes_the_half_done_step_and_does_it_again(errored: ServiceWorld) -> None:
    errored.tools.broken.clear()

    plan = errored.run()

    assert plan.state is State.COMPLETE
    assert plan.error is None
    assert errored.files() == after("a", "b", "c")


def test_no_step_after_the_one_that_failed_is_run(errored: ServiceWorld) -> None:
    assert errored.listed.asked == [0, 1]
    assert errored.events.of(PlanFinished)[-1].state == "errored"
    assert errored.events.of(StepFinished)[-1].error == "the tool is broken"


def test_an_unknown_tool_is_an_error_of_its_step() -> None:
    world = ServiceWorld(append("a", tool="nothing"))

    world.run()

    assert world.plan.error is not None
    assert world.plan.error.code == "tool-not-found"
    assert world.files() == after()


def test_the_files_are_not_lost_when_old_groups_are_pruned() -> None:
    world = ServiceWorld(*THREE_STEPS, max_states=1)

    world.run()

    assert len(world.groups) == 4
    assert world.checkpoints.damages(world.groups) == {}
    assert world.groups[0].label == "start"
    assert sum(event.pruned for event in world.events.of(CheckpointRecorded)) == 6
