"""Snapshots of file trees: capture, restore, verify, compare and prune, one file per plan.

Of these, a command does one or two, and loads what they take (ADR 0077).
A capture, in its order: the tracker names the paths that may differ; each is read, and its bytes
are put off; versions, manifest and the snapshot's row are written; the bytes that are new follow;
all of it is committed; only then the tracker is told that these changes are known.
Why: told before the commit, it would not name them again, and a failed commit would lose them. The
bytes are compressed beside the rows, and are in the same transaction.
What is not guaranteed: one instant for the whole tree. Each file is read while it holds still, or
read again; between two files somebody may write, so callers see to it that nobody does.
"""

import os
import sqlite3
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING

from msgspec import Struct

from cleveragents.application.ports.runtime import Restored
from cleveragents.domain.changes import FileChange
from cleveragents.domain.checkpoint import Snapshot
from cleveragents.domain.errors import RestoreFailedError, SnapshotDamagedError
from cleveragents.domain.ids import PlanId, ResourceId
from cleveragents.domain.resource import PlanResource, Rebuilding
from cleveragents.infrastructure.files.entry import Entry, shown
from cleveragents.infrastructure.snapshots.boots import boots_of
from cleveragents.infrastructure.snapshots.gc_pause import gc_paused
from cleveragents.infrastructure.snapshots.store.connections import Connections
from cleveragents.infrastructure.snapshots.store.plan_store import PlanStore
from cleveragents.infrastructure.snapshots.tree.diff import (
    Change,
    PathDifference,
    file_changes,
    footprint,
)
from cleveragents.infrastructure.snapshots.tree.history import Versions
from cleveragents.infrastructure.snapshots.tree.look import captured, looked
from cleveragents.infrastructure.snapshots.tree.manifest import Manifest, enter, number_of
from cleveragents.infrastructure.snapshots.tree.session import (
    Recorded,
    Session,
    TreeOf,
    open_sandbox,
    open_session,
)

if TYPE_CHECKING:
    from cleveragents.application.ports.runtime import Expected
    from cleveragents.infrastructure.files.copy.copy_proof import CopyProof
    from cleveragents.infrastructure.snapshots.changes.tracker import ChangeTracker
    from cleveragents.infrastructure.snapshots.damage import Damages
    from cleveragents.infrastructure.snapshots.tree.extra_state import ExtraState
    from cleveragents.infrastructure.snapshots.tree.reader import TreeReader
    from cleveragents.infrastructure.snapshots.tree.restore.staging import Staging


class _Tree(Struct, frozen=True, kw_only=True):
    plan_id: PlanId
    resource_id: ResourceId
    root: bytes


