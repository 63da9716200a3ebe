"""Looking at a whole tree: which of its paths may differ from what is known of them.

A small tree is walked. A large one is listed as text by other processes and compared with the text
that was kept (ADR 0015); only paths whose records differ are looked at one by one. One that is
found unchanged is sifted from then on, which needs no listing (ADR 0036).
In which order: by the stat index, if one is kept; by the listing, if one is kept; by a walk that
gives up where the tree is not small; by a first listing; by a walk to the end. Whatever goes wrong
on one way, the next begins from nothing, and the last one says what it is.
What is not guaranteed: a moment for all of it. What changes behind the look is named next time, by
its times or by a watch; what is named and has not changed costs one more look.
"""

import time
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from typing import NamedTuple

from msgspec import Struct

from cleveragents.infrastructure.files.entry import Kind, ManifestRow, StatInfo, parent_of
from cleveragents.infrastructure.files.excludes import Excludes
from cleveragents.infrastructure.files.filesystems import is_local
from cleveragents.infrastructure.files.rooted_folder import RootedFolder
from cleveragents.infrastructure.files.walk import (
    Listing,
    folders_with_only_excluded,
    linked_files,
    status_at,
    walk,
    walk_if_small,
)
from cleveragents.infrastructure.snapshots.changes.gnu_find import (
    CannotListError,
    Listed,
    list_with_find,
)
from cleveragents.infrastructure.snapshots.changes.listing import (
    CHARACTERS,
    EXCLUDED,
    FILE,
    FOLDER,
    LINK,
    LINKED,
    SPECIAL,
    UNLISTED,
    Part,
    TreeListing,
    expected_listing,
    listing_of,
    marked,
    path_of,
    record_of,
    records,
)
from cleveragents.infrastructure.snapshots.changes.stat_index import (
    CannotSiftError,
    StatIndex,
    StatIndexDraft,
    draft,
)
from cleveragents.infrastructure.snapshots.changes.subprocesses import CommandFailedError
from cleveragents.infrastructure.snapshots.changes.tracker import (
    Candidates,
    ManifestView,
    NoWatch,
    Watch,
)

# Up to so many paths a walk is over before another process has begun.
SMALL = 400
# A listing is kept anew once there are so many paths that it does not tell of.
_STALE = 50
# Parts that have become so much larger or smaller altogether are made anew.
_GROWN = 0.2
# A text of so many bytes is listed in a few milliseconds.
_SOON = 200_000
# A tree of so many times more paths than a small one has is sifted.
_SIFTED = 12
_CAPTURED = FOLDER + FILE + LINKED + LINK + CHARACTERS


class ScanResult(NamedTuple):
    """`paths` may differ; `linked` are files with several names. `listing` and `stat_index` are
    worth keeping for the next one. `excluded` are those that the excludes leave out."""

    paths: set[bytes]
    special: set[bytes]
    linked: set[bytes]
    listing: TreeListing | None = None
    stat_index: StatIndexDraft | None = None
    excluded: frozenset[bytes] | None = None

    def candidates(self) -> Candidates:
        return Candidates(
            paths=tuple(sorted(self.paths)),
            special=tuple(sorted(self.special)),
            listing=self.listing,
            stat_index=self.stat_index,
            excluded=self.excluded,
        )


class FullComparison:
    """The ChangeTracker that is right in every process and at any time."""

    def __init__(self, small: int = SMALL) -> None:
        self._small = small

    def candidates(
        self, anchor: RootedFolder, exclude: Excludes, known: ManifestView
    ) -> Candidates:
        return full_scan(anchor, exclude, known, NoWatch(), self._small).candidates()

    def look_again(
        self, anchor: RootedFolder, known: ManifestView, paths: Collection[bytes]
    ) -> None:
        """Nothing to do."""

    def acknowledge(self, root: bytes, seen: Mapping[bytes, ManifestRow]) -> None:
        """Nothing to do."""

    def release(self, root: bytes) -> None:
        """Nothing to do."""


def full_scan(
    anchor: RootedFolder, exclude: Excludes, known: ManifestView, watch: Watch, small: int = SMALL
) -> ScanResult:
    """Walks a tree of up to `small` paths."""
    quick = _Quick(anchor, exclude, known, watch, small * _SIFTED)
    with suppress(CannotSiftError, CommandFailedError, OSError):
        if (stat_index := known.stat_index(exclude)) is not None:
            return quick.sifted(stat_index)
    before = known.listing(exclude)
    if before is None:
        listing = walk_if_small(anchor, exclude, small, watch.folder)
        if listing is not None:
            return _compared(listing, exclude, known)
    try:
        return quick.listed(before)
    except (CannotListError, OSError):
        # Whatever is wrong, the walk finds it again and says what it is.
        return _compared(walk(anchor, exclude, before=watch.folder), exclude, known)


