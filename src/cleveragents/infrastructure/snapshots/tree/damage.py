"""Proving that snapshots of a tree can be restored: its paths in one walk (see `..damage`)."""

from collections.abc import Collection, Iterator, Mapping

from cleveragents.application.ports.runtime import Expected
from cleveragents.domain.errors import SnapshotDamagedError
from cleveragents.infrastructure.files.entry import Entry, Kind, shown
from cleveragents.infrastructure.files.tree_hash import SUM_MODULUS, token
from cleveragents.infrastructure.snapshots.damage import (
    Damages,
    ProofStage,
    looked_up,
    needs_of,
    refusal,
    told,
)
from cleveragents.infrastructure.snapshots.store.content_store import ContentStore
from cleveragents.infrastructure.snapshots.tree.history import SnapshotRow, Versions
from cleveragents.infrastructure.snapshots.tree.reader import TreeReader

Place = bytes | str
"""A path, or the name of something beside the files."""


def tree_damages(reader: TreeReader, snapshots: Collection[Expected]) -> Damages:
    """Those that could not be restored whole, each with the reason."""
    contents = reader.session.contents
    there, missing = looked_up(snapshots, reader.session.snapshot)
    stages = list(_stages(reader, there))
    wanted = {key: _name(place) for key, place in needs_of(stages).items()}
    broken = set(contents.damaged(wanted))
    found = missing | told(stages, broken, lambda place, key: _reason(contents, place, key))
    return {snapshot: found[snapshot] for snapshot in snapshots if snapshot in found}


def _stages(
    reader: TreeReader, targets: Mapping[Expected, SnapshotRow]
) -> Iterator[ProofStage[Place, bytes]]:
    walk = _TreeWalk(reader.session.versions, max((row.seq for row in targets.values()), default=0))
    side: Mapping[str, bytes] = {}
    for snapshot, row in sorted(targets.items(), key=lambda item: item[1].seq):
        changed: dict[Place, bytes | None] = {**walk.moved_to(row.seq), **dict.fromkeys(side)}
        side = reader.session.versions.side_contents(row.seq)
        wrong = reader.wrong_hash(row, snapshot.state_hash, walk.total)
        yield ProofStage(snapshot=snapshot, wrong=wrong, changed={**changed, **side})


class _TreeWalk:
    """The tree as it was, from the beginning on; `total` is the sum over it."""

    def __init__(self, versions: Versions, until: int) -> None:
        self.total = 0
        self._history = versions.history(until)
        self._ahead = next(self._history, None)
        self._entries: dict[bytes, Entry] = {}

    def moved_to(self, seq: int) -> dict[bytes, bytes | None]:
        """Every path that has changed since, with the content that it needs there."""
        changed: dict[bytes, bytes | None] = {}
        while self._ahead is not None and self._ahead[0] <= seq:
            _, entry = self._ahead
            changed[entry.path] = self._moved_by(entry)
            self._ahead = next(self._history, None)
        return changed

    def _moved_by(self, entry: Entry) -> bytes | None:
        before = self._entries.pop(entry.path, None)
        if before is not None:
            self.total = (self.total - token(before)) % SUM_MODULUS
        if entry.kind is Kind.GONE:
            return None
        self._entries[entry.path] = entry
        self.total = (self.total + token(entry)) % SUM_MODULUS
        return entry.hash if entry.kind is Kind.FILE else None


def _name(place: Place) -> str:
    return shown(place) if isinstance(place, bytes) else place


def _reason(contents: ContentStore, place: Place, key: bytes) -> SnapshotDamagedError | None:
    return refusal(lambda: contents.check({key: _name(place)}))
