"""A tool that writes runs only where its effects can be taken back, unless the plan says so."""

import pytest
from service_world import DEFAULT_TIMEOUT, DOCS, ServiceWorld, after, append, look
from service_world import resource as a_resource

from cleveragents.domain.action import RollbackPolicy, ToolSpec
from cleveragents.domain.plan import State

FIXED = a_resource("code", checkpointable=False)
OPEN_POLICIES = [
    RollbackPolicy(require_checkpoints=False),
    RollbackPolicy(enabled=False),
]


def refusal(world: ServiceWorld) -> str:
    """The world's only step was refused: nothing ran, and the plan says why."""
    world.run()
    plan = world.plan
    assert plan.state is State.ERRORED
    assert plan.error is not None
    assert plan.error.code == "tool-refused"
    assert "require_checkpoints" in plan.error.hint
    assert world.tools.contexts == []
    assert "on_tool_write" not in world.reasons
    return plan.error.message


def test_a_tool_that_cannot_be_checkpointed_is_refused() -> None:
    assert "untraceable" in refusal(ServiceWorld(append("a", tool="untraceable")))


def test_a_write_to_a_resource_that_cannot_be_checkpointed_is_refused() -> None:
    assert "`code`" in refusal(ServiceWorld(append("a"), resources=(FIXED, DOCS)))


def test_a_tool_bound_to_such_a_resource_is_refused() -> None:
    spec = ToolSpec(name="own", writes=True, resource="code")

    message = refusal(
        ServiceWorld(append("a", None, tool="own"), resources=(FIXED, DOCS), tools=(spec,))
    )

    assert "own writes to `code`" in message


def test_a_tool_whose_write_scope_names_such_a_resource_is_refused() -> None:
    spec = ToolSpec(name="own", writes=True, resource="docs", write_scope=("code",))

    message = refusal(
        ServiceWorld(append("a", None, tool="own"), resources=(FIXED, DOCS), tools=(spec,))
    )

    assert "own writes to `code`" in message


def test_the_only_resource_need_not_be_named_to_be_protected() -> None:
    refusal(ServiceWorld(append("a", resource=None), resources=(FIXED,)))


@pytest.mark.parametrize("policy", OPEN_POLICIES)
def test_a_plan_that_does_not_require_checkpoints_may_run_them(policy: RollbackPolicy) -> None:
    world = ServiceWorld(append("a", tool="untraceable"), rollback_policy=policy)
    other = ServiceWorld(append("a"), resources=(FIXED, DOCS), rollback_policy=policy)

    for done in (world, other):
        done.run()
        assert done.plan.state is State.COMPLETE
        assert done.files() == after("a")


def test_reading_is_never_refused() -> None:
    spec = ToolSpec(name="look at it", checkpointable=False, resource="code")
    world = ServiceWorld(look(), append("a", tool="look at it"), resources=(FIXED,), tools=(spec,))

    world.run()

    assert world.plan.state is State.COMPLETE


def test_a_write_elsewhere_is_not_refused_because_of_another_resource() -> None:
    world = ServiceWorld(append("a", "docs"), resources=(FIXED, DOCS))

    world.run()

    assert world.plan.state is State.COMPLETE


def test_a_tool_sees_all_sandboxes_and_has_its_own_time_or_the_default() -> None:
    world = ServiceWorld(
        append("a"), append("b", tool="slow"), resources=(a_resource("code"), DOCS)
    )

    world.run()

    first, second = world.tools.contexts
    assert first.plan_id == world.plan_id
    assert {name: address.value for name, address in first.sandboxes.items()} == {
        "code": f"/sandboxes/{world.plan_id}/code",
        "docs": f"/sandboxes/{world.plan_id}/docs",
    }
    assert (first.timeout, second.timeout) == (DEFAULT_TIMEOUT, 7.0)
