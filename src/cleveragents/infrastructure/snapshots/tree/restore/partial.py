"""Bringing back some paths of a sandbox and leaving everything else as it is.

The order is that of a whole restore (`whole.py`), with less to prove: what was written is read
back, but as the rest stays, there is no hash that the tree has to come to. The present comes first
and is recorded with it, so that it is known what the rest is. Folders that a chosen path needs come
along; one that is to go stays while something in it does. The git state is not touched.
What is not guaranteed: that old and new fit together. What is brought back gets the present time,
so that nobody takes what was built from other versions for up to date.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import islice

from msgspec import Struct

from cleveragents.infrastructure.files.entry import Kind, parent_of, shown
from cleveragents.infrastructure.snapshots.changes.tracker import ChangeTracker
from cleveragents.infrastructure.snapshots.tree.diff import PathDifference
from cleveragents.infrastructure.snapshots.tree.history import SnapshotRow
from cleveragents.infrastructure.snapshots.tree.manifest import Delta
from cleveragents.infrastructure.snapshots.tree.restore.restored_times import (
    left_in_place,
    may_be_stale,
    times_now,
)
from cleveragents.infrastructure.snapshots.tree.restore.staging import Staging
from cleveragents.infrastructure.snapshots.tree.restore.sync_beside import first_sync_of
from cleveragents.infrastructure.snapshots.tree.restore.whole import (
    TreeRestored,
    differences_to,
    ready,
    replaced,
    told,
    written,
)
from cleveragents.infrastructure.snapshots.tree.restore.writer import TreeWriter
from cleveragents.infrastructure.snapshots.tree.session import Session, open_sandbox

# Comparing a mistyped name with more than this many would take longer than people wait.
_MOST_NAMES = 20_000


class Chosen(Struct, frozen=True):
    """Files and folders by name, with everything below; none at all means everything.

    Of `folders` only the folder itself is meant, and one that is to go goes if it gets empty.
    """

    paths: frozenset[bytes]
    folders: frozenset[bytes] = frozenset()

    @classmethod
    def named(cls, names: Iterable[str]) -> "Chosen":
        """`name/` stands for the folder itself, without what is in it."""
        encoded = [name.encode("utf-8", "surrogateescape") for name in names]
        return cls(
            frozenset(name for name in encoded if not name.endswith(b"/")),
            frozenset(name[:-1] for name in encoded if name.endswith(b"/")),
        )

    def __contains__(self, path: bytes) -> bool:
        if not self.paths and not self.folders:
            return True
        return path in self.folders or any(one in self.paths for one in _with_parents(path))

    def of(self, differences: Collection[PathDifference]) -> list[PathDifference]:
        """Those that are chosen, and the folders that these need and do not have yet."""
        chosen = [item for item in differences if item.path in self]
        needed = {
            folder
            for item in chosen
            if item.new is not None
            for folder in _with_parents(parent_of(item.path))
        }
        # A folder that the snapshot does not have has only differences in it.
        staying = {
            folder
            for item in differences
            if item.path not in self and item.old is not None
            for folder in _with_parents(parent_of(item.path))
        }
        return [
            item
            for item in differences
            if (item.path in self and not (item.new is None and item.path in staying))
            or _opens(item, needed)
        ]


def restore_chosen(
    session: Session,
    target: SnapshotRow,
    delta: Delta,
    chosen: Chosen,
    tracker: ChangeTracker,
    staging: Staging,
) -> TreeRestored:
    """`delta` is the present, stored with what is recorded; the git state stays as it is."""
    with open_sandbox(session.resource, open_up=True) as anchor:
        differences = chosen.of(differences_to(session, delta, target))
        wanted = {item.path: item.new for item in differences}
        notes = ready(session, anchor, staging, differences, replaced(session, delta, differences))
        with told(session):
            left = left_in_place(anchor, session.exclude, None) if wanted else []
            notes += may_be_stale(session.resource.name, left)
            # From here on the sandbox changes.
            times = times_now(wanted.values())
            sync = first_sync_of(len(wanted))
            TreeWriter(anchor, staging, session.exclude, times).apply(wanted, sync)
    with written(session, staging, differences, tracker) as read_back:
        recorded = session.record(read_back(delta), session.read_extra_state())
    return TreeRestored(recorded=recorded, differences=differences, notes=notes)


def unknown_names(
    session: Session, target: SnapshotRow, delta: Delta, names: Collection[str]
) -> Mapping[str, str | None]:
    """Names that neither the snapshot nor the sandbox has, each with the one it may stand for."""
    found: dict[str, str | None] = {}
    for name in names:
        path = name.encode("utf-8", "surrogateescape")
        if not any(_is_at_or_below(path, known) for known in _known(session, target, delta)):
            found[name] = _closest(path, _known(session, target, delta))
    return found


def _known(session: Session, target: SnapshotRow, delta: Delta) -> Iterator[bytes]:
    for entry in session.versions.state(target.seq):
        yield entry.path
    gone = {path for path, seen in delta.now.items() if seen is None}
    yield from (path for path in session.manifest.seen if path not in gone)
    yield from (path for path, seen in delta.now.items() if seen is not None)


def _closest(path: bytes, known: Iterator[bytes]) -> str | None:
    names = list(dict.fromkeys(shown(one) for one in islice(known, _MOST_NAMES)))
    wanted = shown(path)
    same_name = [name for name in names if name.rpartition("/")[2] == wanted.rpartition("/")[2]]
    if same_name:
        return same_name[0]
    import difflib  # noqa: PLC0415 - only a name that nothing has needs it

    return next(iter(difflib.get_close_matches(wanted, names, n=1)), None)


def _is_at_or_below(path: bytes, other: bytes) -> bool:
    return other == path or other.startswith(path + b"/")


def _with_parents(path: bytes) -> Iterator[bytes]:
    while path:
        yield path
        path = parent_of(path)


def _opens(item: PathDifference, needed: Collection[bytes]) -> bool:
    """A folder of the snapshot that something chosen goes into, where there is no folder now."""
    if item.path not in needed or item.new is None or item.new.kind is not Kind.DIR:
        return False
    return item.old is None or item.old.kind is not Kind.DIR
