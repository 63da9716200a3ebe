"""Making and removing sandboxes, and applying them: the port `Sandboxes`, whatever the type.

What holds for every type is here; all else is asked of the type's adapter.
"""

import os
import threading
from collections.abc import Collection
from pathlib import Path

from cleveragents.domain.action import ResourceSpec
from cleveragents.domain.apply import ApplyOptions, PreparedApply
from cleveragents.domain.changes import ResourceDiff
from cleveragents.domain.checkpoint import Snapshot
from cleveragents.domain.errors import (
    MachineError,
    ProjectMissingError,
    SandboxError,
    SandboxMissingError,
)
from cleveragents.domain.ids import PlanId
from cleveragents.domain.resource import Damage, PlanResource, Rebuilding, ResourceInspection
from cleveragents.domain.resource_kinds import ResourceType
from cleveragents.infrastructure.files.filesystems import sync_places
from cleveragents.infrastructure.sandbox.location import is_there, own_folder
from cleveragents.infrastructure.sandbox.registry import ResourceAdapters


class SandboxesByType:
    def __init__(self, adapters: ResourceAdapters) -> None:
        self._adapters = adapters
        self._sandboxes = Path(adapters.bench.sandboxes)
        # Two that let go of references in one repository at once trip over its lock.
        self._removing = threading.Lock()

    def inspect(
        self, spec: ResourceSpec, plan_id: PlanId, *, include_uncommitted: bool
    ) -> ResourceInspection:
        maker = self._adapters.named(spec.name, spec.type).sandbox
        return maker.inspect(spec, plan_id, include_uncommitted=include_uncommitted)

    def path_for(self, plan_id: PlanId, name: str, type_: ResourceType, location: str = "") -> str:
        kind = self._adapters.named(name, type_).kind
        place = self._sandboxes / plan_id / name
        # A file keeps its name, in a folder of its own for what belongs beside it.
        return str(place if kind.is_folder else place / Path(location).name)

    def create(self, resource: PlanResource) -> None:
        self._adapters.of(resource).sandbox.create(resource)

    def branch(self, parent: PlanResource, child: PlanResource) -> Snapshot:
        # A kill may have left the folder of its own, and nothing in it yet.
        if os.path.lexists(own_folder(child)) or os.path.lexists(child.sandbox_path):
            self.remove(child)
        try:
            return self._adapters.of(child).branches.branch(parent, child)
        except BaseException:
            self.remove(child)
            raise

    def make_durable(self, resources: Collection[PlanResource]) -> None:
        projects = (
            place
            for resource in resources
            for place in self._adapters.of(resource).location.written_places(resource)
        )
        try:
            sync_places([str(self._sandboxes), *projects])
        except OSError as error:
            raise MachineError(f"what was written may not be on the disk: {error}") from error

    def check(self, resource: PlanResource) -> None:
        self._refuse_anothers(resource)
        if resource.rebuilding is not None:  # half of it may be there
            raise SandboxMissingError(resource.name, resource.sandbox_path, resource.store_id)
        self._adapters.of(resource).sandbox.check(resource)

    def damage(self, resource: PlanResource) -> Damage | None:
        self._refuse_anothers(resource)
        place = own_folder(resource)
        if os.path.lexists(place) and not (place.is_symlink() or place.is_dir()):
            raise SandboxError(
                f"{place}, where the sandbox of `{resource.name}` belongs, is not a folder",
                f"look at it and move it away: ls -l {place}",
            )
        if resource.rebuilding is not None or not is_there(self._sandboxes, resource):
            return Damage.GONE
        whole = self._adapters.of(resource).sandbox.has_repository(resource)
        return None if whole else Damage.REPOSITORY

    def make_room(self, resource: PlanResource, how: Rebuilding) -> None:
        self._refuse_anothers(resource)
        self._adapters.of(resource).sandbox.make_room(resource, how)

    def _refuse_anothers(self, resource: PlanResource) -> None:
        # A copy of a data folder names the sandboxes of the original, where somebody may work. The
        # folder around it decides: a step may have put a link in the place of a database.
        sandboxes = os.path.realpath(self._sandboxes)
        folder = os.path.realpath(own_folder(resource).parent)
        if not folder.startswith(f"{sandboxes}/"):
            raise SandboxMissingError(
                resource.name,
                resource.sandbox_path,
                resource.store_id,
                os.path.dirname(self._sandboxes),
            )

    def secure(self, resource: PlanResource) -> bool:
        return self._adapters.of(resource).sandbox.secure(resource)

    def remove(self, resource: PlanResource) -> None:
        with self._removing:
            self._adapters.of(resource).sandbox.remove(resource)

    def release(self, resource: PlanResource) -> None:
        self._adapters.of(resource).sandbox.release(resource)

    def diff(self, resource: PlanResource) -> ResourceDiff:
        return self._adapters.of(resource).sandbox.diff(resource)

    def diff_since(self, resource: PlanResource, ref: str) -> ResourceDiff:
        return self._adapters.of(resource).diff_since(resource, ref)

    def applied_diff(self, resource: PlanResource, applied_ref: str) -> ResourceDiff:
        return self._adapters.of(resource).sandbox.applied_diff(resource, applied_ref)

    def prepare_apply(self, resource: PlanResource, options: ApplyOptions) -> PreparedApply:
        if not os.path.lexists(resource.location):
            raise ProjectMissingError(resource.name, resource.location)
        return self._adapters.of(resource).applier.prepare_apply(resource, options)

    def carry_out(self, resource: PlanResource, prepared: PreparedApply) -> str:
        return self._adapters.of(resource).applier.carry_out(resource, prepared)

    def revert(self, resource: PlanResource, prepared: PreparedApply) -> tuple[str, ...]:
        return self._adapters.of(resource).applier.revert(resource, prepared)

    def finish(self, resource: PlanResource, prepared: PreparedApply) -> None:
        self._adapters.of(resource).applier.finish(resource, prepared)
