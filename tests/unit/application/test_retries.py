"""A failed step is tried again from its boundary, where that repeats nothing outside."""

import pytest
from service_world import ServiceWorld, after, append, look
from service_world import resource as a_resource
from test_acting import Thinker, thinking

from cleveragents.domain.action import RollbackPolicy, ToolSpec
from cleveragents.domain.decision import ToolCallStatus
from cleveragents.domain.errors import (
    PathOutsideSandboxError,
    ToolArgumentError,
    ToolError,
    ToolNotEndedError,
    ToolTimeoutError,
)
from cleveragents.domain.plan import State
from cleveragents.domain.retries import may_retry, pause_before


def failing(world: ServiceWorld, times: int, error: ToolError | None = None) -> ServiceWorld:
    """Each try writes its first file, and then fails."""
    trouble = error or ToolError("no luck", "try again")
    world.faults.fail("wrote a file", *[trouble] * times)
    return world


def statuses(world: ServiceWorld) -> list[str]:
    return [call.status.value for call in world.calls]


def test_a_step_that_fails_is_tried_again_from_its_boundary() -> None:
    world = failing(ServiceWorld(append("a"), retries=2), 2)

    assert world.run().state is State.COMPLETE

    assert world.files() == after("a")
    assert statuses(world) == ["failed", "failed", "succeeded"]
    assert {call.decision_id for call in world.calls} == {world.decisions[-1].decision_id}
    assert "on_error" not in world.reasons
    assert world.reasons.count("on_tool_write") == 3
    assert world.clock.pauses == [0.1, 0.2]


def test_giving_up_makes_one_group_and_keeps_every_try_on_record() -> None:
    world = failing(ServiceWorld(append("a"), retries=2), 9)

    assert world.run().state is State.ERRORED

    assert statuses(world) == ["failed"] * 3
    assert world.reasons.count("on_error") == 1
    world.faults.errors.clear()
    assert world.run().state is State.COMPLETE
    assert world.files() == after("a")


def test_without_a_word_nothing_is_tried_again() -> None:
    world = failing(ServiceWorld(append("a")), 1)
    assert world.run().state is State.ERRORED
    assert statuses(world) == ["failed"]


@pytest.mark.parametrize(("action", "setting", "calls"), [(1, 0, 2), (0, 5, 1), (None, 1, 2)])
def test_the_action_decides_before_the_setting(
    action: int | None, setting: int, calls: int
) -> None:
    world = ServiceWorld(append("a"), retries=setting, max_retries_per_step=action)
    failing(world, 9).run()
    assert len(world.calls) == calls


def test_a_timeout_counts_as_a_failure() -> None:
    world = failing(ServiceWorld(append("a"), retries=1), 1, ToolTimeoutError("append", 1.0))
    assert world.run().state is State.COMPLETE


def test_an_outside_effect_is_tried_again_only_by_an_idempotent_tool() -> None:
    once = failing(ServiceWorld(append("a", tool="publish"), retries=3), 1)
    assert once.run().state is State.ERRORED
    assert len(once.calls) == 1

    again = failing(ServiceWorld(append("a", tool="put"), retries=3), 1)
    assert again.run().state is State.COMPLETE
    assert [effect.state.value for effect in again.effects] == ["uncertain", "done"]


def test_what_cannot_be_put_back_is_not_tried_again() -> None:
    fixed = a_resource("code", checkpointable=False)
    free = RollbackPolicy(require_checkpoints=False)
    world = ServiceWorld(append("a"), resources=(fixed,), rollback_policy=free, retries=3)
    assert failing(world, 1).run().state is State.ERRORED


def test_reading_may_always_be_tried_again() -> None:
    fixed = a_resource("code", checkpointable=False)
    world = ServiceWorld(look(), resources=(fixed,), retries=1)
    world.faults.fail("run a tool", ToolError("busy", "wait"))
    assert world.run().state is State.COMPLETE


@pytest.mark.parametrize(
    "error",
    [
        ToolArgumentError("append", "no"),
        PathOutsideSandboxError("..", "no"),
        ToolNotEndedError("append"),
    ],
)
def test_what_would_be_refused_again_is_not_tried_again(error: ToolError) -> None:
    spec = ToolSpec(name="append", writes=True, idempotent=True)
    assert not may_retry(spec, error, captured=True)


def test_a_step_that_may_still_write_fails_the_plan_whoever_decides() -> None:
    world = thinking(Thinker())
    world.faults.fail("wrote a file", None, None, ToolNotEndedError("append"))
    plan = world.run()

    assert plan.state is State.ERRORED
    assert plan.error is not None
    assert plan.error.code == "tool-not-ended"
    assert statuses(world)[-1] == "failed"


def test_pauses_grow_but_stay_short() -> None:
    assert [pause_before(tries) for tries in range(1, 8)] == [0.1, 0.2, 0.4, 0.8, 1.6, 2.0, 2.0]


def test_an_interrupted_pause_leaves_the_step_undone() -> None:
    world = failing(ServiceWorld(append("a"), retries=1), 1)

    def interrupted(seconds: float) -> None:
        raise KeyboardInterrupt

    world.clock.pause = interrupted
    with pytest.raises(BaseException, match="interrupted"):
        world.run()
    assert world.plan.state is State.QUEUED
    assert world.files() == after()
    assert [call.status for call in world.calls] == [ToolCallStatus.FAILED]
