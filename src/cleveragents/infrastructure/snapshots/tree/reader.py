"""Reading a tree's snapshots: what differs between two states, and the bytes of an entry."""

from collections.abc import Container, Iterator, Mapping

from msgspec import Struct

from cleveragents.domain.errors import SnapshotDamagedError
from cleveragents.infrastructure.files.entry import Entry, same_state, shown
from cleveragents.infrastructure.files.read_path import read_path
from cleveragents.infrastructure.files.tree_hash import state_hash
from cleveragents.infrastructure.snapshots.changes.full_scan import FullComparison
from cleveragents.infrastructure.snapshots.tree.diff import PathDifference, total_after
from cleveragents.infrastructure.snapshots.tree.extra_state import StoredSide
from cleveragents.infrastructure.snapshots.tree.history import SnapshotRow
from cleveragents.infrastructure.snapshots.tree.manifest import Delta
from cleveragents.infrastructure.snapshots.tree.session import (
    Session,
    needed_contents,
    open_sandbox,
)


class TreeReader(Struct, frozen=True):
    """One consistent view of the snapshots of one tree; differences come in path order."""

    session: Session

    def state_hash(self, ref: str) -> str:
        return self.session.snapshot(ref).state_hash

    def entry(self, path: bytes, ref: str) -> Entry | None:
        return self.session.versions.at(path, self.session.snapshot(ref).seq)

    def touched(self, old: str, new: str) -> set[bytes]:
        """Paths of which something was recorded after the one and up to the other."""
        one, two = self.session.snapshot(old).seq, self.session.snapshot(new).seq
        return self.session.versions.touched(one, two)

    def paths_below(self, folder: bytes, ref: str) -> set[bytes]:
        return {entry.path for entry in self.entries_below(folder, ref)}

    def entries_below(self, folder: bytes, ref: str) -> Iterator[Entry]:
        """In path order."""
        return self.session.versions.state(self.session.snapshot(ref).seq, folder)

    def stored_side(self, ref: str) -> StoredSide:
        return self.session.stored_side(self.session.snapshot(ref))

    def between(self, old: str, new: str) -> list[PathDifference]:
        versions = self.session.versions
        one, two = self.session.snapshot(old).seq, self.session.snapshot(new).seq
        paths = versions.touched(min(one, two), max(one, two))
        before, after = versions.at_all(paths, one), versions.at_all(paths, two)
        return _differing(
            PathDifference(path, before.get(path), after.get(path)) for path in sorted(paths)
        )

    def since(self, old: str) -> list[PathDifference]:
        """What the sandbox holds now against the snapshot; nothing is stored."""
        session = self.session
        start = session.snapshot(old).seq
        now = self.now()
        newest = session.head.seq if session.head else start
        paths = session.versions.touched(start, newest) | now.now.keys()
        session.manifest.seen.prefetch(paths)
        before = session.versions.at_all(paths, start)
        return _differing(
            PathDifference(path, before.get(path), now.entry(path, session.manifest.seen))
            for path in sorted(paths)
        )

    def refuse_unrestorable(
        self, ref: str, expected: str, chosen: Container[bytes], *, side: bool
    ) -> None:
        """Raise SnapshotDamagedError unless the hash of the snapshot is the expected one, and the
        contents of these of its entries, and of its side, are there and unharmed."""
        target = self.session.snapshot(ref)
        newest = self.session.head or target
        back = self.between(str(newest.seq), ref)
        wrong = self.wrong_hash(target, expected, total_after(newest.total, back))
        if wrong is not None:
            raise wrong
        entries = {item.path: item.new for item in back if item.path in chosen}
        self.session.contents.check(needed_contents(entries))
        if side:
            held = self.session.versions.side_contents(target.seq)
            self.session.contents.check({key: name for name, key in held.items()})

    def wrong_hash(
        self, target: SnapshotRow, expected: str, total: int
    ) -> SnapshotDamagedError | None:
        """Unless this is the sum of the snapshot, and its hash the expected one."""
        if {state_hash(total, target.identity), target.state_hash} == {expected}:
            return None
        return SnapshotDamagedError(
            self.session.resource.name,
            f"the hash of snapshot {target.seq} is not the one that was recorded",
        )

    def contents(self, wanted: Mapping[bytes, str]) -> Iterator[tuple[bytes, Iterator[bytes]]]:
        """Each content by hash, in pieces to be used up before the next; as ContentStore.read."""
        return self.session.contents.read(wanted)

    def content(self, entry: Entry) -> bytes:
        return self.session.contents.get(entry.hash, shown(entry.path))

    def now(self) -> Delta:
        """What the sandbox holds that the newest snapshot does not; nothing is stored."""
        # Not the engine's tracker: what that one has seen it may not report a second time, and
        # the next capture needs it.
        tracker = FullComparison()
        with open_sandbox(self.session.resource) as anchor:
            found = tracker.candidates(anchor, self.session.exclude, self.session.known)
            hashed = self.session.hashing(found.paths)
            return Delta(now={path: read_path(anchor, path, hashed) for path in found.paths})


def _differing(compared: Iterator[PathDifference]) -> list[PathDifference]:
    return [item for item in compared if not same_state(item.old, item.new)]
