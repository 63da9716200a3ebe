"""Bringing a sandbox back to a snapshot: compare, prepare, write, prove.

What: the paths that differ become what the snapshot says, and the git state with them.
In which order: what differs now; whether these changes come to the snapshot's hash; what is about
to go is whole in the store, or is stored anew; all contents are read and staged; the tree changes;
all that was written is read back; the git state; the record, whose hash has to be the snapshot's.
Why: all that can fail for a damaged store or a full disk fails before the first change. After that
a kill leaves a mixture, which the next restore compares and finishes like any other state.
What is not guaranteed: excluded paths. They and folders that hold nothing else stay as they are,
unless a file or link comes in the place of such a folder.
"""

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager, nullcontext

from msgspec import Struct

from cleveragents.domain.errors import RestoreFailedError, SnapshotDamagedError, SnapshotFailedError
from cleveragents.infrastructure.files.entry import (
    Entry,
    Kind,
    ManifestRow,
    parent_of,
    same_state,
    shown,
)
from cleveragents.infrastructure.files.read_path import Sink, examine_file, read_path
from cleveragents.infrastructure.files.rooted_folder import RootedFolder
from cleveragents.infrastructure.files.update.rooted_writer import FEW
from cleveragents.infrastructure.files.walk import walk
from cleveragents.infrastructure.snapshots.beside import beside
from cleveragents.infrastructure.snapshots.changes.tracker import ChangeTracker
from cleveragents.infrastructure.snapshots.tree.diff import PathDifference, total_after
from cleveragents.infrastructure.snapshots.tree.history import SnapshotRow
from cleveragents.infrastructure.snapshots.tree.manifest import Delta
from cleveragents.infrastructure.snapshots.tree.restore.in_place import fit_in_place
from cleveragents.infrastructure.snapshots.tree.restore.mending import mend_files, mend_side
from cleveragents.infrastructure.snapshots.tree.restore.restored_times import (
    left_in_place,
    may_be_stale,
    times_now,
)
from cleveragents.infrastructure.snapshots.tree.restore.staging import Staging
from cleveragents.infrastructure.snapshots.tree.restore.sync_beside import (
    durable_beside,
    first_sync_of,
)
from cleveragents.infrastructure.snapshots.tree.restore.writer import TreeWriter
from cleveragents.infrastructure.snapshots.tree.session import (
    Recorded,
    Session,
    needed_contents,
    open_sandbox,
)

_UNREADABLE = b"unreadable"


class TreeRestored(Struct, frozen=True, kw_only=True):
    """`notes` are for people."""

    recorded: Recorded
    differences: list[PathDifference]
    notes: list[str]


def restore(
    session: Session,
    target: SnapshotRow,
    tracker: ChangeTracker,
    staging: Staging,
    *,
    together: bool,
) -> TreeRestored:
    """Killed anywhere, it can be done again: what is on disk is compared anew each time.

    `together` says that all else of the plan goes back too.
    """
    with open_sandbox(session.resource, open_up=True) as anchor:
        exclude = session.exclude
        delta, excluded = _present(session, anchor, tracker)
        differences = differences_to(session, delta, target)
        refuse_wrong_sum(session, delta, differences, target)
        wanted = {item.path: item.new for item in differences}
        present = replaced(session, delta, differences)
        side = session.stored_side(target)
        stands = session.extra_state_is_unchanged(side)
        notes: list[str] = []
        if not stands:
            # Before another thread reads any of it.
            notes += mend_side(session)
            session.contents.check({key: name for name, key in side.hashes.items()})
        with nullcontext() if stands else _side_ready(session, target, many=len(wanted) > FEW):
            notes += ready(session, anchor, staging, differences, present)
        left = left_in_place(anchor, exclude, excluded) if wanted else []
        notes += may_be_stale(session.resource.name, left)
        times = None if together and not left else times_now(wanted.values())
        # From here on the sandbox changes.
        with told(session):
            TreeWriter(anchor, staging, exclude, times).apply(wanted, first_sync_of(len(wanted)))
    with written(session, staging, differences, tracker) as read_back:
        after = read_back(delta)
        if not stands:
            session.side.write(side)
        recorded = session.record(after, None if stands else session.read_side_after(target))
    if recorded.row.state_hash != target.state_hash:
        raise RestoreFailedError(session.resource.name, _why(recorded.row, target))
    return TreeRestored(recorded=recorded, differences=differences, notes=notes)


@contextmanager
def told(session: Session) -> Generator[None]:
    try:
        yield
    except OSError as error:
        raise RestoreFailedError(session.resource.name, str(error)) from error


def ready(
    session: Session,
    anchor: RootedFolder,
    staging: Staging,
    differences: Sequence[PathDifference],
    present: Mapping[bytes, Entry],
) -> list[str]:
    """All contents are there and proven: first those of `present`, which are about to go, and then
    those that come. Gives back what to tell people. Raises SnapshotDamagedError."""
    wanted = {item.path: item.new for item in differences}
    needed = needed_contents(wanted)
    with session.contents.asked(needed):
        notes = mend_files(session, anchor, present)
        with told(session):
            staging.hold(fit_in_place(anchor, differences))
            staging.fill(session.contents, needed, _near(anchor, wanted))
    return notes


