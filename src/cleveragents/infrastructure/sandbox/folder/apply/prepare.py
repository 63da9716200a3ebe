"""Bringing the result of a folder's sandbox into the real folder: checked, then all of it.

Only paths that the plan changed are looked at and written; everything else keeps even its inode.
"""

import os
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager

from msgspec import Struct
from msgspec.structs import replace

from cleveragents.domain.applied import ApplySide
from cleveragents.domain.apply import ApplyOptions, PreparedApply
from cleveragents.domain.changes import ResourceDiff
from cleveragents.domain.errors import (
    ApplyConflictError,
    ApplyEditsKeptError,
    ApplyRefusedError,
    SnapshotDamagedError,
)
from cleveragents.domain.resource import OwnState, PlanResource
from cleveragents.infrastructure.files.entry import Kind, shown
from cleveragents.infrastructure.files.excludes import excludes
from cleveragents.infrastructure.files.rooted_folder import RootedFolder
from cleveragents.infrastructure.files.update.path_update import MovedOnError, status_at
from cleveragents.infrastructure.files.walk import walk
from cleveragents.infrastructure.sandbox.folder.apply.carry_out import (
    CarryOut,
    EditsKeptError,
    finish,
)
from cleveragents.infrastructure.sandbox.folder.apply.journal import ApplyJournal
from cleveragents.infrastructure.sandbox.folder.apply.project_state import ProjectState
from cleveragents.infrastructure.sandbox.folder.diff import diff_of, stored
from cleveragents.infrastructure.sandbox.own_state import read_back, to_plain
from cleveragents.infrastructure.sandbox.strayed import strayed_notes, without_strayed
from cleveragents.infrastructure.snapshots.tree.diff import PathDifference
from cleveragents.infrastructure.snapshots.tree.engine import TreeEngine
from cleveragents.infrastructure.snapshots.tree.reader import TreeReader
from cleveragents.infrastructure.snapshots.tree.session import open_sandbox


class FolderToken(Struct, frozen=True, kw_only=True):
    """Two snapshots, and so all that has to be written; what differs and `stays` is left out."""

    base: str
    result: str
    stays: tuple[bytes, ...]
    diff: ResourceDiff


class FolderApply:
    def __init__(self, snapshots: TreeEngine) -> None:
        self._snapshots = snapshots

    def prepare_apply(self, resource: PlanResource, options: ApplyOptions) -> PreparedApply:  # noqa: ARG002 - a folder has no branches and no commits
        base = base_of(resource)
        result = self._snapshots.capture(resource).ref
        with self._snapshots.reading(resource) as reader:
            found = reader.between(base, result)
            differences, strayed = without_strayed(resource, without_holders(resource, found))
            refuse_conflicts(resource, differences)
            rest = (*left_behind(resource), *strayed)
            diff = diff_of(differences, reader.content, reader.content, rest)
            diff = replace(diff, notes=tuple(strayed_notes(resource, strayed)))
        stays = {item.path for item in found} - {item.path for item in differences}
        token = FolderToken(base=base, result=result, stays=tuple(sorted(stays)), diff=stored(diff))
        return PreparedApply(
            resource_id=resource.resource_id,
            token=to_plain(token),
            diff=diff,
            snapshots=(base, result),
            target="into the folder; files that the plan has not changed stay as they are",
        )

    def carry_out(self, resource: PlanResource, prepared: PreparedApply) -> str:
        token = read_back(resource, prepared.token, FolderToken)
        with self._snapshots.reading(resource) as reader:
            differences = _named_by(reader, token)
            if differences:
                journal = ApplyJournal(resource, token.result)
                work = CarryOut(resource, reader, differences, journal)
                with reported(resource, "could not be changed and is as it was"):
                    work.run()
            return "folder:" + reader.state_hash(token.result)

    def revert(self, resource: PlanResource, prepared: PreparedApply) -> tuple[str, ...]:
        token = read_back(resource, prepared.token, FolderToken)
        journal = ApplyJournal(resource, token.result)
        with self._snapshots.reading(resource) as reader:
            work = CarryOut(resource, reader, _named_by(reader, token), journal)
            with reported(resource, "could not be put back"):
                return tuple(shown(path) for path in work.revert())

    def finish(self, resource: PlanResource, prepared: PreparedApply) -> None:
        token = read_back(resource, prepared.token, FolderToken)
        finish(resource, ApplyJournal(resource, token.result))

    def way_of(self, resource: PlanResource, prepared: PreparedApply) -> OwnState:
        """Without what was there already: that is not taken back."""
        token = read_back(resource, prepared.token, FolderToken)
        changed = ApplyJournal(resource, token.result).changed()
        with self._snapshots.reading(resource) as reader:
            untouched = [i.path for i in _named_by(reader, token) if i.path not in changed]
        stays = tuple(sorted({*token.stays, *untouched}))
        return to_plain(replace(token, stays=stays, diff=ResourceDiff()))

    def settle(self, resource: PlanResource, prepared: PreparedApply) -> None:
        """All that is needed later is in the two snapshots."""
        self.finish(resource, prepared)

    def kept_bytes(self, resource: PlanResource) -> int:  # noqa: ARG002 - the same for every one
        return 0

    def withdraw(self, resource: PlanResource, prepared: PreparedApply) -> None:
        self.finish(resource, prepared)

    def prepare_move(self, resource: PlanResource, way: OwnState, side: ApplySide) -> PreparedApply:  # noqa: ARG002 - both ways are alike
        last = read_back(resource, way, FolderToken)
        token = replace(last, base=last.result, result=last.base)
        with self._snapshots.reading(resource) as reader:
            differences = _named_by(reader, token)
            refuse_conflicts(resource, differences, _changed_since)
            diff = diff_of(differences, reader.content, reader.content)
        return PreparedApply(
            resource_id=resource.resource_id,
            token=to_plain(token),
            diff=diff,
            target="into the folder; other files stay as they are",
        )


