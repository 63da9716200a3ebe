"""A plan is complete together with the group that holds its state; steps that nobody announced."""

from collections.abc import Mapping
from typing import Any

import pytest
from service_world import ServiceWorld, after, append, look

from cleveragents.domain.action import Action, ActorSpec, RollbackPolicy
from cleveragents.domain.actor_protocol import (
    UNANNOUNCED,
    Finished,
    Memory,
    Proposal,
    Situation,
    StepOutcome,
    Strategy,
    Unannounced,
)
from cleveragents.domain.checkpoint import DEFAULT_TRIGGERS, CheckpointReason, Trigger
from cleveragents.domain.errors import (
    InterruptedPlanError,
    SnapshotFailedError,
    ToolNotEndedError,
)
from cleveragents.domain.plan import State

SPEC = ActorSpec(type="silent")
MOST_CALLS = 300


class Silent:
    """Writes its lines one by one when it is asked, and says so afterwards; or says so only."""

    def __init__(self, *lines: str) -> None:
        self.lines = lines
        self.world: ServiceWorld | None = None

    def strategize(self, situation: Situation) -> Strategy:
        return Strategy(steps=())

    def decide(self, situation: Situation) -> Proposal | Unannounced | Finished:
        assert self.world is not None
        done = int(situation.state.get("asked", 0))
        if done >= len(self.lines):
            return Finished(memory=Memory(state={**situation.state, "end": True}))
        line, files = self.lines[done], self.world.files()
        if not line:  # nothing happens, so that nothing can be remembered either
            self.lines = (*self.lines[:done], *self.lines[done + 1 :])
        else:
            files["one.txt"] = files.get("one.txt", "") + line
            files["two.txt"] = line
        return Unannounced(memory=Memory(state={"asked": done + 1}), said=f"wrote {line}")

    def observe(self, action: Action, state: Mapping[str, Any], outcome: StepOutcome) -> Memory:
        assert outcome.step.tool == UNANNOUNCED
        return Memory(state={**state, "heard": outcome.step_index})


def silent(*lines: str, **fields: Any) -> ServiceWorld:
    actor = Silent(*lines)
    world = ServiceWorld(decider=actor, **{"actor": SPEC, **fields})
    actor.world = world
    return world


def changes_nothing(world: ServiceWorld) -> None:
    assert world.plan.state is State.COMPLETE
    before, calls, decided = dict(world.files()), world.calls, world.decisions
    state = (world.plan.last_completed_step, world.plan.actor_state, world.plan.attempt)
    assert world.plan.head is not None

    told = world.roll_back(world.plan.head)

    assert told.reverted == ()
    assert (world.files(), world.calls, world.decisions) == (before, calls, decided)
    assert (world.plan.last_completed_step, world.plan.actor_state, world.plan.attempt) == state


# --- the last group -------------------------------------------------------------------------------


@pytest.mark.parametrize("steps", [(append("a"),), (append("a"), look()), (look(),)])
@pytest.mark.parametrize("triggers", [DEFAULT_TRIGGERS, (), Trigger])
def test_going_back_to_where_a_complete_plan_stands_changes_nothing(
    steps: Any, triggers: Any
) -> None:
    world = ServiceWorld(*steps, triggers=triggers)
    world.run()
    changes_nothing(world)


def test_a_group_that_holds_everything_already_is_the_last_one() -> None:
    world = ServiceWorld(append("a"))
    world.run()
    assert world.reasons[-1] == "on_tool_write_complete"
    assert world.plan.head == world.groups[-1].head


def test_a_change_that_no_step_has_told_is_in_the_last_group() -> None:
    """Whatever wrote it: a complete plan is what its last group holds."""
    world = ServiceWorld(append("a"), look())
    world.tools.then = lambda: world.files().update(late="late")
    world.run()

    last = world.groups[-1]
    assert (last.reason, last.label) == (CheckpointReason.COMPLETE, "complete")
    changes_nothing(world)
    assert world.files()["late"] == "late"


def test_complete_and_the_last_group_are_one_transaction() -> None:
    world = ServiceWorld(append("a"), look())
    world.run()
    for tables in world.database.history:
        plan = tables.plans[world.plan_id]
        if plan.state is State.COMPLETE:
            assert plan.head == world.groups[-1].head
            assert plan.head in {g.head for g in tables.groups.values()}


def test_a_plan_whose_last_state_cannot_be_captured_is_not_complete() -> None:
    world = ServiceWorld(append("a"))
    first = ServiceWorld(append("a"))
    first.run()
    captures = first.faults.calls.count("capture")
    error = SnapshotFailedError("no snapshot could be taken", "try again")
    world.faults.fail("capture", *[None] * (captures - 1), error)

    with pytest.raises(SnapshotFailedError):
        world.run()

    assert world.plan.state is State.ERRORED
    world.run()
    assert world.files() == after("a")
    changes_nothing(world)


def test_without_groups_the_boundary_is_the_end() -> None:
    world = ServiceWorld(append("a"), look(), rollback_policy=RollbackPolicy(enabled=False))
    world.run()
    assert world.groups == []
    assert world.plan.state is State.COMPLETE
    (resource,) = world.resources
    assert world.snapshots.versions[resource.resource_id][resource.boundary or ""] == after("a")


# --- what still runs ------------------------------------------------------------------------------


