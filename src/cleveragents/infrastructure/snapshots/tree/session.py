"""One piece of work on one tree inside one transaction: what is known, and what is there."""

import sqlite3
from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple

from msgspec import Struct

from cleveragents.domain.errors import SandboxMissingError, SnapshotDamagedError
from cleveragents.domain.resource import PlanResource
from cleveragents.infrastructure.files.entry import Entry, Kind, ManifestRow, same_state, shown
from cleveragents.infrastructure.files.excludes import Excludes, excludes
from cleveragents.infrastructure.files.read_path import Sink
from cleveragents.infrastructure.files.rooted_folder import RootedFolder
from cleveragents.infrastructure.files.tree_hash import state_hash
from cleveragents.infrastructure.snapshots.boots import boots_of
from cleveragents.infrastructure.snapshots.changes.full_scan import SMALL
from cleveragents.infrastructure.snapshots.changes.tracker import Candidates, ManifestView
from cleveragents.infrastructure.snapshots.store.content_store import ContentStore
from cleveragents.infrastructure.snapshots.store.plan_store import PlanStore
from cleveragents.infrastructure.snapshots.tree.diff import Change, total_after
from cleveragents.infrastructure.snapshots.tree.extra_state import (
    Before,
    ExtraRecord,
    ExtraState,
    StoredSide,
)
from cleveragents.infrastructure.snapshots.tree.history import FirstBlobs, SnapshotRow, Versions
from cleveragents.infrastructure.snapshots.tree.inherit import Inherited
from cleveragents.infrastructure.snapshots.tree.listing_store import ListingStore, StatIndexStore
from cleveragents.infrastructure.snapshots.tree.manifest import (
    Delta,
    JustStored,
    Manifest,
    ManifestTable,
    NewVersions,
    Saved,
    number_of,
)


class Recorded(Struct, frozen=True, kw_only=True):
    """The snapshot that the present is now, what it changed in the one before, and how the
    manifest goes on, if it does, once the transaction is committed."""

    row: SnapshotRow
    changes: list[Change]
    saved: Saved | None