class TreeEngine:
    """`side_of` says what belongs to a resource's state beside its files."""

    def __init__(
        self,
        snapshots_dir: str,
        scratch_dir: str,
        side_of: "Callable[[PlanResource], ExtraState]",
        tracker: "ChangeTracker",
        connections: Connections,
    ) -> None:
        self._snapshots_dir = snapshots_dir
        self._scratch_dir = scratch_dir
        self._side_of = side_of
        self._tracker = tracker
        self._connections = connections
        self._present: dict[_Tree, Manifest] = {}

    def capture(self, resource: PlanResource) -> Snapshot:
        with self._working(resource) as session:
            delta, found, extra = looked(session, self._tracker)
            recorded = session.record(delta, extra)
            row = recorded.row
            since = recorded.changes if session.head else []
            changes = changes_to(session.versions, since, row.seq)
            moved = session.head is not None and session.head.identity != row.identity
            touched = footprint(since, whole=moved)
        self._acknowledge(session, recorded)
        unchanged = row is session.head
        return Snapshot(
            ref=str(row.seq),
            state_hash=row.state_hash,
            sandbox_ref=row.sandbox_ref,
            size_bytes=0 if unchanged else session.contents.stored_bytes,
            changes=changes,
            footprint=touched,
            skipped=tuple(shown(path) for path in found.special),
            notes=found.notes,
        )

    def known(self, resource: PlanResource, ref: str) -> Snapshot:
        with self.reading(resource) as reader:
            row = reader.session.snapshot(ref)
        return Snapshot(ref=ref, state_hash=row.state_hash, sandbox_ref=row.sandbox_ref)

    def inherit_snapshot(
        self, parent: PlanResource, child: PlanResource, copied: "Mapping[bytes, CopyProof]"
    ) -> Snapshot:
        from cleveragents.infrastructure.snapshots.tree.inherit import inherited, wait_until_old

        if copied:
            wait_until_old(copied)
            with self._working(child) as session:
                db = session.present.db
                of_parent = number_of(db, str(parent.resource_id))
                believed = not boots_of(db, parent).is_doubtful
                recorded = session.record_copy(inherited(db, of_parent, copied, believed=believed))
            self._acknowledge(session, recorded)
        # What could not be taken over, and whatever else is there.
        return self.capture(child)

    def restore(self, resource: PlanResource, ref: str, *, together: bool = True) -> Restored:
        from cleveragents.infrastructure.snapshots.tree.restore.whole import restore

        with (
            self._in_doubt(resource),
            self._working(resource) as session,
            self._staging(resource) as staged,
        ):
            target = session.snapshot(ref)
            outcome = restore(session, target, self._tracker, staged, together=together)
            changes = changes_to(session.versions, outcome.differences, outcome.recorded.row.seq)
        return self._acknowledged(session, outcome.recorded, changes, outcome.notes)

    def newest(self, resource: PlanResource) -> str:
        with self.reading(resource) as reader:
            if reader.session.head is None:
                raise SnapshotDamagedError(resource.name, "there is none")
            return str(reader.session.head.seq)

    def rebuild(self, resource: PlanResource, how: Rebuilding) -> Restored:
        if not how.keeps_files:
            return self.restore(resource, how.snapshot)
        with self._in_doubt(resource), self._working(resource) as session:
            target = session.snapshot(how.snapshot)
            session.restore_side(target)
        # The files are looked at by whoever comes next, which may find that they differ.
        snapshot = Snapshot(
            ref=how.snapshot, state_hash=target.state_hash, sandbox_ref=target.sandbox_ref
        )
        return Restored(snapshot=snapshot, changes=())

    def restore_paths(self, resource: PlanResource, ref: str, paths: Collection[str]) -> Restored:
        from cleveragents.infrastructure.snapshots.tree.restore.partial import (
            Chosen,
            restore_chosen,
        )

        with (
            self._in_doubt(resource),
            self._working(resource) as session,
            self._staging(resource) as staged,
        ):
            target, (delta, _) = session.snapshot(ref), captured(session, self._tracker)
            chosen = Chosen.named(paths)
            outcome = restore_chosen(session, target, delta, chosen, self._tracker, staged)
            changes = changes_to(session.versions, outcome.differences, outcome.recorded.row.seq)
        return self._acknowledged(session, outcome.recorded, changes, outcome.notes)

    def _acknowledged(
        self,
        session: Session,
        recorded: Recorded,
        changes: tuple[FileChange, ...],
        notes: Sequence[str],
    ) -> Restored:
        row = recorded.row
        self._acknowledge(session, recorded)
        snapshot = Snapshot(
            ref=str(row.seq),
            state_hash=row.state_hash,
            sandbox_ref=row.sandbox_ref,
            size_bytes=0 if row is session.head else session.contents.stored_bytes,
            changes=changes,
        )
        return Restored(snapshot=snapshot, changes=changes, notes=tuple(notes))

    def compare(
        self, resource: PlanResource, ref: str, paths: Collection[str] = ()
    ) -> tuple[FileChange, ...]:
        from cleveragents.infrastructure.snapshots.tree.restore.partial import Chosen

        with self.reading(resource) as reader:
            versions, target = reader.session.versions, reader.session.snapshot(ref)
            back = [PathDifference(path, new, old) for path, old, new in reader.since(ref)]
            return changes_to(versions, Chosen.named(paths).of(back), target.seq)

    def unknown_paths(
        self, resource: PlanResource, ref: str, paths: Collection[str]
    ) -> Mapping[str, str | None]:
        from cleveragents.infrastructure.snapshots.tree.restore.partial import unknown_names

        with self.reading(resource) as reader:
            target = reader.session.snapshot(ref)
            return unknown_names(reader.session, target, reader.now(), paths)

    def damages(self, resource: PlanResource, snapshots: "Collection[Expected]") -> "Damages":
        from cleveragents.infrastructure.snapshots.tree.damage import tree_damages

        with self.reading(resource) as reader:
            return tree_damages(reader, snapshots)

    def verify_restorable(
        self, resource: PlanResource, ref: str, state_hash: str, paths: Collection[str] = ()
    ) -> None:
        from cleveragents.infrastructure.snapshots.tree.restore.partial import Chosen

        with self.reading(resource) as reader:
            reader.refuse_unrestorable(ref, state_hash, Chosen.named(paths), side=not paths)

    def changes_between(self, resource: PlanResource, old: str, new: str) -> tuple[FileChange, ...]:
        with self.reading(resource) as reader:
            versions, target = reader.session.versions, reader.session.snapshot(new)
            return changes_to(versions, reader.between(old, new), target.seq)

    @contextmanager
    def reading(self, resource: PlanResource) -> "Generator[TreeReader]":
        """A look at the snapshots of the tree and at the sandbox; nothing is written."""
        from cleveragents.infrastructure.snapshots.tree.reader import TreeReader

        with self._store(resource).reading() as db:
            yield TreeReader(self._session(db, resource))

    def put(
        self,
        resource: PlanResource,
        wanted: Mapping[bytes, Entry | None],
        fill: "Callable[[Staging], None]",
    ) -> None:
        """Make these paths of the sandbox what they are wanted to be; nothing is recorded.

        `fill` puts the contents of the files into the staging folder.
        """
        from cleveragents.infrastructure.snapshots.tree.restore.in_place import fit_in_place
        from cleveragents.infrastructure.snapshots.tree.restore.writer import TreeWriter

        with self.reading(resource) as reader:
            exclude = reader.session.exclude
        present = self._mend(resource, wanted)
        with self._staging(resource) as staged, open_sandbox(resource, open_up=True) as anchor:
            changes = (PathDifference(path, present.get(path), wanted[path]) for path in wanted)
            staged.hold(fit_in_place(anchor, changes))
            fill(staged)
            try:
                TreeWriter(anchor, staged, exclude).apply(wanted)
            except OSError as error:
                raise RestoreFailedError(resource.name, str(error)) from error

    def _mend(self, resource: PlanResource, going: Collection[bytes]) -> Mapping[bytes, Entry]:
        """Whatever is about to go, as the newest snapshot says, and it is stored whole."""
        from cleveragents.infrastructure.snapshots.tree.restore.mending import mend_files

        with self._working(resource) as session, open_sandbox(resource) as anchor:
            seen = session.manifest.seen.prefetch(going)
            present = {path: found.entry for path in going if (found := seen.get(path))}
            mend_files(session, anchor, present)
        return present

    def keep_only(
        self, resource: PlanResource, refs: Collection[str], *, if_worth: bool = False
    ) -> int:
        from cleveragents.infrastructure.snapshots.store.sweep import sweep, used_bytes

        store = self._store(resource)
        with store.writing() as db:
            before = used_bytes(db)
            session = self._session(db, resource)
            if session.head is None:
                return 0
            # The newest mirrors the present, from which the next snapshot is told apart.
            kept = {int(ref) for ref in refs if ref.isdecimal()} | {session.head.seq}
            if if_worth and not session.versions.are_worth_freeing(kept):
                return 0
            session.versions.keep_only(kept)
            sweep(db)
        store.compact()
        with store.reading() as db:
            return max(0, before - used_bytes(db))

    def forget(self, plan_id: PlanId) -> None:
        for key in [key for key in list(self._present) if key.plan_id == plan_id]:
            self._tracker.release(key.root)
            del self._present[key]
        PlanStore(self._snapshots_dir, plan_id, "", self._connections).remove()

    def is_doubtful(self, resource: PlanResource) -> bool:
        with self._store(resource).reading() as db:
            return boots_of(db, resource).is_doubtful

    def believe(self, resource: PlanResource) -> None:
        self.capture(resource)  # by which every mark is one of today's
        with self._store(resource).writing() as db:
            boots_of(db, resource).believe()

    def release(self, resource: PlanResource) -> None:
        key = _key(resource)
        self._tracker.release(key.root)
        self._present.pop(key, None)

    def _store(self, resource: PlanResource) -> PlanStore:
        return PlanStore(self._snapshots_dir, resource.store_id, resource.name, self._connections)

    @contextmanager
    def _working(self, resource: PlanResource) -> Generator[Session]:
        """One piece of work, durable if it ends well and undone if it raises."""
        with gc_paused(), self._store(resource).writing() as db:
            enter(db, str(resource.resource_id))
            boots_of(db, resource).begin()
            session = self._session(db, resource)
            yield session
            session.finish()

    def _session(self, db: sqlite3.Connection, resource: PlanResource) -> Session:
        key = _key(resource)
        about = TreeOf(resource, self._side_of(resource))
        session = open_session(db, self._store(resource), about, self._present.get(key))
        # Also if this piece of work fails: the tracker knows the tree by what it was told last.
        self._present[key] = session.manifest
        return session

    def _acknowledge(self, session: Session, recorded: Recorded) -> None:
        """After the commit, and only then, what was recorded is what is known."""
        if recorded.saved is not None:
            session.manifest.move_on(recorded.saved)
        session.manifest.fresh = session.fresh
        self._tracker.acknowledge(_key(session.resource).root, session.manifest.seen)

    @contextmanager
    def _in_doubt(self, resource: PlanResource) -> Generator[None]:
        """If this fails half-way, then nothing is known of the tree: the tracker was told that
        what happened to it is no news."""
        try:
            yield
        except BaseException:
            self.release(resource)
            raise

    def _staging(self, resource: PlanResource) -> "AbstractContextManager[Staging]":
        from cleveragents.infrastructure.snapshots.tree.restore.staging import staging

        return staging(self._scratch_dir, resource)


def _key(resource: PlanResource) -> _Tree:
    root = os.fsencode(resource.sandbox_path)
    return _Tree(plan_id=resource.store_id, resource_id=resource.resource_id, root=root)


def changes_to(
    versions: Versions, changes: Sequence[Change], new_seq: int
) -> tuple[FileChange, ...]:
    """`changes` lead to the state at `new_seq`, and are all that does."""
    brought = {path for path, old, _ in changes if old is None}

    def new_has(path: bytes) -> bool:
        return any(True for _ in versions.state(new_seq, path))

    def old_has(path: bytes) -> bool:
        return any(entry.path not in brought for entry in versions.state(new_seq, path))

    return file_changes(changes, old_has, new_has)
