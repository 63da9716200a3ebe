"""What an apply leaves behind it: a record by which it can be taken back, for as long as is said.

The record comes with the one that says that the plan is applied, in one transaction, and what it
was taken back by until then is what it is taken back by later. So no moment lies between the two.
"""

from collections.abc import Mapping, Sequence
from datetime import timedelta

from msgspec import Struct

from cleveragents.application.ports.runtime import (
    Runtime,
    Workspace,
)
from cleveragents.application.services.sandboxes.cleanup import Kept, SandboxCleanup
from cleveragents.application.services.sandboxes.kept_changes import KeptChanges
from cleveragents.domain.applied import AppliedChange, ApplySide
from cleveragents.domain.apply import PreparedApply
from cleveragents.domain.errors import ApplyUndoneError, PlanError
from cleveragents.domain.ids import PlanId
from cleveragents.domain.plan import Plan
from cleveragents.domain.resource import PlanResource


class ApplyKeeping(Struct, frozen=True):
    """`keep_for` nothing: an apply is final, as soon as it is on record."""

    _runtime: Runtime
    _workspace: Workspace
    _cleanup: SandboxCleanup
    _keep_for: timedelta

    def record(
        self, plan: Plan, resources: Sequence[PlanResource], prepared: Mapping[str, PreparedApply]
    ) -> AppliedChange | None:
        """From here on the plan is applied, and its apply can be undone."""
        change = self._change(plan, resources, prepared) if self._keep_for else None
        with self._runtime.unit_of_work() as uow:
            uow.plans.save(plan)
            if change is not None:
                uow.applied.put(change)
            uow.commit()
        return change

    def _change(
        self, plan: Plan, resources: Sequence[PlanResource], prepared: Mapping[str, PreparedApply]
    ) -> AppliedChange | None:
        """Nothing, where all of it could not be taken back."""
        found = {r.name: self._workspace.sandboxes.way_of(r, prepared[r.name]) for r in resources}
        ways = {name: way for name, way in found.items() if way is not None}
        now = self._runtime.clock.now()
        if len(ways) < len(found):
            return None
        return AppliedChange(
            plan_id=plan.plan_id,
            side=ApplySide.AFTER,
            until=now + self._keep_for,
            changed_at=now,
            ways=ways,
        )

    def settle(
        self,
        plan_id: PlanId,
        resources: Sequence[PlanResource],
        prepared: Mapping[str, PreparedApply],
    ) -> Kept:
        """Remove what is not needed any more; gives the sandboxes that stay. May be repeated."""
        with self._runtime.unit_of_work.reading() as uow:
            change = uow.applied.find(plan_id)
        keeping = change is not None and not change.freed
        settle = self._workspace.sandboxes.settle if keeping else self._workspace.sandboxes.finish
        for resource in resources:
            settle(resource, prepared[resource.name])
        kept = self._cleanup.after_apply(plan_id, keeping=keeping)
        self.expire()
        return kept

    def sizes(self) -> Mapping[str, int]:
        """By plan, the bytes that are kept in the projects themselves; snapshots are not in it."""
        with self._runtime.unit_of_work.reading() as uow:
            kept = {c.plan_id: uow.resources.of_plan(c.plan_id) for c in uow.applied.kept()}
        measure = self._workspace.sandboxes.kept_bytes
        return {str(key): sum(map(measure, resources)) for key, resources in kept.items()}

    def refuse_undone(self, plan_id: PlanId) -> None:
        """Raises ApplyUndoneError if the project is, or may be, what it was before."""
        with self._runtime.unit_of_work.reading() as uow:
            change = uow.applied.find(plan_id)
        if change is not None and (change.side is ApplySide.BEFORE or change.heading is not None):
            raise ApplyUndoneError(plan_id)

    def expire(self) -> int:
        """Let go of what was kept long enough; gives of how many plans. One that somebody works on
        waits for the next time."""
        now = self._runtime.clock.now()
        with self._runtime.unit_of_work.reading() as uow:
            due = [change for change in uow.applied.kept() if change.is_due(now)]
        freed = 0
        for change in due:
            try:
                with self._runtime.locks.hold(change.plan_id, "expire"):
                    KeptChanges(self._runtime.unit_of_work, self._workspace).free(change.plan_id)
            except (PlanError, OSError):
                continue
            freed += 1
        return freed
