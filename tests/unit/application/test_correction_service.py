"""Corrections over fakes: one that cannot be carried out leaves everything as it was."""

import pytest
from service_world import CODE, DOCS, ServiceWorld, append

from cleveragents.application.services.corrections.correction_service import (
    Advice,
    CorrectionService,
)
from cleveragents.domain.correction import CorrectionStatus
from cleveragents.domain.errors import DeclinedError, RestoreFailedError, RollbackPendingError
from cleveragents.domain.plan import State

STEPS = (append("a"), append("b", "docs"), append("c"))
AGAIN = Advice(guidance="again")


def executed() -> tuple[ServiceWorld, CorrectionService]:
    world = ServiceWorld(*STEPS, resources=(CODE, DOCS))
    world.run()
    return world, service(world)


def service(world: ServiceWorld) -> CorrectionService:
    return CorrectionService(
        world.runtime, world.rollbacks, world.finisher, world.resume, world.action_reader
    )


def decision(world: ServiceWorld, index: int) -> str:
    return next(d.decision_id for d in world.decisions if d.step_index == index)


def test_what_used_the_output_goes_too_and_the_rest_stays() -> None:
    world, corrections = executed()
    kept = decision(world, 1)

    result = corrections.revert(decision(world, 0), AGAIN, lambda _: True)

    assert result.impact.steps == (0, 2)
    assert world.files("docs") == {"README": "hello", "one.txt": "b\n", "two.txt": "b\n"}
    assert world.files("code") == {"README": "hello"}
    assert (world.plan.state, world.plan.attempt) == (State.QUEUED, 2)
    assert corrections.go_on(world.plan_id).state is State.COMPLETE
    assert decision(world, 1) == kept
    assert world.files("code")["one.txt"] == "a\nc\n"


def test_an_error_puts_everything_back() -> None:
    world, corrections = executed()
    files, before = world.all_files(), world.plan
    world.faults.fail("restore", RestoreFailedError("code", "no"))

    with pytest.raises(RestoreFailedError):
        corrections.revert(decision(world, 0), AGAIN, lambda _: True)

    assert world.all_files() == files
    assert (world.plan.state, world.plan.attempt) == (before.state, 1)
    assert world.plan.rollback_target is None
    (correction,) = world.tables.corrections.values()
    assert correction.status is CorrectionStatus.ABANDONED
    assert [d.step_index for d in world.decisions] == [None, 0, 1, 2]


def test_if_putting_back_fails_too_the_next_command_finishes_the_correction() -> None:
    world, corrections = executed()
    world.faults.fail("restore", RestoreFailedError("code", "no"))
    world.faults.fail("restore", RestoreFailedError("code", "no"))

    with pytest.raises(RollbackPendingError):
        corrections.revert(decision(world, 0), AGAIN, lambda _: True)
    plan = world.recover()

    assert (plan.state, plan.attempt) == (State.QUEUED, 2)
    assert world.files("code") == {"README": "hello"}


def test_who_says_no_keeps_everything() -> None:
    world, corrections = executed()
    tables = world.tables.copy()

    with pytest.raises(DeclinedError):
        corrections.revert(decision(world, 0), AGAIN, lambda _: False)

    assert world.tables == tables
