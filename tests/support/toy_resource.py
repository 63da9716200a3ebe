"""A type of resource that the program does not have: a single text file, taken as a whole.

    registry.register(NOTE, NoteAdapter)      # all that is needed for plans to work on notes

It shares nothing with the types there are but folders and errors; every change is one rename.
"""

import hashlib
import os
import shutil
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from msgspec import Struct
from tests.support.toy_files import read_note, write_note

from cleveragents.application.ports.merging import Decide, PreparedMerge
from cleveragents.application.ports.runtime import Expected, Restored
from cleveragents.domain.action import MergeStrategy, ResourceSpec
from cleveragents.domain.applied import ApplySide
from cleveragents.domain.apply import ApplyOptions, PreparedApply, intended
from cleveragents.domain.changes import ChangeKind, FileChange, FileDiff, ResourceDiff
from cleveragents.domain.checkpoint import Snapshot
from cleveragents.domain.conflicts import Side
from cleveragents.domain.errors import (
    ApplyConflictError,
    ResourceError,
    SandboxMissingError,
    SnapshotDamagedError,
)
from cleveragents.domain.footprint import Footprint
from cleveragents.domain.ids import PlanId
from cleveragents.domain.resource import OwnState, PlanResource, Rebuilding, ResourceInspection
from cleveragents.domain.resource_kinds import ResourceKind, ResourceType
from cleveragents.domain.subplan import Conflict, ConflictKind
from cleveragents.infrastructure.sandbox import location as places
from cleveragents.infrastructure.sandbox.adapter import told_by
from cleveragents.infrastructure.sandbox.own_state import read_back, to_plain
from cleveragents.infrastructure.sandbox.workbench import Workbench

NOTE = ResourceKind(type=ResourceType("note"))


class NoteAdapter:
    kind = NOTE

    def __init__(self, bench: Workbench) -> None:
        self.snapshots = NoteSnapshots(Path(bench.snapshots))
        self.sandbox = NoteSandboxes(Path(bench.sandboxes), self.snapshots)
        self.applier = NoteApply(self.snapshots)
        self.merge = NoteMerge(self.snapshots)
        self.branches = self
        self.location = places.PlainLocation(os.path.isfile)

    def branch(self, parent: PlanResource, child: PlanResource) -> Snapshot:
        places.make_parent(Path(child.sandbox_path))
        write_note(child.sandbox_path, read_note(parent.sandbox_path))
        return self.snapshots.capture(child)

    def diff_between(self, resource: PlanResource, old: str, new: str) -> ResourceDiff:
        contents = (self.snapshots.content(resource, ref) for ref in (old, new))
        return _diff(resource, *contents)

    def only_here(self, resource: PlanResource) -> tuple[str, ...]:
        return told_by(self.sandbox.diff(resource))

    def diff_since(self, resource: PlanResource, ref: str) -> ResourceDiff:
        return _diff(
            resource, self.snapshots.content(resource, ref), read_note(resource.sandbox_path)
        )