def last_words(world: ServiceWorld) -> None:
    """Whatever is ended writes once more in that moment."""
    world.tools.at_end = lambda: world.files().update(late="last words")


def held(world: ServiceWorld) -> dict[str, str]:
    """The files of the newest group."""
    (resource,) = world.resources
    state = world.groups[-1].state_of(resource.resource_id)
    assert state is not None
    return world.snapshots.versions[resource.resource_id][state.snapshot]


@pytest.mark.parametrize("steps", [(append("a"),), (append("a"), look())])
def test_all_that_runs_is_ended_before_the_last_group(steps: Any) -> None:
    world = ServiceWorld(*steps)
    last_words(world)
    world.run()
    assert held(world)["late"] == "last words"
    changes_nothing(world)


def test_what_cannot_be_ended_keeps_a_plan_from_being_complete() -> None:
    world = ServiceWorld(append("a"))
    error = ToolNotEndedError("the server")
    world.faults.fail("end what runs", error, error, error)
    with pytest.raises(ToolNotEndedError):
        world.run()
    # Nor is there a group that it might not be true of any more.
    assert world.reasons[-1] == "on_tool_write_complete"
    assert world.plan.state is State.ERRORED
    world.run()
    changes_nothing(world)


def test_all_that_runs_is_ended_before_the_group_of_an_error() -> None:
    world = ServiceWorld(append("a"))
    world.tools.broken.add("a")
    last_words(world)
    world.run()
    assert world.reasons[-1] == "on_error"
    assert held(world)["late"] == "last words"


def test_all_that_runs_is_ended_before_an_actor_s_error_is_recorded() -> None:
    world = silent("a")
    last_words(world)
    error = SnapshotFailedError("no snapshot could be taken", "try again")
    world.faults.fail("capture", None, None, None, error)
    with pytest.raises(SnapshotFailedError):
        world.run()
    assert world.reasons[-1] == "on_error"
    assert held(world)["late"] == "last words"


def test_all_that_runs_is_ended_before_an_interrupted_step_is_undone() -> None:
    world = ServiceWorld(append("a"), append("b"))
    last_words(world)
    world.faults.fail("run a tool", None, KeyboardInterrupt())
    with pytest.raises(InterruptedPlanError):
        world.run()
    assert world.files() == after("a")


def test_all_that_a_compensation_started_is_ended_before_the_files_are_restored() -> None:
    world = ServiceWorld(append("a", tool="hire"))
    world.run()
    last_words(world)
    world.faults.calls.clear()
    world.roll_back("start")
    calls = world.faults.calls
    assert calls.index("run a tool") < calls.index("end what runs") < calls.index("restore")
    assert world.files() == after()


# --- steps that nobody announced ------------------------------------------------------------------


def test_what_an_actor_did_without_a_word_is_a_step_named_after_what_changed() -> None:
    world = silent("a", "b")
    world.run()

    assert [d.chosen for d in world.decisions[1:]] == [f"{UNANNOUNCED}: one.txt, 1 more"] * 2
    assert world.reasons == [
        "decision",
        *["decision", "on_tool_write", "on_tool_write_complete"] * 2,
        "complete",
    ]
    assert [[c.path for c in call.changes] for call in world.calls] == [["one.txt", "two.txt"]] * 2
    assert [call.result.output for call in world.calls] == ["wrote a", "wrote b"]
    assert world.plan.actor_state["heard"] == 1
    changes_nothing(world)


def test_where_nothing_changed_there_was_no_step() -> None:
    world = silent("", "a", "")
    world.run()
    assert len(world.calls) == 1
    changes_nothing(world)


def test_the_groups_before_it_hold_what_was_there_before() -> None:
    for label, text in (
        ("decision 1: one.txt, 1 more", None),
        ("decision 2: one.txt, 1 more", "a"),
    ):
        world = silent("a", "b")
        world.run()
        world.roll_back(label)

        assert world.files().get("one.txt") == text
        # Nobody decided it before it was done, so that nothing waits to be carried out.
        assert len(world.decisions) - 1 == len(world.calls) == (text is not None)


@pytest.mark.parametrize("triggers", [(), (Trigger.BEFORE_STEP, Trigger.AFTER_STEP)])
def test_the_groups_before_it_are_right_whatever_groups_there_are(triggers: Any) -> None:
    world = silent("a", "b", "c", triggers=triggers)
    world.run()
    for number, text in enumerate(("", "a", "ab")):
        world.roll_back(f"decision {number + 1}: one.txt, 1 more")
        assert world.files().get("one.txt", "") == text


def test_a_kill_at_any_moment_leaves_the_whole_step_or_nothing_of_it() -> None:
    for number in range(1, MOST_CALLS):
        world = silent("a", "b", triggers=())
        killed = world.kill_at(number, world.run)
        assert len(world.decisions[1:]) == len(world.calls)
        if world.plan.state is State.COMPLETE:
            assert world.groups[-1].head == world.plan.head
        world.run()
        assert world.files()["one.txt"] == "ab"
        assert [c.step_index for c in world.calls] == [0, 1]
        changes_nothing(world)
        if not killed:
            return
    pytest.fail("the work does not end")


def test_it_may_do_more_than_it_may_ask_for() -> None:
    spec = ActorSpec(type="silent", max_steps=1)
    world = silent("a", "b", "c", actor=spec)
    world.run()
    assert world.plan.state is State.COMPLETE
