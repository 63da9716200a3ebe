"""Which adapter makes the sandboxes of which resource type: the port `Sandboxes`."""

import os
import threading
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Protocol

from cleveragents.domain.action import ResourceSpec, ResourceType
from cleveragents.domain.apply import ApplyOptions, PreparedApply
from cleveragents.domain.changes import ResourceDiff
from cleveragents.domain.errors import (
    MachineError,
    ProjectMissingError,
    ResourceError,
    SandboxError,
    SandboxMissingError,
)
from cleveragents.domain.ids import PlanId
from cleveragents.domain.resource import Damage, PlanResource, Rebuilding, ResourceInspection
from cleveragents.infrastructure.files.filesystems import sync_places
from cleveragents.infrastructure.sandbox.branching import Branches
from cleveragents.infrastructure.sandbox.folder.apply.prepare import FolderApply, FolderSnapshots
from cleveragents.infrastructure.sandbox.folder.sandbox import FsDirectories
from cleveragents.infrastructure.sandbox.git.apply.prepare import GitApply
from cleveragents.infrastructure.sandbox.git.repository.pins import Pins
from cleveragents.infrastructure.sandbox.git.sandbox import GitCheckouts
from cleveragents.infrastructure.sandbox.git.views import GitViews
from cleveragents.infrastructure.sandbox.location import is_there, own_folder
from cleveragents.infrastructure.sandbox.sqlite.apply import SqliteApply
from cleveragents.infrastructure.sandbox.sqlite.sandbox import DatabaseSnapshots, SqliteDatabases
from cleveragents.infrastructure.sqlite.worker import DatabaseWorkers


class SandboxMaker(Protocol):
    """What one type does until apply; the contract is that of `Sandboxes`."""

    def inspect(
        self, spec: ResourceSpec, plan_id: PlanId, *, include_uncommitted: bool
    ) -> ResourceInspection: ...
    def create(self, resource: PlanResource) -> None: ...
    def check(self, resource: PlanResource) -> None: ...
    def make_room(self, resource: PlanResource, how: Rebuilding) -> None: ...
    def secure(self, resource: PlanResource) -> bool: ...
    def remove(self, resource: PlanResource) -> None: ...
    def release(self, resource: PlanResource) -> None: ...
    def diff(self, resource: PlanResource) -> ResourceDiff: ...
    def applied_diff(self, resource: PlanResource, applied_ref: str) -> ResourceDiff: ...


class Applier(Protocol):
    """How one type brings a result back; the contract is that of `Sandboxes`."""

    def prepare_apply(self, resource: PlanResource, options: ApplyOptions) -> PreparedApply: ...
    def carry_out(self, resource: PlanResource, prepared: PreparedApply) -> str: ...
    def revert(self, resource: PlanResource, prepared: PreparedApply) -> tuple[str, ...]: ...
    def finish(self, resource: PlanResource, prepared: PreparedApply) -> None: ...