def base_of(resource: PlanResource) -> str:
    if resource.base_snapshot is None:
        raise ApplyRefusedError(
            f"`{resource.name}` has not been worked on yet",
            f"agents plan execute {resource.plan_id}",
        )
    return resource.base_snapshot


def left_behind(resource: PlanResource) -> tuple[str, ...]:
    """What is in the sandbox and is not applied, because the action excludes it."""
    if not resource.exclude:
        return ()
    with open_sandbox(resource) as anchor:
        found = walk(anchor, excludes(resource.exclude)).excluded
    return tuple(sorted(shown(path) for path in found))


def without_holders(
    resource: PlanResource, differences: Sequence[PathDifference]
) -> Sequence[PathDifference]:
    """Without the folders that snapshots do not list because they hold only excluded paths."""
    if not resource.exclude:
        return differences
    with open_sandbox(resource) as anchor:
        return [
            item
            for item in differences
            if item.new is not None
            or item.old is None
            or item.old.kind is not Kind.DIR
            or status_at(anchor, item.path) is None
        ]


def _named_by(reader: TreeReader, token: FolderToken) -> list[PathDifference]:
    stays = set(token.stays)
    found = reader.between(token.base, token.result)
    return [item for item in found if item.path not in stays]


def refuse_conflicts(
    resource: PlanResource,
    differences: Sequence[PathDifference],
    told: Callable[[PlanResource, Sequence[bytes]], ApplyConflictError] | None = None,
) -> None:
    """Raises ApplyConflictError, as it is `told`, or ApplyRefusedError."""
    location = resource.location
    try:
        with RootedFolder(location) as anchor:
            changes = {item.path: item for item in differences}
            state = ProjectState(anchor, changes, excludes(resource.exclude))
            conflicts = state.conflicts(accept_halfway=False)
    except OSError as error:
        raise ApplyRefusedError(
            f"the folder {location} cannot be read ({error.strerror})",
            "put it back if it was moved, or make it readable",
        ) from error
    if conflicts:
        raise (told or conflict_with)(resource, conflicts)
    if differences and not os.access(location, os.W_OK | os.X_OK, effective_ids=True):
        raise ApplyRefusedError(f"{location} cannot be written to", f"chmod u+wx {location}")


@contextmanager
def reported(resource: PlanResource, what: str) -> Generator[None]:
    """What stops a change of the folder, in words; `what` has become of it."""
    try:
        yield
    except EditsKeptError as error:
        cause = _told(resource, error.cause, what)
        names = [shown(path) for path in error.paths]
        raise ApplyEditsKeptError(resource.plan_id, str(cause), names) from error
    except (MovedOnError, OSError, SnapshotDamagedError) as error:
        raise _told(resource, error, what) from error


def _told(resource: PlanResource, error: BaseException, what: str) -> BaseException:
    if isinstance(error, MovedOnError):
        return conflict_with(resource, error.paths)
    return ApplyRefusedError(
        f"{resource.location} {what}: {error}", f"agents plan apply {resource.plan_id}"
    )


def _changed_since(resource: PlanResource, paths: Sequence[bytes]) -> ApplyConflictError:
    names = [shown(path) for path in paths]
    return ApplyConflictError(resource.plan_id, resource.name, names, "changed since then")


def conflict_with(resource: PlanResource, paths: Sequence[bytes]) -> ApplyConflictError:
    return ApplyConflictError(
        resource.plan_id,
        resource.name,
        [shown(path) for path in paths],
        "they are not as they were when the plan's copy was made",
        f"bring these back to what they were, or move them out of the way, and run "
        f"`agents plan apply {resource.plan_id}` again; the plan's own version is in "
        f"{resource.sandbox_path}",
    )
