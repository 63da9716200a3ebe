"""Letting go of what applies have replaced and is kept to take them back by.

The record first, then the files: whoever finds it freed goes on with it (ADR 0098).
"""

from collections.abc import Sequence

from msgspec.structs import replace

from cleveragents.application.ports.runtime import UnitOfWorkFactory, Workspace
from cleveragents.domain.applied import AppliedChange, ApplySide
from cleveragents.domain.apply import intended
from cleveragents.domain.errors import PlanStateError
from cleveragents.domain.ids import PlanId
from cleveragents.domain.resource import PlanResource, SandboxStatus


class KeptChanges:
    def __init__(self, unit_of_work: UnitOfWorkFactory, workspace: Workspace) -> None:
        self._unit_of_work = unit_of_work
        self._sandboxes, self._snapshots = workspace.sandboxes, workspace.snapshots

    def free(self, plan_id: PlanId) -> None:
        """The caller holds the plan's lock. May be repeated. Raises PlanStateError if an undo or
        redo was cut off: by what is kept, it has to be finished first."""
        with self._unit_of_work.reading() as uow:
            change = uow.applied.find(plan_id)
            resources = uow.resources.of_plan(plan_id)
        if change is None or (change.freed and not change.ways):
            return
        _refuse_pending(change)
        if not change.freed:
            change = change.free()
            self._save(change)
        self._let_go(change, resources)
        self._save(replace(change, ways={}))

    def _let_go(self, change: AppliedChange, resources: Sequence[PlanResource]) -> None:
        for resource in resources:
            way = change.ways.get(resource.name)
            if way is not None:
                self._sandboxes.finish(resource, intended(resource.resource_id, way))
            if resource.status is SandboxStatus.REMOVED:
                self._sandboxes.release(resource)
        if all(resource.status is SandboxStatus.REMOVED for resource in resources):
            self._snapshots.forget(change.plan_id)

    def _save(self, change: AppliedChange) -> None:
        with self._unit_of_work() as uow:
            uow.applied.put(change)
            uow.commit()


def _refuse_pending(change: AppliedChange) -> None:
    if change.heading is None:
        return
    word = "undo" if change.heading is ApplySide.BEFORE else "redo"
    raise PlanStateError(
        f"a {word} of the apply of plan {change.plan_id} was interrupted, and may have changed the"
        " project",
        f"finish it with `agents {word} --plan {change.plan_id}`",
    )
