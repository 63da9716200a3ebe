"""Snapshots of database files: capture, restore, verify, compare and prune by pages."""

import os
import sqlite3
from collections.abc import Collection, Generator, Mapping
from contextlib import AbstractContextManager, contextmanager

from msgspec.structs import replace

from cleveragents.application.ports.runtime import Expected, Restored
from cleveragents.domain.changes import ChangeKind, FileChange
from cleveragents.domain.checkpoint import Snapshot
from cleveragents.domain.errors import SnapshotDamagedError
from cleveragents.domain.footprint import Footprint
from cleveragents.domain.ids import PlanId
from cleveragents.domain.resource import PlanResource, Rebuilding
from cleveragents.infrastructure.files.entry import Kind, shown
from cleveragents.infrastructure.snapshots.boots import boots_of
from cleveragents.infrastructure.snapshots.damage import Damages
from cleveragents.infrastructure.snapshots.pages.base_copy import forget_bases
from cleveragents.infrastructure.snapshots.pages.capture import capture, copy_present
from cleveragents.infrastructure.snapshots.pages.damage import page_damages, wrong_hash
from cleveragents.infrastructure.snapshots.pages.database_file import DatabaseFile, clear
from cleveragents.infrastructure.snapshots.pages.history import FileState
from cleveragents.infrastructure.snapshots.pages.rebuild import build_file
from cleveragents.infrastructure.snapshots.pages.restore import (
    PagesRestored,
    checked_way_back,
    differs,
    restore,
)
from cleveragents.infrastructure.snapshots.pages.session import PageSession, page_session
from cleveragents.infrastructure.snapshots.store.connections import Connections
from cleveragents.infrastructure.snapshots.store.plan_store import PlanStore
from cleveragents.infrastructure.snapshots.store.sweep import sweep, used_bytes
from cleveragents.infrastructure.sqlite.worker import DatabaseWorkers


