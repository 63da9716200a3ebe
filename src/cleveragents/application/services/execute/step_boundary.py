"""The one way back to a step boundary: the sandboxes first, then the record of where they stand.

A restore makes a snapshot, which is the boundary from then on. Files come before the record: killed
in between, the boundary on record is still the last one, and whoever comes next goes back to it.
Before all of it the lease is checked: who was overtaken must not change the sandboxes any more.
What is not guaranteed: that what the step left is kept. Whoever wants that makes a group first
(`sandboxes/unfinished_step.py`).
"""

from collections.abc import Mapping, Sequence

from msgspec import Struct

from cleveragents.application.ports.runtime import SnapshotStore, UnitOfWorkFactory
from cleveragents.application.services.checkpoints.held import HeldResources
from cleveragents.domain.subplan import ChildPlan


class BoundaryReturn(Struct, frozen=True, kw_only=True):
    """How many paths were not as they are there, and what people are told."""

    changed: int
    notes: tuple[str, ...]


class StepBoundary:
    def __init__(self, unit_of_work: UnitOfWorkFactory, snapshots: SnapshotStore) -> None:
        self._unit_of_work = unit_of_work
        self._snapshots = snapshots

    def return_to(
        self,
        resources: HeldResources,
        starts: Mapping[str, str] | None = None,
        taken_back: Sequence[ChildPlan] = (),
    ) -> BoundaryReturn:
        """Every sandbox as it was when the step began; what the step left there is not kept.

        `starts` are other snapshots by resource, to which only these go back: what they were before
        the children `taken_back` were merged, whose results wait again then. Killed before the
        record says so, the last boundary is gone back to.
        """
        with self._unit_of_work.reading() as uow:
            for plan_id in {resource.plan_id for resource in resources.every}:
                uow.plans.refuse_overtaken(plan_id)
        if resources.in_place:  # what a step has left there stays, and is in the next group
            resources.something_runs()
            return BoundaryReturn(changed=0, notes=())
        targets = {r.name: r.boundary or "" for r in resources.capturable}
        targets = targets if starts is None else starts
        restored = [
            (r, self._snapshots.restore(r, targets[r.name], together=resources.all_capturable))
            for r in resources.capturable
            if r.name in targets
        ]
        resources.something_runs()
        stored = [r.at_boundary(result.snapshot.ref) for r, result in restored]
        with self._unit_of_work() as uow:
            uow.resources.save(*stored)
            for child in taken_back:
                uow.subplans.save(child.taken_back())
            uow.commit()
        resources.put(stored)
        return BoundaryReturn(
            changed=sum(len(result.changes) for _, result in restored),
            notes=tuple(note for _, result in restored for note in result.notes),
        )
