"""Owns the three-way merge of one tree, path by path: what to take over, and what conflicts.

`base` is the state a child began with, `theirs` what it made of it, `ours` the parent's present.
"""

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from cleveragents.domain.action import MergeStrategy
from cleveragents.domain.subplan import ConflictKind
from cleveragents.infrastructure.merging.renames import Content, Renames
from cleveragents.infrastructure.snapshots.changes import Difference
from cleveragents.infrastructure.snapshots.entry import Entry, Kind, parent_of, same_state

T = TypeVar("T", int, bytes)
Wanted = Mapping[bytes, Entry | None]
MergeText = Callable[[bytes, bytes, bytes], bytes | None]
"""Takes base, ours and theirs; None where they cannot be brought together."""

_SNIFFED = 8000
_LARGEST_TEXT = 32 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class PathConflict:
    path: bytes
    kind: ConflictKind


@dataclass(frozen=True, slots=True, kw_only=True)
class Trees:
    """What the merge needs to see of the two trees.

    `changes` lead from base to theirs, `our_changes` are what the parent changed since. `below`
    gives the parent's paths below a folder.
    """

    changes: Sequence[Difference]
    our_changes: Callable[[], Sequence[Difference]]
    ours: Callable[[bytes], Entry | None]
    below: Callable[[bytes], Iterable[bytes]]
    folder: Callable[[bytes], Entry | None]
    content: Content


@dataclass(slots=True)
class Merged:
    """`wanted` is what the parent's paths become, `contents` are those that nobody had before."""

    wanted: dict[bytes, Entry | None] = field(default_factory=dict[bytes, Entry | None])
    contents: dict[bytes, bytes] = field(default_factory=dict[bytes, bytes])
    conflicts: list[PathConflict] = field(default_factory=list[PathConflict])