def _compared(listing: Listing, exclude: Excludes, known: ManifestView) -> ScanResult:
    seen, found = dict(known.seen.items()), listing.found
    paths = {
        path
        for path, status in found.items()
        if (before := seen.get(path)) is None or not before.still_is(status)
    }
    paths.update(path for path in seen if path not in found)
    excluded = frozenset(listing.excluded) - exclude.hidden
    return ScanResult(paths, set(listing.special), linked_files(listing), excluded=excluded)


class _Quick(Struct, frozen=True):
    """Two ways, either of which may be closed. It pays to sift a tree of more than `few` paths."""

    anchor: RootedFolder
    exclude: Excludes
    known: ManifestView
    watch: Watch
    few: int

    def sifted(self, stat_index: StatIndex) -> ScanResult:
        """Raises CannotSiftError, CommandFailedError or OSError."""
        touched = self.known.touched()
        if not self._has_times() or stat_index.is_worn(len(touched)):
            raise CannotSiftError
        from cleveragents.infrastructure.snapshots.changes.stat_index_scan import sift  # noqa: PLC0415 - large trees

        found = sift(self.anchor, self.exclude, self.known, self.watch, stat_index)
        doubtful = found.paths | touched
        differing = self._differing(doubtful, {}, [], found.statuses)
        return ScanResult(differing, found.special, found.linked)

    def listed(self, before: TreeListing | None) -> ScanResult:
        """Raises CannotListError or OSError."""
        if not self._has_times():
            raise CannotListError
        since_ns = time.time_ns()
        kept, before = before, before or self._first()
        listed = self._list(before)
        came, went = _difference(listed) if kept else self._against_known(listed)
        doubtful = {*came, *went, *(self.known.touched() if kept else ())}
        if any(True for part in listed for _ in marked(part.now, EXCLUDED)):
            # What holds nothing but excluded paths is no folder, and may have become one.
            doubtful.update(*(_parents(path) for path in tuple(doubtful)))
        special, linked = _all_marked(listed, SPECIAL), _all_marked(listed, LINKED)
        special |= {p for p in _all_marked(listed, CHARACTERS) if self._is_special(p)}
        for folder in _topmost(self.watch.unheard(p for p, mark in came.items() if mark == FOLDER)):
            inner = walk(self.anchor, self.exclude, folder, self.watch.folder)
            doubtful.update(inner.found)
            special.update(inner.special)
            linked |= linked_files(inner)
        stale = not kept or len(doubtful) > _STALE or _is_worth_sharing_out(before, listed)
        plain = not (special or linked or self.exclude.patterns)
        begins = kept is None and not self.known.seen
        return ScanResult(
            _all_new(doubtful, came, listed)
            if begins
            else self._differing(doubtful, came, listed, {}),
            special,
            linked,
            self._outline(kept, before, listed) if stale else None,
            self._draft(listed, since_ns) if plain and not stale else None,
            frozenset(_all_marked(listed, EXCLUDED)),
        )

    def _is_special(self, path: bytes) -> bool:
        status = status_at(self.anchor, path)
        return status is not None and status.kind is None

    def _has_times(self) -> bool:
        """Elsewhere the time of the last change may not mean what is needed."""
        return is_local(self.anchor.folder(b""))

    def _draft(self, listed: list[Listed], since_ns: int) -> StatIndexDraft | None:
        """Once a tree was found as it had been left: then it may be so again. Not for one with
        anything in it that a stat index cannot tell of."""
        if sum(part.now.count(b"\0") for part in listed) <= self.few:
            return None
        folders = sorted({b"", *_all_marked(listed, FOLDER)})
        return draft(self.anchor.folder(b""), folders, since_ns)

    def _outline(
        self, kept: TreeListing | None, before: TreeListing, listed: list[Listed]
    ) -> TreeListing:
        if kept is None and before.spine and not _has_new_tops(before, listed):
            return _in_parts_of(before, listed)  # shared out by what was expected, which came
        return _outline_now(before, listed)

    def _first(self) -> TreeListing:
        """Only to know the folders, which have to be watched before they are listed."""
        if expected := self.known.expected():
            return expected_listing(expected)
        anchor, exclude = self.anchor, self.exclude
        listed = list_with_find(anchor, exclude, UNLISTED, lambda _: None, _nothing)
        return listing_of(_records_now(listed))

    def _list(self, before: TreeListing) -> list[Listed]:
        root = self.anchor.folder(b"")
        self.watch.folders(root, before.spine or (b"",))

        def prepare(text: bytes) -> None:
            self.watch.folders(self.anchor.folder(b""), marked(text, FOLDER))

        # Of a large tree the end is too far away for anything to be found out now.
        meanwhile = self.watch.complete if _size(before) < _SOON else _nothing
        return list_with_find(self.anchor, self.exclude, before, prepare, meanwhile)

    def _against_known(self, listed: list[Listed]) -> tuple[dict[bytes, bytes], set[bytes]]:
        now = set(_records_now(listed))
        went: set[bytes] = set()
        for path, seen in self.known.seen.items():
            record = record_of(seen)
            if record in now:
                now.discard(record)
            else:
                went.add(path)
        return {path_of(record): record[:1] for record in now}, went

    def _differing(
        self,
        doubtful: set[bytes],
        came: Mapping[bytes, bytes],
        listed: list[Listed],
        looked_at: Mapping[bytes, StatInfo | None],
    ) -> set[bytes]:
        """`looked_at` are statuses since the folders are watched: what came later is heard of."""
        self.known.load(doubtful)
        seen = self.known.seen
        mere = _mere_holders(listed) if doubtful else set[bytes]()
        differing: set[bytes] = set()
        for path in sorted(doubtful):
            before = seen.get(path)
            if before is None and path in came:
                # Nobody knows it, so there is nothing to compare it with.
                if came[path] in _CAPTURED and path not in mere:
                    differing.add(path)
                continue
            status = None if path in mere else self._status(path, looked_at)
            same = before.still_is(status) if before and status else before is status
            if not same:
                differing.add(path)
        return differing

    def _status(self, path: bytes, looked_at: Mapping[bytes, StatInfo | None]) -> StatInfo | None:
        status = looked_at[path] if path in looked_at else status_at(self.anchor, path)
        if status is None or status.kind is None:
            return None
        if (path, status.kind is Kind.DIR) in self.exclude:
            return None
        return None if any((p, True) in self.exclude for p in _parents(path)) else status


