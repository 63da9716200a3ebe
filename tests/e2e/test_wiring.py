"""The known way to fail: every part exists and none is wired. Nothing here is replaced."""

import inspect
from typing import Any

import pytest
from tests.support.containers import make_container
from tests.support.trees import tree_of
from tests.support.world import World, action, shell, write

from cleveragents.application.services.checkpoints.checkpoint_service import CheckpointService
from cleveragents.application.services.execute.plan_executor import PlanExecutor
from cleveragents.application.services.execute.tool_runner import ToolRunner
from cleveragents.application.services.subplans.merger import SubplanMerger
from cleveragents.application.services.subplans.subplan_service import SubplanService
from cleveragents.domain.plan import State


def test_executing_through_the_container_makes_groups_and_sets_the_head(world: World) -> None:
    container = make_container(world)
    path = world.write_action(action(write("a", "1", "one"), shell("echo 2 > b", "two")))
    plan_id = container.plan_service.use(path, {}, include_uncommitted=False).plan.plan_id
    plan = container.plan_resume_service.run(plan_id)
    groups = container.checkpoint_service.list_checkpoints(plan_id)
    assert plan.state is State.COMPLETE
    assert len(groups) == 1 + 3 * 2
    assert plan.head == groups[-1].head
    assert container.plan_queries.get(plan_id).head == plan.head
    found = container.checkpoint_service.get_checkpoint(plan_id, groups[0].group_id)
    assert found == groups[0]


def test_a_rollback_through_the_container_moves_files(world: World) -> None:
    container = make_container(world)
    path = world.write_action(action(write("a", "1", "one")))
    plan_id = container.plan_service.use(path, {}, include_uncommitted=False).plan.plan_id
    container.plan_resume_service.run(plan_id)
    result = container.rollback_service.rollback(plan_id, "start", lambda _: True)
    sandbox = container.plan_queries.status(plan_id).resources[0].sandbox_path
    assert [item.file for item in result.reverted] == ["a"]
    assert tree_of(world.top / sandbox) == world.replay([])[0]


def test_all_services_of_a_container_share_one_checkpoint_service(world: World) -> None:
    container = make_container(world)
    shared = container.checkpoint_service
    assert isinstance(shared, CheckpointService)
    assert container.plan_resume_service._executor._checkpoints is shared
    executor = container.plan_resume_service._executor
    for runner in (executor._tools, executor._children):
        assert isinstance(runner, ToolRunner | SubplanService)
        assert runner._checkpoints is shared
    assert container.rollback_service._checkpoints is shared
    assert container.apply_service._checkpoints is shared
    assert container.manual_checkpoints._checkpoints is shared


@pytest.mark.parametrize("service", [PlanExecutor, ToolRunner, SubplanService, SubplanMerger])
def test_no_service_that_writes_can_be_built_without_checkpoints(service: type[Any]) -> None:
    names = list(inspect.signature(service).parameters)
    (needed,) = [name for name in names if name.strip("_") == "checkpoints"]
    others = {name: object() for name in names if name != needed}
    with pytest.raises(TypeError, match="checkpoints"):
        service(**others)
