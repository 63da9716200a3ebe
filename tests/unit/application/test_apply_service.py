"""Apply: everything is merged and checked first, and only then is the project changed."""

import pytest
from fake_tables import Tables
from fakes import Killed
from msgspec.structs import replace
from service_world import CODE, DOCS, OPTIONS, TWO_PLACES, ServiceWorld, after, append

from cleveragents.application.services.apply.apply_service import ApplyQuestion
from cleveragents.domain.checkpoint import Trigger
from cleveragents.domain.errors import (
    ApplyConflictError,
    ApplyEditsKeptError,
    ApplyPendingError,
    ApplyRefusedError,
    DeclinedError,
    InterruptedApplyError,
    PlanAppliedError,
    PlanCancelledError,
    PlanError,
    PlanLockedError,
    PlanStateError,
    SandboxError,
    SandboxMissingError,
)
from cleveragents.domain.plan import Phase, State
from cleveragents.domain.resource import SandboxStatus
from cleveragents.domain.resource_kinds import SQLITE

CONFLICT = ApplyConflictError("p", "docs", ["one.txt"], "both changed it")
REFUSED = ApplyRefusedError("a merge is going on", "finish it")


@pytest.fixture
def world() -> ServiceWorld:
    made = ServiceWorld(*TWO_PLACES, resources=(CODE, DOCS))
    made.run()
    made.restart()
    return made


def projects(world: ServiceWorld) -> tuple[dict[str, str], dict[str, str]]:
    return world.project("code"), world.project("docs")


UNTOUCHED = (after(), after())
CHANGED = (after("a", "c"), after("b"))


def test_what_the_sandboxes_hold_reaches_the_project(world: ServiceWorld) -> None:
    result = world.apply()

    assert projects(world) == CHANGED
    assert result.plan == world.plan
    assert (world.plan.phase, world.plan.state) == (Phase.APPLY, State.APPLIED)
    assert world.plan.applied == {"code": "commit of code", "docs": "commit of docs"}
    assert world.plan.finished_at is not None
    assert result.refs == {"code": "commit of code", "docs": "commit of docs"}
    assert {name: diff.patch for name, diff in result.diffs.items()} == result.refs
    assert world.sandboxes.prepared_with == [OPTIONS, OPTIONS]


def test_everything_is_prepared_and_the_intent_stored_before_anything_is_changed(
    world: ServiceWorld,
) -> None:
    world.apply()

    order = [
        call
        for call in world.faults.calls
        if call == "commit" or call.startswith(("prepare", "carry out"))
    ]
    assert order[:5] == [
        "prepare code",
        "prepare docs",
        "commit",
        "carry out code",
        "carry out docs",
    ]
    intended = next(t for t in world.database.history if _intends(t))
    assert all(resource.intent is not None for resource in intended.resources.values())
    assert intended.plans[world.plan_id].state is State.PROCESSING


def _intends(tables: Tables) -> bool:
    return all(resource.intent is not None for resource in tables.resources.values())


def test_databases_are_changed_last() -> None:
    first = replace(CODE, name="db", location="/projects/db", type=SQLITE.type)
    world = ServiceWorld(append("a"), append("b", "db"), resources=(first, CODE))
    world.run()

    world.apply()

    assert world.sandboxes.carried_out == ["code", "db"]


def test_what_is_not_needed_any_more_is_removed(world: ServiceWorld) -> None:
    result = world.apply()

    assert world.disk.sandboxes == {}
    assert [resource.status for resource in world.resources] == [SandboxStatus.REMOVED] * 2
    assert world.snapshots.forgotten == [world.plan_id]
    assert result.kept == {}


def test_a_sandbox_with_files_that_exist_nowhere_else_stays(world: ServiceWorld) -> None:
    world.sandboxes.left_in_sandbox = ("secret.env",)

    result = world.apply()

    assert set(result.kept) == {"code", "docs"}
    assert set(result.kept.values()) == set(world.disk.sandboxes)
    assert world.snapshots.forgotten == []


def test_the_person_is_shown_every_diff_before_anything_is_stored(world: ServiceWorld) -> None:
    tables, shown = world.tables.copy(), {}

    def no(question: ApplyQuestion) -> bool:
        shown.update(question.diffs)
        return False

    with pytest.raises(DeclinedError):
        world.applies.apply(world.plan_id, OPTIONS, no)

    assert {name: len(diff.files) for name, diff in shown.items()} == {"code": 2, "docs": 2}
    assert world.tables == tables
    assert projects(world) == UNTOUCHED


