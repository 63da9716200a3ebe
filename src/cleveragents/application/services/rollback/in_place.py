"""What a rollback does differently where the sandbox is the user's own tree (ADR 0100, 0101)."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from cleveragents.application.services.checkpoints.checkpoint_service import CheckpointService
from cleveragents.application.services.checkpoints.held import HeldPlan
from cleveragents.application.services.rollback.rollback_files import (
    ChangedResource,
    RollbackFiles,
    Spares,
)
from cleveragents.application.services.rollback.target import RollbackTarget
from cleveragents.domain.checkpoint import CheckpointGroup, SparedSince
from cleveragents.domain.ids import GroupId
from cleveragents.domain.in_place import listed, to_install

if TYPE_CHECKING:  # in place only
    from cleveragents.application.services.execute.others import OthersSteps


class InPlaceRollback(Struct, frozen=True):
    """Of a plan that works in sandboxes, all of this says nothing and does nothing."""

    _checkpoints: CheckpointService
    _files: RollbackFiles
    _others: "OthersSteps"

    def refuse_in_use(self, held: HeldPlan, aim: RollbackTarget) -> None:
        """Before anybody is asked and anything is kept: a database that others write is not taken
        back under them. Raises DatabaseInUseError."""
        for resource in held.resources.capturable:
            state = aim.target.state_of(resource.resource_id)
            is_meant = aim.only is None or resource.name in aim.only.paths
            if resource.in_place and state is not None and is_meant:
                last = aim.head.state_of(resource.resource_id) if aim.head else None
                self._files.refuse_in_use(resource, state, last, keep=aim.keep)

    def changed_by_others(self, held: HeldPlan, aim: RollbackTarget) -> tuple[str, ...]:
        """What the tree holds that the last group does not; nothing is recorded."""
        if not held.resources.in_place or aim.head is None:
            return ()
        found = self._checkpoints.capture(held.resources)
        names = [
            change.path
            for item in self._files.compare(held.resources, aim.head)
            for change in item.changes
        ]
        moved = any(
            found.snapshots[state.resource_id].state_hash != state.state_hash
            for state in aim.head.resource_states
            if state.resource_id in found.snapshots
        )
        return tuple(names or (["the state of the repository"] if moved else []))

    def note_others(self, held: HeldPlan, aim: RollbackTarget) -> HeldPlan:
        """As a step of its own, before the safety group; no end of the way is pruned for it."""
        if not held.resources.in_place:
            return held
        needs = (aim.target.group_id, *((aim.head.group_id,) if aim.head else ()))
        return replace(held, plan=self._others.note(held.plan, held.resources, needs))


def spared_since(held: HeldPlan, aim: RollbackTarget) -> SparedSince | None:
    """What the safety group notes, since a repetition after a kill has nothing else."""
    if not held.resources.in_place or aim.head is None:
        return None
    return SparedSince(group=aim.head.group_id, keep=aim.keep)


def spares_of(
    held: HeldPlan, safety: CheckpointGroup, group: Callable[[GroupId], CheckpointGroup]
) -> Spares | None:
    if not held.resources.in_place:
        return None
    noted = safety.spares
    if noted is None:
        return Spares(held=safety)
    return Spares(held=safety, last=group(noted.group), keep=noted.keep)


def told_after(changed: Sequence[ChangedResource]) -> Sequence[str]:
    """What to do in the user's own tree, where nothing was installed anew by this."""
    return to_install([c.path for item in changed if item.resource.in_place for c in item.changes])


def told_left(left: Sequence[str]) -> Sequence[str]:
    return [f"left as it is, since it was changed meanwhile: {listed(left)}"] if left else []
