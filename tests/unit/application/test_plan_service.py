"""Making a plan from an action, all or nothing, and ending one by hand."""

import pytest
from msgspec.structs import replace
from service_world import CODE, DOCS, TWO_PLACES, ServiceWorld, after, resource

from cleveragents.domain.decision import DecisionType
from cleveragents.domain.errors import (
    DatabaseBusyError,
    PlanAppliedError,
    PlanCancelledError,
    PlanLockedError,
    PlanNotFoundError,
    ResourceError,
)
from cleveragents.domain.ids import PlanId
from cleveragents.domain.plan import Phase, State
from cleveragents.domain.resource import SandboxStatus
from cleveragents.domain.resource_kinds import GIT_CHECKOUT

UNUSABLE = ResourceError("it is no repository", "run git init")


@pytest.fixture
def world() -> ServiceWorld:
    return ServiceWorld(*TWO_PLACES, resources=(CODE, DOCS))


# --- use ----------------------------------------------------------------------------------------


def test_a_plan_its_resources_and_its_root_decision_are_stored_together(
    world: ServiceWorld,
) -> None:
    (tables,) = world.database.history

    plan = tables.plans[world.plan_id]
    assert (plan.phase, plan.state) == (Phase.STRATEGIZE, State.QUEUED)
    assert plan.action == world.action
    assert [r.name for r in tables.resources.values()] == ["code", "docs"]
    (root,) = tables.decisions.values()
    assert root.type is DecisionType.PROMPT_DEFINITION
    assert root.chosen == "Do it"
    assert (root.parent_id, root.step_index) == (None, None)
    assert root.position == plan.here


def test_a_resource_is_stored_with_what_was_found_out_about_it() -> None:
    spec = resource("code", include=(".env",), exclude=("target/",), checkpointable=False)
    world = ServiceWorld(resources=(spec,))

    (stored,) = world.resources
    assert stored.type is GIT_CHECKOUT.type
    assert (stored.location, stored.base) == ("/projects/code", "base")
    assert stored.sandbox_path == f"/sandboxes/{world.plan_id}/code"
    assert (stored.include, stored.exclude, stored.checkpointable) == (
        (".env",),
        ("target/",),
        False,
    )
    assert stored.status is SandboxStatus.PENDING
    assert stored.boundary is None


def test_no_sandbox_is_made_before_the_plan_is_executed(world: ServiceWorld) -> None:
    assert world.disk.sandboxes == {}


def test_notices_are_passed_on_with_the_resource_they_are_about(world: ServiceWorld) -> None:
    used = world.plans.use("a.yaml", {}, include_uncommitted=True)

    assert used.notices == (
        "code: takes uncommitted work along",
        "docs: takes uncommitted work along",
    )
    assert [r.name for r in used.resources] == ["code", "docs"]


@pytest.mark.parametrize("error", [UNUSABLE, KeyboardInterrupt()])
def test_if_a_resource_cannot_be_used_nothing_is_created(
    world: ServiceWorld, error: BaseException
) -> None:
    tables = world.tables.copy()
    world.faults.fail("inspect docs", error)

    with pytest.raises(type(error)):
        world.plans.use("a.yaml", {}, include_uncommitted=False)

    assert world.tables == tables
    assert world.sandboxes.released == ["code"]


def test_if_the_plan_cannot_be_stored_what_was_pinned_is_let_go(world: ServiceWorld) -> None:
    tables = world.tables.copy()
    world.faults.fail("commit", DatabaseBusyError("x"))

    with pytest.raises(DatabaseBusyError):
        world.plans.use("a.yaml", {}, include_uncommitted=False)

    assert world.tables == tables
    assert world.sandboxes.released == ["code", "docs"]


def test_a_path_that_cannot_be_stored_is_refused(world: ServiceWorld) -> None:
    spec = replace(CODE, location="/projects/\udcff")
    world.action = replace(world.action, resources=(spec,))
    world.restart()

    with pytest.raises(ResourceError, match="not UTF-8"):
        world.plans.use("a.yaml", {}, include_uncommitted=False)
    assert len(world.tables.plans) == 1


def test_one_thing_under_two_names_is_refused_and_let_go() -> None:
    world = ServiceWorld(resources=(CODE, DOCS))
    world.action = replace(world.action, resources=(CODE, replace(DOCS, location=CODE.location)))
    world.restart()

    with pytest.raises(ResourceError, match="`code` and `docs` are the same"):
        world.plans.use("a.yaml", {}, include_uncommitted=False)

    assert len(world.tables.plans) == 1
    assert world.sandboxes.released == ["code", "docs"]


# --- cancel -------------------------------------------------------------------------------------


def test_a_cancelled_plan_is_final_and_its_work_stays_where_it_is(world: ServiceWorld) -> None:
    world.run()

    cancelled = world.plans.cancel(world.plan_id)

    assert cancelled.plan == world.plan
    assert world.plan.state is State.CANCELLED
    assert world.plan.finished_at is not None
    assert cancelled.kept == {
        name: f"/sandboxes/{world.plan_id}/{name}" for name in ("code", "docs")
    }
    assert world.files() == after("a", "c")
    assert world.sandboxes.released == []
    with pytest.raises(PlanCancelledError):
        world.run()


def test_cancelling_a_plan_that_never_ran_lets_go_of_what_it_pinned(world: ServiceWorld) -> None:
    cancelled = world.plans.cancel(world.plan_id)

    assert cancelled.kept == {}
    assert world.sandboxes.released == ["code", "docs"]


def test_a_plan_whose_process_died_can_be_cancelled(world: ServiceWorld) -> None:
    world.kill_at(40, world.run)
    assert world.plan.state is State.PROCESSING

    world.plans.cancel(world.plan_id)

    assert world.plan.state is State.CANCELLED


def test_a_final_unknown_or_busy_plan_cannot_be_cancelled(world: ServiceWorld) -> None:
    world.locks.holders[world.plan_id] = "execute"
    with pytest.raises(PlanLockedError):
        world.plans.cancel(world.plan_id)
    world.locks.holders.clear()

    with pytest.raises(PlanNotFoundError):
        world.plans.cancel(PlanId(world.ids.new()))

    world.run()
    world.apply()
    with pytest.raises(PlanAppliedError):
        world.plans.cancel(world.plan_id)
    assert world.plan.state is State.APPLIED