# --- conflicts ----------------------------------------------------------------------------------


@pytest.mark.parametrize("error", [CONFLICT, REFUSED])
@pytest.mark.parametrize("where", ["prepare code", "prepare docs"])
def test_what_cannot_be_merged_leaves_the_project_alone_and_the_plan_constrained(
    world: ServiceWorld, where: str, error: PlanError
) -> None:
    world.faults.fail(where, error)

    with pytest.raises(type(error)):
        world.apply()

    assert projects(world) == UNTOUCHED
    assert world.sandboxes.carried_out == []
    assert (world.plan.phase, world.plan.state) == (Phase.APPLY, State.CONSTRAINED)
    assert world.plan.error is not None
    assert (world.plan.error.code, world.plan.error.message) == (error.code, error.message)
    assert len(world.disk.sandboxes) == 2


def test_a_constrained_plan_can_be_applied_again(world: ServiceWorld) -> None:
    world.faults.fail("prepare docs", CONFLICT)
    with pytest.raises(ApplyConflictError):
        world.apply()

    world.apply()

    assert world.plan.state is State.APPLIED
    assert world.plan.error is None
    assert projects(world) == CHANGED


def test_a_constrained_plan_can_be_rolled_back_and_executed_again(world: ServiceWorld) -> None:
    world.faults.fail("prepare docs", CONFLICT)
    with pytest.raises(ApplyConflictError):
        world.apply()

    world.roll_back("decision 2: add b")
    assert (world.plan.phase, world.plan.state) == (Phase.EXECUTE, State.QUEUED)
    world.run()
    world.apply()

    assert projects(world) == CHANGED


@pytest.mark.parametrize("error", [CONFLICT, REFUSED])
def test_a_project_that_moved_on_since_it_was_merged_withdraws_the_intent(
    world: ServiceWorld, error: PlanError
) -> None:
    world.faults.fail("carry out code", error)

    with pytest.raises(type(error)):
        world.apply()

    assert world.plan.state is State.CONSTRAINED
    assert not any(resource.intent is not None for resource in world.resources)
    assert projects(world) == UNTOUCHED


@pytest.mark.parametrize(
    "error", [CONFLICT, REFUSED, SandboxError("git is gone", "install it"), OSError(28, "full")]
)
def test_if_one_resource_is_refused_at_the_last_moment_none_is_changed(
    world: ServiceWorld, error: Exception
) -> None:
    world.faults.fail("carry out docs", error)

    with pytest.raises(PlanError):
        world.apply()

    assert projects(world) == UNTOUCHED
    assert world.disk.kept == {}
    assert world.plan.state is State.CONSTRAINED
    assert not any(resource.intent is not None for resource in world.resources)
    world.apply()  # the obstacle is gone
    assert projects(world) == CHANGED


def test_ctrl_c_while_the_project_is_changed_takes_everything_back(world: ServiceWorld) -> None:
    world.faults.fail("carry out docs", KeyboardInterrupt())

    with pytest.raises(InterruptedApplyError):
        world.apply()

    assert projects(world) == UNTOUCHED
    assert (world.plan.state, world.disk.kept) == (State.CONSTRAINED, {})


def test_what_the_user_changed_on_top_of_a_part_that_is_taken_back_stays_theirs(
    world: ServiceWorld,
) -> None:
    killed_after_first_resource(world)
    world.project("code")["one.txt"] = "mine"

    with pytest.raises(ApplyEditsKeptError) as raised:
        world.apply()

    assert raised.value.files == ("code: one.txt",)
    assert projects(world) == ({**after(), "one.txt": "mine"}, after())
    assert world.plan.error is not None
    assert world.plan.error.code == "apply-edits-kept"


def test_what_can_be_neither_finished_nor_taken_back_stays_to_be_done(world: ServiceWorld) -> None:
    world.faults.fail("carry out docs", CONFLICT)
    world.faults.fail("take back code", SandboxError("git is gone", "install it"))

    with pytest.raises(ApplyPendingError, match="git is gone"):
        world.apply()

    assert world.plan.state is State.PROCESSING
    assert world.disk.kept != {}
    with pytest.raises(PlanStateError, match="interrupted"):
        world.roll_back("start")
    world.apply()
    assert (projects(world), world.plan.state) == (CHANGED, State.APPLIED)


