"""Making sandboxes again that are gone or unusable, from their snapshots (ADR 0058).

Intent before effect: that a sandbox is being made again is on record before its place is cleared.
Until it is whole it counts as missing, and the next command that works on the plan goes on with it.
"""

from collections.abc import Sequence
from contextlib import AbstractContextManager

from msgspec import Struct
from msgspec.structs import replace

from cleveragents.application.plan_events import tell_recovered
from cleveragents.application.ports.runtime import Runtime
from cleveragents.application.ports.sandboxes import RebuildingStore, UnusableSandboxes
from cleveragents.application.services.checkpoints.held import HeldPlan, HeldResources
from cleveragents.domain.checkpoint import CheckpointGroup
from cleveragents.domain.errors import (
    PlanError,
    SandboxError,
    SandboxMissingError,
    SnapshotDamagedError,
)
from cleveragents.domain.resource import Damage, PlanResource, Rebuilding, SandboxStatus


class SandboxRebuilding(Struct, frozen=True):
    _runtime: Runtime
    _sandboxes: UnusableSandboxes
    _snapshots: RebuildingStore

    def rebuild(self, held: HeldPlan, target: CheckpointGroup | None = None) -> None:
        """Make what is gone or unusable as it last was, for the plan and all below it.

        Where just that is damaged, as it is in `target`, to which the caller goes anyway. Raises
        SnapshotDamagedError or SandboxError before anything changes.
        """
        with self._alone(held):
            found = ((r, self._how(r, target)) for r in self._family(held))
            begun = [
                replace(resource, rebuilding=how) for resource, how in found if how is not None
            ]
            if not begun:
                return
            with self._runtime.unit_of_work() as uow:
                uow.resources.save(*begun)
                uow.commit()
            self._carry_out(held, begun)

    def can_be_mended(self, resource: PlanResource) -> bool | None:
        """Whether one that is gone or unusable can be made again; None if it is neither, as far as
        a glance shows."""
        if resource.status is not SandboxStatus.READY:
            return None
        try:
            damage = self._sandboxes.damage(resource)
        except PlanError:
            return False
        return None if damage is None else resource.checkpointable

    def finish(self, held: HeldPlan) -> None:
        """Go on with what a crash has interrupted."""
        begun = [r for r in self._family(held) if r.rebuilding is not None]
        if not begun:
            return
        with self._alone(held):
            self._carry_out(held, begun)

    def _alone(self, held: HeldPlan) -> AbstractContextManager[None]:
        from cleveragents.application.services.subplans.sandboxes import (  # noqa: PLC0415
            children_stopped,  # hardly ever is there anything to rebuild
        )

        return children_stopped(self._runtime.locks, held, "rebuild")

    def _carry_out(self, held: HeldPlan, begun: Sequence[PlanResource]) -> None:
        for resource in begun:
            how = resource.rebuilding
            assert how is not None
            self._snapshots.release(resource)  # what is remembered of the old one
            self._sandboxes.make_room(resource, how)
            restored = self._snapshots.rebuild(resource, how)
            self._sandboxes.make_durable([resource])
            with self._runtime.unit_of_work() as uow:
                uow.resources.save(replace(resource, rebuilding=None))
                uow.commit()
            if resource.plan_id == held.plan.plan_id:
                held.resources.put([replace(resource, rebuilding=None)])
            self._tell(resource, how, restored.notes)

    def _how(self, resource: PlanResource, target: CheckpointGroup | None) -> Rebuilding | None:
        damage = self._sandboxes.damage(resource) or self._deeper(resource)
        if damage is None:
            return None
        if not resource.checkpointable:
            raise SandboxError(
                f"the sandbox of `{resource.name}` cannot be made again: the action says"
                " `checkpointable: false`, so that there are no snapshots of it",
                f"put it back at {resource.sandbox_path}, or end the plan with"
                f" `agents plan cancel {resource.store_id}`",
            )
        keeps_files = damage is Damage.REPOSITORY
        newest = self._snapshots.newest(resource)
        try:
            self._snapshots.refuse_damaged(resource, newest)
        except SnapshotDamagedError:
            state = target.state_of(resource.resource_id) if target else None
            if state is None:
                raise
            self._snapshots.refuse_damaged(resource, state.snapshot)
            return Rebuilding(snapshot=state.snapshot, keeps_files=keeps_files)
        return Rebuilding(snapshot=newest, keeps_files=keeps_files)

    def _deeper(self, resource: PlanResource) -> Damage | None:
        """A repository that looks whole may not be; its snapshot shows that, as it needs all."""
        if not resource.kind.has_repository or not resource.checkpointable:
            return None
        try:
            self._snapshots.capture(resource)
        except SandboxMissingError:
            return Damage.GONE
        except PlanError:
            return Damage.REPOSITORY
        return None

    def _family(self, held: HeldPlan) -> Sequence[PlanResource]:
        """All that has a sandbox, of the plan and of those below it that are not over."""
        if not held.open_below:
            return held.resources.sandboxes
        with self._runtime.unit_of_work.reading() as uow:
            below = [r for plan in held.open_below for r in uow.resources.of_plan(plan.plan_id)]
        return [*held.resources.sandboxes, *HeldResources(below).sandboxes]

    def _tell(self, resource: PlanResource, how: Rebuilding, notes: Sequence[str]) -> None:
        what = "repository of the sandbox" if how.keeps_files else "sandbox"
        said = [f"made the {what} of `{resource.name}` again from its snapshots", *notes]
        if resource.exclude and not how.keeps_files:
            left = ", ".join(resource.exclude)
            said.append(f"what no snapshot has is not there: {left} (`exclude` of the action)")
        tell_recovered(self._runtime.events, *said)
