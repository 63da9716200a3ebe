"""The ports `Sandboxes`, `MovedProjects` and `Merges`, whatever the type of a resource is.

What holds for every type is here; all else is asked of the type's adapter.
"""

import os
import threading
from collections.abc import Collection, Iterator, Mapping, Sequence

from cleveragents.application.ports.merging import Decide, PreparedMerge, undecided
from cleveragents.domain.action import MergeStrategy, ResourceSpec
from cleveragents.domain.applied import ApplySide
from cleveragents.domain.apply import ApplyOptions, PreparedApply
from cleveragents.domain.changes import ResourceDiff
from cleveragents.domain.checkpoint import Snapshot
from cleveragents.domain.errors import (
    MachineError,
    ProjectMissingError,
    SandboxError,
    SandboxMissingError,
    StillRunningError,
)
from cleveragents.domain.ids import PlanId
from cleveragents.domain.resource import (
    Damage,
    OwnState,
    PlanResource,
    Rebuilding,
    ResourceInspection,
)
from cleveragents.domain.resource_kinds import ResourceType
from cleveragents.domain.secrets import Secrets
from cleveragents.infrastructure.files.filesystems import sync_places
from cleveragents.infrastructure.sandbox.location import is_there, own_folder
from cleveragents.infrastructure.sandbox.registry import ResourceAdapters

# Copied, hashed and stored, on a quiet machine; who waits is told the least that it takes.
_FILES_PER_SECOND = 8_000
_MANY_FILES = 20_000