# --- crashes ------------------------------------------------------------------------------------


def killed_after_first_resource(world: ServiceWorld) -> None:
    world.faults.fail("carried out code", Killed())
    with pytest.raises(Killed):
        world.apply()
    world.restart()
    assert projects(world) == (CHANGED[0], UNTOUCHED[1])


def test_the_stored_tokens_are_carried_out_again_after_a_crash(world: ServiceWorld) -> None:
    killed_after_first_resource(world)
    world.files("code").clear()

    result = world.apply()

    assert projects(world) == CHANGED
    assert "prepare code" not in world.faults.calls
    assert result.plan.state is State.APPLIED


def test_until_then_the_plan_can_be_neither_executed_nor_cancelled(world: ServiceWorld) -> None:
    killed_after_first_resource(world)
    tables = world.tables.copy()

    for command in (world.run, lambda: world.plans.cancel(world.plan_id)):
        with pytest.raises(PlanStateError, match="interrupted"):
            command()
    assert world.tables == tables


def test_a_token_of_an_earlier_apply_is_not_used_for_an_execution_that_died(
    world: ServiceWorld,
) -> None:
    world.faults.fail("carry out code", CONFLICT)
    with pytest.raises(ApplyConflictError):
        world.apply()
    world.roll_back("start")
    world.restart()
    world.faults.fail("run a tool", Killed())
    with pytest.raises(Killed):
        world.run()
    world.restart()
    assert world.plan.state is State.PROCESSING

    with pytest.raises(PlanStateError, match="not done all its steps"):
        world.apply()

    assert projects(world) == UNTOUCHED


def test_what_was_applied_is_not_carried_out_again_over_later_work(world: ServiceWorld) -> None:
    world.faults.fail("remove", Killed())
    with pytest.raises(Killed):
        world.apply()
    world.restart()
    assert world.plan.state is State.APPLIED
    world.project("code")["later.txt"] = "mine"

    with pytest.raises(PlanAppliedError):
        world.apply()

    assert world.project("code")["later.txt"] == "mine"
    assert world.sandboxes.carried_out == ["code", "docs"]


# --- refusals -----------------------------------------------------------------------------------


def test_a_plan_with_steps_left_is_refused() -> None:
    world = ServiceWorld()

    with pytest.raises(PlanStateError):
        world.apply()


def test_an_errored_plan_is_refused() -> None:
    world = ServiceWorld()
    world.tools.broken.add("b")
    world.run()

    with pytest.raises(PlanStateError):
        world.apply()
    assert world.project() == after()


def test_what_was_applied_or_cancelled_is_refused(world: ServiceWorld) -> None:
    world.apply()
    with pytest.raises(PlanAppliedError):
        world.apply()

    world.plan_id = world.plans.use("b.yaml", {}, include_uncommitted=False).plan.plan_id
    world.plans.cancel(world.plan_id)
    with pytest.raises(PlanCancelledError):
        world.apply()


def test_a_plan_in_use_is_refused(world: ServiceWorld) -> None:
    world.locks.holders[world.plan_id] = "execute"

    with pytest.raises(PlanLockedError):
        world.apply()


def test_a_missing_sandbox_is_refused_and_the_plan_stays_complete(world: ServiceWorld) -> None:
    del world.disk.sandboxes[f"/sandboxes/{world.plan_id}/docs"]
    plan = world.plan

    with pytest.raises(SandboxMissingError):
        world.apply()

    assert world.plan == plan
    assert projects(world) == UNTOUCHED


# --- the group before it ------------------------------------------------------------------------


def test_before_apply_makes_a_group_only_if_the_settings_name_it() -> None:
    for triggers, expected in (([Trigger.BEFORE_APPLY], 1), ([], 0)):
        world = ServiceWorld(triggers=triggers)
        world.run()
        world.apply()

        assert world.reasons.count("before_apply") == expected
        assert world.project() == after("a", "b", "c")


def test_an_apply_that_died_right_after_that_group_begins_again() -> None:
    world = ServiceWorld(triggers=[Trigger.BEFORE_APPLY])
    world.run()
    world.restart()
    world.faults.fail("committed", Killed())
    with pytest.raises(Killed):
        world.apply()
    world.restart()
    assert world.reasons[-1] == "before_apply"
    assert world.sandboxes.carried_out == []

    world.apply()

    assert world.project() == after("a", "b", "c")
    assert world.plan.state is State.APPLIED