class PathMerge:
    def __init__(
        self, trees: Trees, strategy: MergeStrategy, merge_text: MergeText, now_ns: int
    ) -> None:
        self._trees = trees
        self._strategy = strategy
        self._merge_text = merge_text
        self._now_ns = now_ns
        self._theirs = Renames.among(trees.changes, trees.content)
        self._ours: Renames | None = None
        self._moves: list[Callable[[], None]] = []
        self.result = Merged()

    def run(self) -> Merged:
        # Files first: whether a folder may go or has to be made depends on what is in it.
        for change in self._trees.changes:
            self._take(change)
        # Not earlier: taking over the new path by itself would undo what is brought along to it.
        for move in self._moves:
            move()
        self._keep_full_folders()
        self._make_folders()
        self.result.conflicts.sort(key=lambda conflict: conflict.path)
        return self.result

    def _take(self, change: Difference) -> None:
        path, base, theirs = change
        ours = self._trees.ours(path)
        if same_state(ours, theirs):
            if theirs is None and base is not None:
                self._refuse_two_targets(path)
        elif same_state(ours, base) or self._strategy is MergeStrategy.LAST_WINS:
            self.result.wanted[path] = theirs
        elif self._strategy is MergeStrategy.SEQUENTIAL_APPLY:
            self._conflict(path, _kind(base, ours, theirs))
        else:
            self._bring_together(path, base, ours, theirs)

    def _bring_together(
        self, path: bytes, base: Entry | None, ours: Entry | None, theirs: Entry | None
    ) -> None:
        if base is None:
            if not (_is_folder(ours) and _is_folder(theirs)):
                self._conflict(path, ConflictKind.CREATE)
        elif theirs is None:
            self._moves.append(lambda: self._follow(base, ours, self._theirs.target(path)))
        elif ours is None:
            self._moves.append(lambda: self._follow(base, theirs, self._our_renames().target(path)))
        else:
            merged = self._merge_entries(base, ours, theirs)
            if isinstance(merged, Entry):
                self.result.wanted[path] = merged
            else:
                self._conflict(path, merged)

    def _follow(self, base: Entry, changed: Entry | None, moved: Entry | None) -> None:
        """One side changed a file that the other does not have at this path any more."""
        path = base.path
        if _is_folder(base) and _is_folder(changed):
            return  # only its mode: a folder that is gone needs none
        if changed is None or moved is None:
            self._conflict(path, ConflictKind.DELETE)
            return
        merged = self._merge_entries(base, changed, moved)
        there = self._trees.ours(moved.path)
        in_the_way = there is not None and not same_state(there, moved)
        if not isinstance(merged, Entry) or in_the_way:
            self._conflict(path, ConflictKind.RENAME)
            return
        self.result.wanted[path] = None
        self.result.wanted[moved.path] = merged._replace(path=moved.path)

    def _refuse_two_targets(self, path: bytes) -> None:
        """Both moved the same file: to the same place, or nobody can say where it belongs."""
        if self._strategy in (MergeStrategy.LAST_WINS, MergeStrategy.SEQUENTIAL_APPLY):
            return
        theirs = self._theirs.target(path)
        ours = self._our_renames().target(path) if theirs else None
        if theirs and ours and theirs.path != ours.path:
            self._conflict(path, ConflictKind.RENAME)

    def _our_renames(self) -> Renames:
        if self._ours is None:
            self._ours = Renames.among(self._trees.our_changes(), self._trees.content)
        return self._ours

    def _merge_entries(self, base: Entry, ours: Entry, theirs: Entry) -> Entry | ConflictKind:
        if not (base.kind is ours.kind is theirs.kind) or base.kind is Kind.LINK:
            return ConflictKind.CONTENT
        mode = _one_of(base.mode, ours.mode, theirs.mode)
        if mode is None:
            return ConflictKind.CONTENT
        key = _one_of(base.hash, ours.hash, theirs.hash)
        if key is not None:
            source = theirs if key == theirs.hash else ours
            return source._replace(path=ours.path, mode=mode)
        return self._merge_contents(base, ours, theirs, mode)

    def _merge_contents(
        self, base: Entry, ours: Entry, theirs: Entry, mode: int
    ) -> Entry | ConflictKind:
        if max(base.size, ours.size, theirs.size) > _LARGEST_TEXT:
            return ConflictKind.BINARY
        one, two, three = (self._content(entry) for entry in (base, ours, theirs))
        if any(b"\0" in data[:_SNIFFED] for data in (one, two, three)):
            return ConflictKind.BINARY
        text = self._merge_text(one, two, three)
        if text is None:
            return ConflictKind.CONTENT
        key = hashlib.sha256(text).digest()
        self.result.contents[key] = text
        return ours._replace(mode=mode, hash=key, size=len(text), mtime_ns=self._now_ns)

    def _content(self, entry: Entry) -> bytes:
        return self.result.contents.get(entry.hash) or self._trees.content(entry)

    def _keep_full_folders(self) -> None:
        """A folder of the parent stays, or is in the way, if something stays in it."""
        for path, wanted in sorted(self.result.wanted.items(), reverse=True):
            if _is_folder(wanted) or not _is_folder(self._trees.ours(path)):
                continue
            if all(self._goes(inner) for inner in self._trees.below(path)):
                continue
            del self.result.wanted[path]
            if wanted is not None:
                self._conflict(path, ConflictKind.CREATE)

    def _goes(self, path: bytes) -> bool:
        return path in self.result.wanted and self.result.wanted[path] is None

    def _make_folders(self) -> None:
        """What is added needs its folders, which the parent may have deleted or replaced."""
        for path in [path for path, entry in self.result.wanted.items() if entry is not None]:
            folder = parent_of(path)
            while folder and not self._is_there(folder, path):
                folder = parent_of(folder)

    def _is_there(self, folder: bytes, path: bytes) -> bool:
        wanted = self.result.wanted
        entry = wanted[folder] if folder in wanted else self._trees.ours(folder)
        if entry is None:
            wanted[folder] = self._trees.folder(folder)
            return False
        if not _is_folder(entry):
            wanted.pop(path, None)
            self._conflict(path, ConflictKind.CREATE)
        return True

    def _conflict(self, path: bytes, kind: ConflictKind) -> None:
        self.result.conflicts.append(PathConflict(path=path, kind=kind))


def _kind(base: Entry | None, ours: Entry | None, theirs: Entry | None) -> ConflictKind:
    if base is None:
        return ConflictKind.CREATE
    return ConflictKind.DELETE if ours is None or theirs is None else ConflictKind.CONTENT


def _one_of(base: T, ours: T, theirs: T) -> T | None:
    """The side that changed, if only one did or both did the same."""
    if ours in (base, theirs):
        return theirs
    return ours if theirs == base else None


def _is_folder(entry: Entry | None) -> bool:
    return entry is not None and entry.kind is Kind.DIR