class PagesEngine:
    """Keeps its rows in the plan's snapshot file, and one copy of each database beside it."""

    def __init__(
        self, snapshots_dir: str, connections: Connections, workers: DatabaseWorkers
    ) -> None:
        self._snapshots_dir = snapshots_dir
        self._connections = connections
        self._workers = workers

    def capture(self, resource: PlanResource) -> Snapshot:
        with self._working(resource) as session:
            before = session.head
            captured = capture(session)
        unchanged = captured.state is before
        changes = (
            () if unchanged or before is None else changes_of(resource, before, captured.state)
        )
        snapshot = snapshot_of(captured.state, captured.stored, changes)
        skipped = tuple(shown(os.fsencode(name)) for name in captured.skipped)
        return replace(snapshot, skipped=skipped, notes=captured.notes)

    def known(self, resource: PlanResource, ref: str) -> Snapshot:
        with self._reading(resource) as session:
            return snapshot_of(session.snapshot(ref), 0, ())

    def restore(self, resource: PlanResource, ref: str, *, together: bool = True) -> Restored:
        del together  # a database has no times that anybody goes by
        with self._working(resource) as session:
            target = session.snapshot(ref)
            outcome = restore(session, target)
        return restored_by(resource, outcome, target)

    def newest(self, resource: PlanResource) -> str:
        with self._reading(resource) as session:
            if session.head is None:
                raise SnapshotDamagedError(resource.name, "there is none")
            return str(session.head.seq)

    def rebuild(self, resource: PlanResource, how: Rebuilding) -> Restored:
        return self.restore(resource, how.snapshot)

    def restore_paths(self, resource: PlanResource, ref: str, paths: Collection[str]) -> Restored:
        """A database is one file, so that whichever path is meant, it is this."""
        del paths
        return self.restore(resource, ref)

    def compare(
        self, resource: PlanResource, ref: str, paths: Collection[str] = ()
    ) -> tuple[FileChange, ...]:
        del paths
        with self._reading(resource) as session:
            target = session.snapshot(ref)
            before, changed = differs(session, target)
            return changes_of(resource, FileState(kind=before, seq=-1), target) if changed else ()

    def unknown_paths(
        self, resource: PlanResource, ref: str, paths: Collection[str]
    ) -> Mapping[str, str | None]:
        del ref
        name = os.path.basename(resource.sandbox_path)
        return {path: name for path in paths if path != name}

    def damages(self, resource: PlanResource, snapshots: Collection[Expected]) -> Damages:
        with self._reading(resource) as session:
            return page_damages(session, snapshots)

    def verify_restorable(
        self, resource: PlanResource, ref: str, state_hash: str, paths: Collection[str] = ()
    ) -> None:
        del paths
        with self._reading(resource) as session:
            state, head = session.snapshot(ref), session.state()
            if state.kind is head.kind is Kind.FILE:
                wrong = wrong_hash(session, state, state_hash, checked_way_back(session, state))
            else:
                whole = Expected(ref=ref, state_hash=state_hash)
                wrong = page_damages(session, [whole]).get(whole)
            if wrong is not None:
                raise wrong

    def changes_between(self, resource: PlanResource, old: str, new: str) -> tuple[FileChange, ...]:
        with self._reading(resource) as session:
            return changes_of(resource, session.snapshot(old), session.snapshot(new))

    def state_hash(self, resource: PlanResource, ref: str) -> str:
        with self._reading(resource) as session:
            return session.snapshot(ref).state_hash

    def keep_only(
        self, resource: PlanResource, refs: Collection[str], *, if_worth: bool = False
    ) -> int:
        store = self._store(resource)
        with self._working(resource) as session:
            if session.head is None:
                return 0
            db = session.versions.db
            before = used_bytes(db)
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
        PlanStore(self._snapshots_dir, plan_id, "", self._connections).remove()
        forget_bases(self._snapshots_dir, plan_id)

    def is_doubtful(self, resource: PlanResource) -> bool:
        with self._store(resource).reading() as db:
            return boots_of(db, resource).is_doubtful

    def believe(self, resource: PlanResource) -> None:
        self.capture(resource)  # by which the marks are of today
        with self._store(resource).writing() as db:
            boots_of(db, resource).believe()

    def release(self, resource: PlanResource) -> None:
        """Nothing is kept."""

    @contextmanager
    def copy_of(self, resource: PlanResource, ref: str, draft: str) -> Generator[str]:
        """The path of a file that holds the snapshot; it is only to be read.

        It is the base copy where that is the snapshot, or else a new file at `draft`.
        """
        with _only_meanwhile(draft):
            # Used outside of the transaction, for errors in there are taken for the store's.
            yield self._materialised(resource, ref, draft)

    def _materialised(self, resource: PlanResource, ref: str, draft: str) -> str:
        with self._reading(resource) as session:
            state = session.snapshot(ref)
            if state.kind is not Kind.FILE:
                raise SnapshotDamagedError(resource.name, f"snapshot {ref} holds no file")
            if state.size == session.known.base_size and not session.versions.touched(0, state.seq):
                return session.base.path
            build_file(session, state, draft)
            return draft

    @contextmanager
    def _working(self, resource: PlanResource) -> Generator[PageSession]:
        with self._store(resource).writing() as db:
            boots_of(db, resource).begin()
            with self._session(db, resource) as session:
                yield session

    @contextmanager
    def _reading(self, resource: PlanResource) -> Generator[PageSession]:
        with (
            self._store(resource).reading() as db,
            self._session(db, resource) as session,
        ):
            yield session

    def _session(
        self, db: sqlite3.Connection, resource: PlanResource
    ) -> AbstractContextManager[PageSession]:
        file = self._file(resource)
        return page_session(db, file, self._snapshots_dir, self._connections.limit_bytes)

    def strangers(self, resource: PlanResource) -> tuple[str, ...]:
        """Names beside the database that belong to no snapshot."""
        return self._file(resource).strangers()

    def copy_present(self, resource: PlanResource, target: int) -> int:
        """Fill the open file with what the sandbox holds now, its journals included; gives back
        the mode. Raises SnapshotFailedError or OSError."""
        return copy_present(self._file(resource), target)

    def _file(self, resource: PlanResource) -> DatabaseFile:
        return DatabaseFile(resource, self._workers)

    def _store(self, resource: PlanResource) -> PlanStore:
        return PlanStore(self._snapshots_dir, resource.store_id, resource.name, self._connections)


def restored_by(resource: PlanResource, outcome: PagesRestored, target: FileState) -> Restored:
    changes = ()
    if outcome.differed:
        changes = changes_of(resource, FileState(kind=outcome.before, seq=-1), target)
    snapshot, notes = snapshot_of(outcome.state, 0, changes), tuple(outcome.notes)
    return Restored(snapshot=snapshot, changes=changes, notes=notes)


def snapshot_of(state: FileState, stored: int, changes: tuple[FileChange, ...]) -> Snapshot:
    return Snapshot(
        ref=str(state.seq),
        state_hash=state.state_hash,
        sandbox_ref="",
        size_bytes=stored,
        changes=changes,
        footprint=Footprint(whole=bool(changes)),
    )


def changes_of(resource: PlanResource, old: FileState, new: FileState) -> tuple[FileChange, ...]:
    """A database is one file to people, however many of its pages changed."""
    if old.same_as(new):
        return ()
    kind = ChangeKind.MODIFIED
    if Kind.GONE in (old.kind, new.kind):
        kind = ChangeKind.ADDED if old.kind is Kind.GONE else ChangeKind.DELETED
    return (FileChange(path=os.path.basename(resource.sandbox_path), kind=kind),)


@contextmanager
def _only_meanwhile(path: str) -> Generator[None]:
    """There is nothing at `path` before and after, whatever an earlier process left there."""
    clear(path)
    try:
        yield
    finally:
        clear(path)
