"""Owns keeping the children of a plan still while the plan is taken back, corrected or ended."""

from collections.abc import Generator
from contextlib import ExitStack, contextmanager

from cleveragents.application.ports.runtime import PlanLocks, UnitOfWorkFactory
from cleveragents.application.services.subplans.sandboxes import descendants
from cleveragents.domain.ids import PlanId


@contextmanager
def children_at_rest(
    unit_of_work: UnitOfWorkFactory, locks: PlanLocks, plan_id: PlanId, operation: str
) -> Generator[None]:
    """Nobody works on a child of the plan until the end of the block.

    One that is executed by itself in another process is stopped there first, as Ctrl-C would.
    Raises PlanLockedError, with who it is, for one that does not stop.
    """
    with unit_of_work.reading() as uow:
        found = [uow.plans.get(child.plan_id) for child in descendants(uow, plan_id)]
    # Nobody can work on those whose result is decided.
    loose = [p for p in found if not p.is_final and p.child_of and not p.child_of.settled]
    with ExitStack() as held:
        for child in loose:
            locks.stop_owner(child.plan_id)
            held.enter_context(locks.hold(child.plan_id, operation))
        yield