class SandboxRegistry:
    """`folders` and `databases` are the snapshots from which diffs and applies are told, `workers`
    who asks SQLite about a sandbox; `git` are our names in a repository, and who asks git."""

    def __init__(
        self,
        sandboxes_dir: str,
        scratch_dir: str,
        folders: FolderSnapshots,
        databases: DatabaseSnapshots,
        workers: DatabaseWorkers,
        git: tuple[Pins, GitViews],
    ) -> None:
        sqlite = SqliteDatabases(sandboxes_dir, scratch_dir, databases, workers)
        self._sandboxes = Path(sandboxes_dir)
        self._branches = Branches(databases)
        # Two that let go of references in one repository at once trip over its lock.
        self._removing = threading.Lock()
        self._git = GitCheckouts(sandboxes_dir, scratch_dir, *git)
        self._checkouts: dict[ResourceType, SandboxMaker] = {
            ResourceType.GIT_CHECKOUT: self._git,
            ResourceType.FS_DIRECTORY: FsDirectories(sandboxes_dir, folders),
            ResourceType.SQLITE: sqlite,
        }
        self._applies: dict[ResourceType, Applier] = {
            ResourceType.GIT_CHECKOUT: GitApply(scratch_dir, *git),
            ResourceType.FS_DIRECTORY: FolderApply(folders),
            ResourceType.SQLITE: SqliteApply(scratch_dir, databases, sqlite.diff, workers),
        }

    def inspect(
        self, spec: ResourceSpec, plan_id: PlanId, *, include_uncommitted: bool
    ) -> ResourceInspection:
        adapter = self._checkout(spec.name, spec.type)
        return adapter.inspect(spec, plan_id, include_uncommitted=include_uncommitted)

    def path_for(self, plan_id: PlanId, name: str, type_: ResourceType, location: str = "") -> str:
        self._checkout(name, type_)
        place = self._sandboxes / plan_id / name
        # A database keeps its file name, in a folder of its own for the journals beside it.
        return str(place / Path(location).name if type_ is ResourceType.SQLITE else place)

    def create(self, resource: PlanResource) -> None:
        self._checkout(resource.name, resource.type).create(resource)

    def branch(self, parent: PlanResource, child: PlanResource) -> Mapping[bytes, object]:
        if os.path.lexists(child.sandbox_path):
            self.remove(child)
        try:
            return self._branches.make(parent, child)
        except BaseException:
            self.remove(child)
            raise

    def make_durable(self, resources: Collection[PlanResource]) -> None:
        projects = (place for resource in resources for place in _places(resource))
        try:
            sync_places([str(self._sandboxes), *projects])
        except OSError as error:
            raise MachineError(f"what was written may not be on the disk: {error}") from error

    def check(self, resource: PlanResource) -> None:
        self._refuse_anothers(resource)
        if resource.rebuilding is not None:  # half of it may be there
            raise SandboxMissingError(resource.name, resource.sandbox_path, resource.store_id)
        self._checkout(resource.name, resource.type).check(resource)

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
        is_git = resource.type is ResourceType.GIT_CHECKOUT
        return Damage.REPOSITORY if is_git and not self._git.has_repository(resource) else None

    def make_room(self, resource: PlanResource, how: Rebuilding) -> None:
        self._refuse_anothers(resource)
        self._checkout(resource.name, resource.type).make_room(resource, how)

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
        return self._checkout(resource.name, resource.type).secure(resource)

    def remove(self, resource: PlanResource) -> None:
        with self._removing:
            self._checkout(resource.name, resource.type).remove(resource)

    def release(self, resource: PlanResource) -> None:
        self._checkout(resource.name, resource.type).release(resource)

    def diff(self, resource: PlanResource) -> ResourceDiff:
        return self._checkout(resource.name, resource.type).diff(resource)

    def applied_diff(self, resource: PlanResource, applied_ref: str) -> ResourceDiff:
        return self._checkout(resource.name, resource.type).applied_diff(resource, applied_ref)

    def prepare_apply(self, resource: PlanResource, options: ApplyOptions) -> PreparedApply:
        if not os.path.lexists(resource.location):
            raise ProjectMissingError(resource.name, resource.location)
        return self._apply(resource.name, resource.type).prepare_apply(resource, options)

    def carry_out(self, resource: PlanResource, prepared: PreparedApply) -> str:
        return self._apply(resource.name, resource.type).carry_out(resource, prepared)

    def revert(self, resource: PlanResource, prepared: PreparedApply) -> tuple[str, ...]:
        return self._apply(resource.name, resource.type).revert(resource, prepared)

    def finish(self, resource: PlanResource, prepared: PreparedApply) -> None:
        self._apply(resource.name, resource.type).finish(resource, prepared)

    def _checkout(self, name: str, type_: ResourceType) -> SandboxMaker:
        if type_ not in self._checkouts:
            raise _unknown(name, type_, list(self._checkouts))
        return self._checkouts[type_]

    def _apply(self, name: str, type_: ResourceType) -> Applier:
        if type_ not in self._applies:
            raise _unknown(name, type_, list(self._applies))
        return self._applies[type_]


def _places(resource: PlanResource) -> Iterator[str]:
    """Where its project is, and the repository of that, which may be elsewhere."""
    is_file = resource.type is ResourceType.SQLITE
    # Not the database itself: closing that would end the locks that SQLite has on it.
    yield os.path.dirname(resource.location) if is_file else resource.location
    if "git_dir" in resource.details:
        yield str(resource.details["git_dir"])


def _unknown(name: str, type_: ResourceType, known: list[ResourceType]) -> ResourceError:
    return ResourceError(
        f"`{name}` is of type {type_}, which this version cannot work on yet",
        f"use a resource of type {', '.join(known)}",
    )