class NoteSnapshots:
    """Each in a file whose name has its number and its hash, by which it is proven."""

    def __init__(self, top: Path) -> None:
        self._top = top

    def capture(self, resource: PlanResource) -> Snapshot:
        content, before = read_note(resource.sandbox_path), self._newest(resource)
        if before is not None and _hash_in(before) == _hash(content):
            return self.known(resource, before)
        number = 1 + max((int(ref.partition("-")[0]) for ref in self._refs(resource)), default=0)
        ref = f"{number}-{_hash(content)}"
        write_note(str(self._place(resource) / ref), _packed(content))
        self._stand_on(resource, ref)
        changes = self.changes_between(resource, before, ref) if before else ()
        return self._snapshot(ref, changes, len(content or b""))

    def known(self, resource: PlanResource, ref: str) -> Snapshot:
        self.content(resource, ref)
        return self._snapshot(ref, (), 0)

    def content(self, resource: PlanResource, ref: str) -> bytes | None:
        packed = read_note(str(self._place(resource) / ref)) if ref else None
        if packed is None:
            raise SnapshotDamagedError(resource.name, f"there is no snapshot {ref}")
        content = packed[1:] if packed[:1] == b"+" else None
        if _hash(content) != _hash_in(ref):
            raise SnapshotDamagedError(resource.name, f"snapshot {ref} is not what it was")
        return content

    def restore(self, resource: PlanResource, ref: str, *, together: bool = True) -> Restored:
        del together
        changes = self.compare(resource, ref)
        write_note(resource.sandbox_path, self.content(resource, ref))
        self._stand_on(resource, ref)
        return Restored(snapshot=self._snapshot(ref, changes, 0), changes=changes)

    def restore_paths(self, resource: PlanResource, ref: str, paths: Collection[str]) -> Restored:
        del paths
        return self.restore(resource, ref)

    def rebuild(self, resource: PlanResource, how: Rebuilding) -> Restored:
        return self.restore(resource, how.snapshot)

    def compare(
        self, resource: PlanResource, ref: str, paths: Collection[str] = ()
    ) -> tuple[FileChange, ...]:
        del paths
        return _changes(resource, read_note(resource.sandbox_path), self.content(resource, ref))

    def changes_between(self, resource: PlanResource, old: str, new: str) -> tuple[FileChange, ...]:
        return _changes(resource, self.content(resource, old), self.content(resource, new))

    def unknown_paths(
        self, resource: PlanResource, ref: str, paths: Collection[str]
    ) -> Mapping[str, str | None]:
        del ref
        name = Path(resource.sandbox_path).name
        return {path: name for path in paths if path != name}

    def newest(self, resource: PlanResource) -> str:
        newest = self._newest(resource)
        if newest is None:
            raise SnapshotDamagedError(resource.name, "there is none")
        return newest

    def damages(
        self, resource: PlanResource, snapshots: Collection[Expected]
    ) -> dict[Expected, SnapshotDamagedError]:
        found: dict[Expected, SnapshotDamagedError] = {}
        for snapshot in snapshots:
            try:
                self.verify_restorable(resource, snapshot.ref, snapshot.state_hash)
            except SnapshotDamagedError as error:
                found[snapshot] = error
        return found

    def verify_restorable(
        self, resource: PlanResource, ref: str, state_hash: str, paths: Collection[str] = ()
    ) -> None:
        del paths
        if _hash(self.content(resource, ref)) != state_hash:
            raise SnapshotDamagedError(resource.name, f"snapshot {ref} is another one")

    def keep_only(
        self, resource: PlanResource, refs: Collection[str], *, if_worth: bool = False
    ) -> int:
        del if_worth  # a small file is gone at once
        going = set(self._refs(resource)) - {*refs, self._newest(resource)}
        places = [self._place(resource) / ref for ref in going]
        freed = sum(place.stat().st_size for place in places)
        for place in places:
            place.unlink()
        return freed

    def forget(self, plan_id: PlanId) -> None:
        shutil.rmtree(self._top / f"{plan_id}.notes", ignore_errors=True)

    def is_doubtful(self, resource: PlanResource) -> bool:
        return False

    def believe(self, resource: PlanResource) -> None: ...
    def release(self, resource: PlanResource) -> None: ...

    def _place(self, resource: PlanResource) -> Path:
        place = self._top / f"{resource.store_id}.notes" / resource.resource_id
        place.mkdir(parents=True, exist_ok=True)
        return place

    def _refs(self, resource: PlanResource) -> Iterator[str]:
        return (place.name for place in self._place(resource).glob("[0-9]*"))

    def _newest(self, resource: PlanResource) -> str | None:
        told = read_note(str(self._place(resource) / "newest"))
        return told.decode() if told else None

    def _stand_on(self, resource: PlanResource, ref: str) -> None:
        write_note(str(self._place(resource) / "newest"), ref.encode())

    def _snapshot(self, ref: str, changes: tuple[FileChange, ...], size: int) -> Snapshot:
        return Snapshot(
            ref=ref,
            state_hash=_hash_in(ref),
            sandbox_ref="",
            size_bytes=size,
            changes=changes,
            footprint=Footprint(whole=bool(changes)),
        )


class NoteSandboxes:
    def __init__(self, sandboxes: Path, snapshots: NoteSnapshots) -> None:
        self._sandboxes = sandboxes
        self._snapshots = snapshots

    def inspect(
        self, spec: ResourceSpec, plan_id: PlanId | None, *, include_uncommitted: bool
    ) -> ResourceInspection:
        if not Path(spec.location).is_file():
            raise ResourceError(f"there is no note at {spec.location}", "correct `path`")
        location = os.path.realpath(spec.location)
        return ResourceInspection(location=location, base=_hash(read_note(location)))

    def create(self, resource: PlanResource) -> None:
        self._clear(resource)
        write_note(resource.sandbox_path, read_note(resource.location))

    def files_there(self, resource: PlanResource) -> int:
        return 1

    def check(self, resource: PlanResource) -> None:
        if not places.is_there(self._sandboxes, resource):
            raise SandboxMissingError(resource.name, resource.sandbox_path, resource.store_id)

    def make_room(self, resource: PlanResource, how: Rebuilding) -> None:
        self._clear(resource)

    def _clear(self, resource: PlanResource) -> None:
        folder = Path(resource.sandbox_path).parent
        places.remove_sandbox(self._sandboxes, folder)
        places.make_parent(folder)
        folder.mkdir(mode=0o700)

    def has_repository(self, resource: PlanResource) -> bool:
        return True

    secure = has_repository

    def remove(self, resource: PlanResource) -> None:
        folder = Path(resource.sandbox_path).parent
        places.remove_sandbox(self._sandboxes, folder)
        with suppress(OSError):
            folder.parent.rmdir()

    remove_copy = remove

    def release(self, resource: PlanResource) -> None: ...

    def left_behind(self, resource: PlanResource) -> tuple[str, ...]:
        return self.diff(resource).left_behind

    def diff(self, resource: PlanResource) -> ResourceDiff:
        began = self._snapshots.content(resource, resource.base_snapshot or "")
        return _diff(resource, began, read_note(resource.sandbox_path))

    def applied_diff(self, resource: PlanResource, applied_ref: str) -> ResourceDiff:
        token = read_back(resource, resource.intent, NoteToken)
        return _diff(resource, token.old, token.new)


