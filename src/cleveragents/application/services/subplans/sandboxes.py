"""The sandboxes of children that nobody needs any more."""

from collections.abc import Generator
from contextlib import ExitStack, contextmanager

from cleveragents.application.ports.locks import PlanLocks
from cleveragents.application.ports.runtime import Sandboxes, UnitOfWorkFactory
from cleveragents.application.services.checkpoints.held import HeldPlan, descendants
from cleveragents.domain.ids import PlanId
from cleveragents.domain.resource import SandboxStatus


@contextmanager
def children_stopped(locks: PlanLocks, parent: HeldPlan, operation: str) -> Generator[None]:
    """Nobody works on a child of the plan until the end of the block.

    One that is executed by itself in another process is stopped there first, as Ctrl-C would.
    Raises PlanLockedError, with who it is, for one that does not stop.
    """
    # Nobody can work on those whose result is decided.
    loose = [p for p in parent.open_below if p.child_of and not p.child_of.settled]
    with ExitStack() as held:
        for child in loose:
            locks.stop_owner(child.plan_id)
            held.enter_context(locks.hold(child.plan_id, operation))
        yield


class SubplanSandboxes:
    """What a child made is in its snapshots, from which it can be merged again."""

    def __init__(self, unit_of_work: UnitOfWorkFactory, sandboxes: Sandboxes) -> None:
        self._unit_of_work = unit_of_work
        self._sandboxes = sandboxes

    def remove_sandboxes(self, plan_id: PlanId) -> None:
        """Those of the child and of all below it. Record last: until then they are found again."""
        with self._unit_of_work.reading() as uow:
            wanted = [plan_id, *(child.plan_id for child in descendants(uow, plan_id))]
            resources = [r for found in wanted for r in uow.resources.of_plan(found)]
        for resource in resources:
            if resource.status is not SandboxStatus.REMOVED:
                self._sandboxes.remove(resource)
                with self._unit_of_work() as uow:
                    uow.resources.save(resource.removed())
                    uow.commit()

    def remove_below(self, plan_id: PlanId) -> None:
        """Those of all children of a plan that is over."""
        with self._unit_of_work.reading() as uow:
            children = uow.subplans.of_parent(plan_id)
        for child in children:
            self.remove_sandboxes(child.plan_id)