class Session(Struct):
    """The tree of one resource. `manifest` is the present as of the newest snapshot, `head`; by
    what it says of sizes and times only if that is `believed`."""

    resource: PlanResource
    side: ExtraState
    contents: ContentStore
    versions: Versions
    present: ManifestTable
    manifest: Manifest
    head: SnapshotRow | None
    store: PlanStore
    believed: bool = True
    fresh: JustStored | None = None

    @property
    def exclude(self) -> Excludes:
        return excludes(self.resource.exclude, self.side.hidden())

    @property
    def known(self) -> ManifestView:
        seen, present = self.manifest.seen, self.present
        if not self.believed:
            children = present.children
            return ManifestView(
                seen=seen, below=present.below, load=seen.prefetch, children=children
            )
        listings, stat_indexes = (
            ListingStore(present.db, present.tree),
            StatIndexStore(present.db, present.tree),
        )
        return ManifestView(
            seen=seen,
            below=present.below,
            load=seen.prefetch,
            listing=listings.load,
            touched=listings.touched,
            stat_index=stat_indexes.load,
            children=present.children,
            expected=self.side.expected if self.head is None else tuple,
        )

    def likely_files(self, paths: Collection[bytes]) -> Collection[bytes]:
        """Those that were files when they were last seen; at first, those that git has."""
        if self.head is None:
            return self.contents.base
        seen, file = self.manifest.seen.prefetch(paths), int(Kind.FILE)
        return {path for path in paths if (s := seen.get(path)) is not None and s.kind == file}

    def proven(self, found: Candidates, taken_ns: int) -> Mapping[bytes, ManifestRow]:
        """At a first look: what needs not be read, as git has proven it."""
        if self.head is not None or found.listing is None:
            return {}
        from cleveragents.infrastructure.snapshots.tree.first_look import proven_rows  # noqa: PLC0415 - at a first look only

        rows = proven_rows(found.listing, self.side.proven(found.paths), taken_ns)
        return {path: row for path, row in rows.items() if path not in found.mapped}

    def hashing(self, paths: Collection[bytes]) -> Sink:
        """How these are to be read where nothing is to be stored."""
        self.contents.first.prefetch(paths)
        return self.contents.hash_file

    def snapshot(self, ref: str) -> SnapshotRow:
        # Other stores' refs are anything; ours are numbers that the database can hold.
        ours = ref.isascii() and ref.isdecimal() and len(ref) < 18
        row = self.versions.snapshot(int(ref)) if ours else None
        if row is None:
            raise SnapshotDamagedError(self.resource.name, f"there is no snapshot {ref!r}")
        return row

    def stored_side(self, row: SnapshotRow) -> StoredSide:
        return self._stored(self.versions, row)

    def _stored(self, versions: Versions, row: SnapshotRow) -> StoredSide:
        hashes = versions.side_contents(row.seq)
        return StoredSide(
            identity=row.identity,
            sandbox_ref=row.sandbox_ref,
            hashes=hashes,
            content=lambda name: self.contents.get(hashes[name], name),
        )

    def stored_apart(self, row: SnapshotRow) -> StoredSide:
        """The same for a second thread, by a connection of its own: what this transaction writes is
        not seen there."""
        hashes = self.versions.side_contents(row.seq)

        def content(name: str) -> bytes:
            with self.store.reading() as db:
                contents = ContentStore(db, self.resource.name, self.side.blobs)
                return contents.get(hashes[name], name)

        return StoredSide(
            identity=row.identity, sandbox_ref=row.sandbox_ref, hashes=hashes, content=content
        )

    def begins_small(self) -> bool:
        """At a first look: git answers for a small commit before a thread has begun, which would
        take room for memory of its own."""
        self.contents.base = self.side.base()
        return 0 < len(self.contents.base) <= SMALL

    def read_extra_state(self) -> ExtraRecord | None:
        """None if it certainly is as the newest snapshot has it."""
        if self.head is None:
            return self.side.read(None)
        return self.side.read(self._before(self.head, self._fingerprint))

    def extra_state_apart(self, head: SnapshotRow) -> Callable[[], ExtraRecord | None]:
        """What reads it in a second thread; `head` is the newest snapshot."""
        before = Before(stored=self.stored_apart(head), fingerprint=self._fingerprint)
        return lambda: self.side.read(before)

    @property
    def _fingerprint(self) -> str:
        return self.manifest.fingerprint if self.believed else ""

    def extra_state_is_unchanged(self, target: StoredSide) -> bool:
        """True if the side certainly is as `target` has it already."""
        if self.head is None:
            return False
        return self.side.stands(target, self._before(self.head, self._fingerprint))

    def read_side_after(self, target: SnapshotRow) -> ExtraRecord | None:
        """The same after a restore: what `target` needs is stored already."""
        return self.side.read(self._before(target, ""))

    def restore_side(self, target: SnapshotRow) -> None:
        """What is beside the files, whatever is there of it; nothing is recorded."""
        side = self.stored_side(target)
        self.contents.check({key: name for name, key in side.hashes.items()})
        self.side.prepare(side)
        self.side.write(side)

    def _before(self, row: SnapshotRow, fingerprint: str) -> Before:
        return Before(
            stored=self.stored_side(row),
            fingerprint=fingerprint,
        )

    def changes(self, delta: Delta) -> list[Change]:
        """What `delta` changes in the state that the newest snapshot has."""
        known = self.manifest.seen.prefetch(delta.now)
        return [
            (path, old, seen)
            for path, seen in delta.now.items()
            if not same_state(old := known.get(path), seen)
        ]

    def record(self, delta: Delta, side: ExtraRecord | None) -> Recorded:
        """Store the present; it is the newest snapshot again if nothing of the state changed.

        The contents of its files are stored by `finish`.
        """
        # They are compressed beside all that can be done without them.
        self.contents.begin_flush()
        changes = self.changes(delta)
        row = self._row(changes, side)
        saved = self._save(delta, NewVersions(row.seq, {path for path, _, _ in changes}), side)
        if row is not self.head:
            self.versions.add_snapshot(row, self._side_hashes(side))
        return Recorded(row=row, changes=changes, saved=saved)

    def finish(self) -> None:
        """To be called at the end of the transaction."""
        self.contents.flush()
        stored, before = self.contents.stored, self.manifest.fresh
        # One that had nothing to store has written nothing either that could harm what was.
        self.fresh = before if before and not stored else JustStored.by(self.present.db, stored)

    @property
    def just_stored(self) -> Collection[bytes]:
        """Contents that need not be read to know that they are whole."""
        fresh = self.manifest.fresh
        return fresh.still(self.present.db) if fresh else ()

    def record_copy(self, copy: Inherited) -> Recorded:
        """What is known of a tree that was copied is its first snapshot.

        The sum over it is known, so no entry has to be looked at for that.
        """
        if self.head is not None or copy.newest is None:
            return self.record(copy.delta(), self.read_extra_state())
        stored = self._stored(Versions(self.present.db, copy.tree), copy.newest)
        side = self.side.copied(stored) or self.side.read(None) or ExtraRecord()
        row = SnapshotRow(
            seq=1,
            total=copy.total,
            state_hash=state_hash(copy.total, side.identity),
            identity=side.identity,
            sandbox_ref=side.sandbox_ref,
        )
        delta, versions = copy.delta(), NewVersions(row.seq, copy.seen)
        saved = self.present.save(self.manifest, delta, versions, self.exclude, side.fingerprint)
        self.versions.add_snapshot(row, self._side_hashes(side))
        return Recorded(row=row, changes=[], saved=saved)

    def _row(self, changes: list[Change], side: ExtraRecord | None) -> SnapshotRow:
        head = self.head
        identity = side.identity if side else head.identity if head else ""
        if head and not changes and identity == head.identity:
            return head
        total = total_after(head.total if head else 0, changes)
        return SnapshotRow(
            seq=head.seq + 1 if head else 1,
            total=total,
            state_hash=state_hash(total, identity),
            identity=identity,
            sandbox_ref=side.sandbox_ref if side else head.sandbox_ref if head else "",
        )

    def _side_hashes(self, side: ExtraRecord | None) -> dict[str, bytes]:
        if side is None:
            return self.versions.side_contents(self.head.seq) if self.head else {}
        stored = {name: self.contents.put_later(data) for name, data in side.contents.items()}
        return {**side.inherited, **stored}

    def _save(self, delta: Delta, versions: NewVersions, side: ExtraRecord | None) -> Saved | None:
        manifest = self.manifest
        fingerprint = side.fingerprint if side else manifest.fingerprint
        unchanged = not delta.now and delta.listing is None and delta.stat_index is None
        if self.head and unchanged and fingerprint == manifest.fingerprint:
            return None
        return self.present.save(manifest, delta, versions, self.exclude, fingerprint)