class NoteToken(Struct, frozen=True, kw_only=True):
    """Both contents, so that nothing else is needed to go there and back."""

    old: bytes | None
    new: bytes | None


class NoteApply:
    def __init__(self, snapshots: NoteSnapshots) -> None:
        self._snapshots = snapshots

    def prepare_apply(self, resource: PlanResource, options: ApplyOptions) -> PreparedApply:
        result = self._snapshots.capture(resource)
        began = self._snapshots.content(resource, resource.base_snapshot or "")
        old, new = read_note(resource.location), self._snapshots.content(resource, result.ref)
        if new == began:
            new = old
        elif old not in (began, new):
            self._refuse(resource)
        return PreparedApply(
            resource_id=resource.resource_id,
            token=to_plain(NoteToken(old=old, new=new)),
            diff=_diff(resource, old, new),
            snapshots=(result.ref,),
        )

    def carry_out(self, resource: PlanResource, prepared: PreparedApply) -> str:
        token = read_back(resource, prepared.token, NoteToken)
        if read_note(resource.location) not in (token.old, token.new):
            self._refuse(resource)
        write_note(resource.location, token.new)
        return f"note:{_hash(token.new)}"

    def revert(self, resource: PlanResource, prepared: PreparedApply) -> tuple[str, ...]:
        token = read_back(resource, prepared.token, NoteToken)
        if read_note(resource.location) not in (token.old, token.new):
            return (resource.location,)
        write_note(resource.location, token.old)
        return ()

    def finish(self, resource: PlanResource, prepared: PreparedApply) -> None: ...

    settle = withdraw = finish

    def kept_bytes(self, resource: PlanResource) -> int:
        return 0

    def way_of(self, resource: PlanResource, prepared: PreparedApply) -> OwnState:
        return prepared.token

    def prepare_move(self, resource: PlanResource, way: OwnState, side: ApplySide) -> PreparedApply:
        last = read_back(resource, way, NoteToken)
        if read_note(resource.location) != last.new:
            self._refuse(resource)
        return intended(resource.resource_id, to_plain(NoteToken(old=last.new, new=last.old)))

    def _refuse(self, resource: PlanResource) -> None:
        files = (Path(resource.location).name,)
        raise ApplyConflictError(resource.plan_id, resource.name, files, "it was changed meanwhile")


class NoteMerge:
    def __init__(self, snapshots: NoteSnapshots) -> None:
        self._snapshots = snapshots

    def prepare(
        self,
        parent: PlanResource,
        child: PlanResource,
        strategy: MergeStrategy,
        before: Sequence[PreparedMerge],
        decide: Decide,
    ) -> PreparedMerge:
        changed = self._differ(child, child.base_snapshot, child.boundary)
        moved_on = any(one.changes for one in before) or self._differ(
            parent, child.branched_at, parent.boundary
        )
        if changed and moved_on:
            conflict = self._conflict(parent, child)
            wins = strategy is MergeStrategy.LAST_WINS or decide(conflict) is Side.THEIRS
            if not wins:
                return PreparedMerge(resource=parent.name, conflicts=(conflict,))
        return PreparedMerge(resource=parent.name, changes=int(changed))

    def carry_out(self, parent: PlanResource, child: PlanResource, prepared: PreparedMerge) -> None:
        if prepared.changes:
            content = self._snapshots.content(child, child.boundary or "")
            write_note(parent.sandbox_path, content)

    def _differ(self, resource: PlanResource, old: str | None, new: str | None) -> bool:
        one, two = (self._snapshots.content(resource, ref or "") for ref in (old, new))
        return one != two

    def _conflict(self, parent: PlanResource, child: PlanResource) -> Conflict:
        return Conflict(
            resource=parent.name,
            path=Path(parent.sandbox_path).name,
            kind=ConflictKind.CONTENT,
            key=f"{parent.boundary}/{child.boundary}",
        )


def _hash(content: bytes | None) -> str:
    return hashlib.sha256(_packed(content)).hexdigest()


def _packed(content: bytes | None) -> bytes:
    return b"-" if content is None else b"+" + content


def _hash_in(ref: str) -> str:
    return ref.partition("-")[2]


def _changes(
    resource: PlanResource, old: bytes | None, new: bytes | None
) -> tuple[FileChange, ...]:
    if old == new:
        return ()
    kind = ChangeKind.MODIFIED
    if None in (old, new):
        kind = ChangeKind.ADDED if old is None else ChangeKind.DELETED
    return (FileChange(path=Path(resource.sandbox_path).name, kind=kind),)


def _diff(resource: PlanResource, old: bytes | None, new: bytes | None) -> ResourceDiff:
    found = _changes(resource, old, new)
    files = (FileDiff(path=c.path, kind=c.kind, insertions=None, deletions=None) for c in found)
    return ResourceDiff(files=tuple(files))