def _all_new(doubtful: set[bytes], came: Mapping[bytes, bytes], listed: list[Listed]) -> set[bytes]:
    """Where nothing is known, there is nothing to compare with."""
    mere = _mere_holders(listed)
    return {p for p in doubtful if came.get(p, FILE) in _CAPTURED and p not in mere}


def _nothing() -> None:
    pass


def _difference(listed: Iterable[Listed]) -> tuple[dict[bytes, bytes], set[bytes]]:
    """What came, with the mark of its record, and what went; both for what changed."""
    came: dict[bytes, bytes] = {}
    went: set[bytes] = set()
    for before, now in listed:
        if before.text == now:
            continue
        old, new = set(records(before.text)), set(records(now))
        came.update((path_of(record), record[:1]) for record in new - old)
        went.update(map(path_of, old - new))
    return came, went


def _all_marked(listed: Iterable[Listed], mark: bytes) -> set[bytes]:
    return {path for part in listed for path in marked(part.now, mark)}


def _records_now(listed: Iterable[Listed]) -> list[bytes]:
    return [record for part in listed for record in records(part.now)]


def _is_worth_sharing_out(before: TreeListing, listed: list[Listed]) -> bool:
    """What is new at the tops takes a process of its own each time, which costs more than to write
    a text down again that is not long."""
    return _has_new_tops(before, listed) and _size(before) < _SOON


def _outline_now(before: TreeListing, listed: list[Listed]) -> TreeListing:
    """In the same parts, as long as these are all, and about what they were."""
    size = _size(before)
    grown = abs(sum(len(part.now) for part in listed) - size) > size * _GROWN
    if grown or _has_new_tops(before, listed):
        return listing_of(_records_now(listed))
    return _in_parts_of(before, listed)


def _in_parts_of(before: TreeListing, listed: list[Listed]) -> TreeListing:
    kept = listed[: len(before.parts)]
    return TreeListing(before.spine, tuple(Part(part.before.tops, part.now) for part in kept))


def _has_new_tops(before: TreeListing, listed: list[Listed]) -> bool:
    """They come last."""
    return any(part.now for part in listed[len(before.parts) :])


def _size(listing: TreeListing) -> int:
    return sum(len(part.text) for part in listing.parts)


def _mere_holders(listed: list[Listed]) -> set[bytes]:
    excluded = _all_marked(listed, EXCLUDED)
    if not any(map(parent_of, excluded)):
        return set()
    found = {path_of(r) for r in _records_now(listed) if r[:1] in _CAPTURED}
    return folders_with_only_excluded(found, excluded)


def _topmost(folders: Collection[bytes]) -> list[bytes]:
    return [folder for folder in folders if not any(p in folders for p in _parents(folder))]


def _parents(path: bytes) -> Iterable[bytes]:
    while path := parent_of(path):
        yield path