class TreeOf(NamedTuple):
    """A resource, and what belongs to its state beside its files."""

    resource: PlanResource
    side: ExtraState


def open_session(
    db: sqlite3.Connection, store: PlanStore, about: TreeOf, cached: Manifest | None
) -> Session:
    resource, side = about
    tree = number_of(db, str(resource.resource_id))
    versions = Versions(db, tree)
    present = ManifestTable(db, tree)
    believed = not boots_of(db, resource).is_doubtful
    head = versions.newest()
    contents = ContentStore(db, resource.name, side.blobs)
    if head is not None:
        contents.first = FirstBlobs(versions)
    return Session(
        resource=resource,
        side=side,
        contents=contents,
        versions=versions,
        present=present,
        manifest=present.load(cached, believed=believed),
        head=head,
        store=store,
        believed=believed,
    )


def open_sandbox(resource: PlanResource, *, open_up: bool = False) -> RootedFolder:
    try:
        # In a tree of the user's no mode is changed, not even for a moment.
        ours = not resource.in_place
        return RootedFolder(resource.sandbox_path, open_up=open_up and ours, sandbox=ours)
    except OSError as error:
        raise SandboxMissingError(
            resource.name, resource.sandbox_path, resource.store_id
        ) from error


def needed_contents(entries: Mapping[bytes, Entry | None]) -> dict[bytes, str]:
    """The contents that these entries need, each with a path that it belongs to."""
    return {
        entry.hash: shown(path)
        for path, entry in entries.items()
        if entry is not None and entry.kind is Kind.FILE
    }