class SandboxesByType:
    """Makes and removes sandboxes, and applies them."""

    def __init__(self, adapters: ResourceAdapters) -> None:
        self._adapters = adapters
        self._sandboxes = adapters.bench.sandboxes
        # Two that let go of references in one repository at once trip over its lock.
        self._removing = threading.Lock()

    def inspect(
        self, spec: ResourceSpec, plan_id: PlanId | None, *, include_uncommitted: bool
    ) -> ResourceInspection:
        maker = self._adapters.for_spec(spec).sandbox
        found = maker.inspect(spec, plan_id, include_uncommitted=include_uncommitted)
        wanted = spec.secrets or self._adapters.bench.secrets
        if wanted is not Secrets.SKIP or not spec.kind.is_folder:
            return found
        from cleveragents.infrastructure.sandbox.secrets import (  # noqa: PLC0415 - if asked for
            with_secrets_left_out,
        )

        return with_secrets_left_out(spec, found)

    def path_for(self, plan_id: PlanId, name: str, type_: ResourceType, location: str = "") -> str:
        kind = self._adapters.named(name, type_).kind
        place = f"{self._sandboxes}/{plan_id}/{name}"
        # A file keeps its name, in a folder of its own for what belongs beside it.
        return place if kind.is_folder else f"{place}/{os.path.basename(location)}"

    def create(self, resource: PlanResource) -> None:
        maker = self._adapters.of(resource).sandbox
        size = _told_size(maker.files_there(resource))
        self._adapters.bench.working(f"creating the sandbox of `{resource.name}`{size}")
        maker.create(resource)

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
        self._adapters.bench.working("writing to the disk")
        projects = (
            place
            for resource in resources
            for place in self._adapters.of(resource).location.written_places(resource)
        )
        try:
            sync_places([self._sandboxes, *projects])
        except OSError as error:
            raise MachineError(f"what was written may not be on the disk: {error}") from error

    def check(self, resource: PlanResource) -> None:
        self._refuse_anothers(resource)
        if resource.rebuilding is not None:  # half of it may be there
            raise SandboxMissingError(resource.name, resource.sandbox_path, resource.store_id)
        self._adapters.of(resource).sandbox.check(resource)

    def damage(self, resource: PlanResource) -> Damage | None:
        if resource.in_place:  # the tree is what it is, and nothing of it is made again
            return None
        self._refuse_anothers(resource)
        place = own_folder(resource)
        if os.path.lexists(place) and not (os.path.islink(place) or os.path.isdir(place)):
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
        if resource.in_place:
            return
        sandboxes = os.path.realpath(self._sandboxes)
        folder = os.path.realpath(os.path.dirname(own_folder(resource)))
        if not folder.startswith(f"{sandboxes}/"):
            raise SandboxMissingError(
                resource.name,
                resource.sandbox_path,
                resource.store_id,
                os.path.dirname(self._sandboxes),
            )

    def place_of(self, location: str) -> str:
        return os.path.realpath(location)

    def occupant(self, place: str) -> str | None:
        from cleveragents.infrastructure.sandbox.in_place.marker import (  # noqa: PLC0415 - in place only
            occupant_of,
        )

        found = occupant_of(place)
        return found.plan_id if found else None

    def refuse_running(self, resource: PlanResource) -> None:
        if not resource.in_place:
            return
        from cleveragents.infrastructure.processes.marked import (  # noqa: PLC0415 - in place only
            marked_processes,
        )

        running = marked_processes(f"{resource.plan_id}:")
        if running:
            raise StillRunningError(resource.location, running)

    def end_running(self, plan_id: PlanId) -> None:
        from cleveragents.infrastructure.processes.marked import (  # noqa: PLC0415 - if asked for
            end_processes,
        )

        end_processes(f"{plan_id}:")

    def secure(self, resource: PlanResource) -> bool:
        return self._adapters.of(resource).sandbox.secure(resource)

    def remove(self, resource: PlanResource) -> None:
        self._adapters.bench.working(f"removing the sandbox of `{resource.name}`")
        with self._removing:
            self._adapters.of(resource).sandbox.remove(resource)

    def remove_copy(self, resource: PlanResource) -> None:
        self._adapters.bench.working(f"removing the sandbox of `{resource.name}`")
        self._adapters.of(resource).sandbox.remove_copy(resource)

    def release(self, resource: PlanResource) -> None:
        self._adapters.of(resource).sandbox.release(resource)

    def diff(self, resource: PlanResource) -> ResourceDiff:
        self._comparing(resource)
        return self._adapters.of(resource).sandbox.diff(resource)

    def only_here(self, resource: PlanResource) -> tuple[str, ...]:
        self._comparing(resource)
        return self._adapters.of(resource).only_here(resource)

    def left_behind(self, resource: PlanResource) -> tuple[str, ...]:
        self._comparing(resource)
        return self._adapters.of(resource).sandbox.left_behind(resource)

    def diff_since(self, resource: PlanResource, ref: str) -> ResourceDiff:
        self._comparing(resource)
        return self._adapters.of(resource).diff_since(resource, ref)

    def diff_between(self, resource: PlanResource, old: str, new: str) -> ResourceDiff:
        if old == new:
            return ResourceDiff()
        self._comparing(resource)
        return self._adapters.of(resource).diff_between(resource, old, new)

    def applied_diff(self, resource: PlanResource, applied_ref: str) -> ResourceDiff:
        self._comparing(resource)
        return self._adapters.of(resource).sandbox.applied_diff(resource, applied_ref)

    def prepare_apply(self, resource: PlanResource, options: ApplyOptions) -> PreparedApply:
        if not os.path.lexists(resource.location):
            raise ProjectMissingError(resource.name, resource.location)
        self._adapters.bench.working(f"comparing `{resource.name}` with the project")
        return self._adapters.of(resource).applier.prepare_apply(resource, options)

    def carry_out(self, resource: PlanResource, prepared: PreparedApply) -> str:
        self._adapters.bench.working(f"bringing `{resource.name}` into the project")
        return self._adapters.of(resource).applier.carry_out(resource, prepared)

    def revert(self, resource: PlanResource, prepared: PreparedApply) -> tuple[str, ...]:
        self._adapters.bench.working(f"taking `{resource.name}` back out of the project")
        return self._adapters.of(resource).applier.revert(resource, prepared)

    def finish(self, resource: PlanResource, prepared: PreparedApply) -> None:
        self._adapters.of(resource).applier.finish(resource, prepared)

    def way_of(self, resource: PlanResource, prepared: PreparedApply) -> OwnState | None:
        return self._adapters.of(resource).applier.way_of(resource, prepared)

    def settle(self, resource: PlanResource, prepared: PreparedApply) -> None:
        self._adapters.of(resource).applier.settle(resource, prepared)

    def kept_bytes(self, resource: PlanResource) -> int:
        return self._adapters.of(resource).applier.kept_bytes(resource)

    def withdraw(self, resource: PlanResource, prepared: PreparedApply) -> None:
        self._adapters.of(resource).applier.withdraw(resource, prepared)

    def prepare_move(self, resource: PlanResource, way: OwnState, side: ApplySide) -> PreparedApply:
        if not os.path.lexists(resource.location):
            raise ProjectMissingError(resource.name, resource.location)
        self._adapters.bench.working(f"comparing `{resource.name}` with the project")
        return self._adapters.of(resource).applier.prepare_move(resource, way, side)

    def _comparing(self, resource: PlanResource) -> None:
        self._adapters.bench.working(f"comparing `{resource.name}`")