@contextmanager
def _side_ready(session: Session, target: SnapshotRow, *, many: bool) -> Generator[None]:
    """What is beside the files can be written once the block has ended. With many files, git is
    asked meanwhile; for a few that would not pay."""
    if not many:
        yield
        session.side.prepare(session.stored_side(target))
        return
    side = session.stored_apart(target)
    with beside(lambda: session.side.prepare(side)) as prepared:
        yield
        prepared.result()


def _near(
    anchor: RootedFolder, wanted: Mapping[bytes, Entry | None]
) -> Callable[[bytes], int | None]:
    """For each content a folder that it goes to; for a few it would not pay."""
    if len(wanted) <= FEW:
        return lambda _: None
    folders = {entry.hash: parent_of(path) for path, entry in wanted.items() if entry}

    def near(key: bytes) -> int | None:
        try:
            return anchor.folder(folders[key])
        except OSError:
            return None

    return near


def _present(
    session: Session, anchor: RootedFolder, tracker: ChangeTracker
) -> tuple[Delta, frozenset[bytes] | None]:
    candidates = tracker.candidates(anchor, session.exclude, session.known)
    hashed = session.hashing(candidates.paths)
    now = {path: _examined(anchor, path, hashed) for path in candidates.paths}
    return Delta(now=now, listing=candidates.listing), candidates.excluded


def _examined(anchor: RootedFolder, path: bytes, hashed: Sink) -> ManifestRow | None:
    """What cannot be read is not what the snapshot holds, and will be replaced."""
    try:
        return read_path(anchor, path, hashed)
    except SnapshotFailedError:
        return ManifestRow(path=path, kind=Kind.FILE, hash=_UNREADABLE)


def differences_to(session: Session, delta: Delta, target: SnapshotRow) -> list[PathDifference]:
    newest = session.head.seq if session.head else target.seq
    paths = session.versions.touched(target.seq, newest) | delta.now.keys()
    session.manifest.seen.prefetch(paths)
    then = session.versions.at_all(paths, target.seq)
    compared = (
        PathDifference(path, delta.entry(path, session.manifest.seen), then.get(path))
        for path in sorted(paths)
    )
    return [item for item in compared if not same_state(item.old, item.new)]


def replaced(
    session: Session, delta: Delta, differences: Sequence[PathDifference]
) -> dict[bytes, Entry]:
    """What goes with these that the newest snapshot has; the rest was never stored."""
    seen = session.manifest.seen
    return {
        path: old
        for path, old, _ in differences
        if old is not None and (path not in delta.now or same_state(old, seen.get(path)))
    }


def refuse_wrong_sum(
    session: Session, delta: Delta, differences: Sequence[PathDifference], target: SnapshotRow
) -> None:
    """The newest snapshot, plus what happened since, plus these must come to the target."""
    before = session.head.total if session.head else 0
    now = total_after(before, session.changes(delta))
    if total_after(now, differences) != target.total:
        raise SnapshotDamagedError(
            session.resource.name, "its files would not have the hash of the snapshot"
        )


@contextmanager
def written(
    session: Session,
    staging: Staging,
    differences: Sequence[PathDifference],
    tracker: ChangeTracker,
) -> Generator[Callable[[Delta], Delta]]:
    """Gives what reads back everything that was written, and compares it with what it had to
    become. Meanwhile all of it is made durable, unless it is already."""
    with told(session), open_sandbox(session.resource) as anchor:
        look = _ReadBack(session, anchor, staging.held, differences)
        with durable_beside(anchor, len(differences)):
            tracker.look_again(anchor, session.known, {item.path for item in differences})
            yield look


class _ReadBack:
    def __init__(
        self,
        session: Session,
        anchor: RootedFolder,
        held: Mapping[bytes, bytes],
        differences: Sequence[PathDifference],
    ) -> None:
        self._session, self._anchor = session, anchor
        self._held, self._differences = held, differences
        self._hashed = session.hashing([item.path for item in differences])

    def __call__(self, delta: Delta) -> Delta:
        """`delta` with what is there now. Raises RestoreFailedError."""
        now = dict(delta.now)
        for path, _, wanted in self._differences:
            seen = self._look(path, wanted)
            if wanted is None and seen and _holds_only_excluded(self._session, self._anchor, seen):
                seen = None
            if not same_state(seen.entry if seen else None, wanted):
                raise RestoreFailedError(
                    self._session.resource.name, f"{shown(path)!r} is not what it should be"
                )
            now[path] = seen
        return Delta(now=now, listing=delta.listing)

    def _look(self, path: bytes, wanted: Entry | None) -> ManifestRow | None:
        if wanted is None or wanted.kind is not Kind.FILE:
            return read_path(self._anchor, path, self._hashed)
        data = self._held.get(wanted.hash)
        if data is None:
            return examine_file(self._anchor, path, self._hashed)

        def compared(chunks: Iterable[bytes], path: bytes, size: int) -> bytes:
            """The same bytes need no hash: these were proven by theirs."""
            there = b"".join(chunks)
            return wanted.hash if there == data else self._hashed((there,), path, size)

        return examine_file(self._anchor, path, compared)


def _holds_only_excluded(session: Session, anchor: RootedFolder, seen: ManifestRow) -> bool:
    if seen.kind != Kind.DIR:
        return False
    listing = walk(anchor, session.exclude, seen.path)
    return bool(listing.excluded) and not listing.found


def _why(row: SnapshotRow, target: SnapshotRow) -> str:
    if row.total != target.total:
        return "its files do not have the hash of the snapshot"
    return "its git state (HEAD, branch, index) is not that of the snapshot"