class ProjectLocations:
    """Finds projects that were moved, each type by what its own tells.

    `cwd` is looked at too: whoever stands in a repository that was moved shows where it is.
    """

    def __init__(self, adapters: ResourceAdapters, cwd: str) -> None:
        self._adapters = adapters
        self._cwd = cwd

    def is_at_home(self, resource: PlanResource) -> bool:
        return os.path.lexists(resource.location) and self.is_grounded(resource)

    def is_grounded(self, resource: PlanResource) -> bool:
        return self._adapters.of(resource).location.is_grounded(resource)

    def hold(self, resource: PlanResource) -> None:
        self._adapters.of(resource).location.hold(resource)

    def refuse_lost(self, resource: PlanResource) -> None:
        self._adapters.of(resource).location.refuse_lost(resource)

    def find_for_certain(self, resource: PlanResource) -> str | None:
        location = self._adapters.of(resource).location
        places = {os.path.realpath(place) for place in location.near(resource, self._cwd)}
        found = [place for place in sorted(places) if location.is_surely_at(resource, place)]
        return found[0] if len(found) == 1 else None

    def find(self, resource: PlanResource, told: Mapping[str, str]) -> str | None:
        location = self._adapters.of(resource).location
        for places in (_told(resource, told), location.near(resource, self._cwd)):
            for place in places:
                if location.is_at(resource, place):
                    return place
        return None

    def relocate(self, resource: PlanResource, place: str) -> PlanResource:
        location = self._adapters.of(resource).location
        if not location.is_at(resource, place):
            raise SandboxError(
                f"{place} is not what plan {resource.plan_id} knows as `{resource.name}`",
                f"agents doctor --fix --moved {resource.location}=NEW",
            )
        return location.moved(resource, place)


def _told(resource: PlanResource, told: Mapping[str, str]) -> Iterator[str]:
    for old, new in told.items():
        rest = os.path.relpath(resource.location, old)
        if not rest.startswith(".."):
            yield os.path.normpath(os.path.join(new, rest))


class SandboxMerges:
    """Brings the results of child plans together."""

    def __init__(self, adapters: ResourceAdapters) -> None:
        self._adapters = adapters

    def prepare(
        self,
        parent: PlanResource,
        child: PlanResource,
        strategy: MergeStrategy,
        before: Sequence[PreparedMerge] = (),
        decide: Decide = undecided,
    ) -> PreparedMerge:
        merge = self._adapters.of(parent).merge
        return merge.prepare(parent, child, strategy, before, decide)

    def carry_out(self, parent: PlanResource, child: PlanResource, prepared: PreparedMerge) -> None:
        self._adapters.of(parent).merge.carry_out(parent, child, prepared)


def _told_size(files: int) -> str:
    """How long many of them take."""
    if files < _MANY_FILES:
        return ""
    seconds = files / _FILES_PER_SECOND
    time = f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
    return f": {files} files, which take {time} or more"
