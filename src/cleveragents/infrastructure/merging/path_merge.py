"""The three-way merge of one tree, path by path: what to take over, and what conflicts.

`base` is the state a child began with, `theirs` what it made of it, `ours` the parent's present. A
child that began anew did so on top of what others had merged since the first time: where it undoes
that, a plain merge would see nothing, so it is a conflict. A file that one side has renamed is
followed: what the other side made of it goes to its new path (`_follow`).
In which order: every path that the child changed; then renames; then folders that something stays
in; then those that something needs.
Why: a rename writes to a path that was looked at by itself before, and has the last word there; and
only when all files are decided can be said which folders are empty.
What is not guaranteed: that a merge without conflicts works. Lines are compared, not their meaning.
"""

import hashlib
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from msgspec import Struct, field

from cleveragents.domain.action import MergeStrategy
from cleveragents.domain.conflicts import LeftOut, Side
from cleveragents.domain.subplan import ConflictKind
from cleveragents.infrastructure.files.entry import (
    Entry,
    Kind,
    parent_of,
    same_state,
    shown,
)
from cleveragents.infrastructure.merging.disputes import (
    LARGEST_TEXT,
    Content,
    Dispute,
    takes_back,
    with_texts,
)
from cleveragents.infrastructure.merging.rename_detection import Renames
from cleveragents.infrastructure.snapshots.tree.diff import PathDifference

T = TypeVar("T", int, bytes)
MergeText = Callable[[bytes, bytes, bytes], bytes | None]
"""Takes base, ours and theirs; None where they cannot be brought together."""

Answer = Side | bytes | None
"""A side, a text, or that nobody has decided."""
Resolve = Callable[[Dispute], Answer]

_SNIFFED = 8000


class MergeTrees(Struct, frozen=True, kw_only=True):
    """What the merge needs to see of the two trees.

    `changes` lead from base to theirs, `our_changes` are what the parent changed since. `below`
    gives the parent's paths below a folder. `began` is there for a child that began anew: what a
    path was before any of its siblings was merged.
    """

    changes: Sequence[PathDifference]
    our_changes: Callable[[], Sequence[PathDifference]]
    ours: Callable[[bytes], Entry | None]
    below: Callable[[bytes], Iterable[bytes]]
    folder: Callable[[bytes], Entry | None]
    content: Content
    began: Callable[[bytes], Entry | None] | None = None


class Merged(Struct):
    """`wanted` is what the parent's paths become, `contents` are those that nobody had before.

    `left_out` is what of either side is not in the result although somebody had made it.
    """

    wanted: dict[bytes, Entry | None] = field(default_factory=dict[bytes, Entry | None])
    contents: dict[bytes, bytes] = field(default_factory=dict[bytes, bytes])
    conflicts: list[Dispute] = field(default_factory=list[Dispute])
    left_out: list[LeftOut] = field(default_factory=list[LeftOut])


class PathMerge:
    def __init__(
        self,
        trees: MergeTrees,
        strategy: MergeStrategy,
        merge_text: MergeText,
        now_ns: int,
        resolve: Resolve = lambda _: None,
    ) -> None:
        self._trees = trees
        self._strategy = strategy
        self._merge_text = merge_text
        self._now_ns = now_ns
        self._resolve = resolve
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

    def _take(self, change: PathDifference) -> None:
        path, base, theirs = change
        ours = self._trees.ours(path)
        if same_state(ours, theirs):
            if theirs is None and base is not None:
                self._moves.append(lambda: self._refuse_two_targets(path))
        elif self._strategy is MergeStrategy.LAST_WINS:
            self.result.wanted[path] = theirs
            if not same_state(ours, base):
                self.result.left_out.append(LeftOut(path=shown(path), side=Side.OURS))
        elif same_state(ours, base):
            self._take_over(change)
        elif self._strategy is MergeStrategy.SEQUENTIAL_APPLY:
            kind = _kind(base, ours, theirs)
            self._conflict(Dispute(path=path, kind=kind, base=base, ours=ours, theirs=theirs))
        else:
            self._bring_together(path, base, ours, theirs)

    def _take_over(self, change: PathDifference) -> None:
        """Nobody else has touched it since the child began; unless that was on top of others."""
        path, base, theirs = change
        began = self._trees.began(path) if self._trees.began else base
        if same_state(began, base) or not self._undoes(began, base, theirs):
            self.result.wanted[path] = theirs
            return
        kind = ConflictKind.OVERWRITE
        self._conflict(Dispute(path=path, kind=kind, base=began, ours=base, theirs=theirs))

    def _undoes(self, began: Entry | None, ours: Entry | None, theirs: Entry | None) -> bool:
        if ours is None or theirs is None:
            return True
        return takes_back(began, ours, theirs, self._content)

    def _bring_together(
        self, path: bytes, base: Entry | None, ours: Entry | None, theirs: Entry | None
    ) -> None:
        if base is None:
            if not (_is_folder(ours) and _is_folder(theirs)):
                kind = ConflictKind.CREATE
                self._conflict(Dispute(path=path, kind=kind, ours=ours, theirs=theirs))
        elif theirs is None:
            self._moves.append(lambda: self._follow_theirs(base, ours))
        elif ours is None:
            self._moves.append(lambda: self._follow_ours(base, theirs))
        else:
            merged = self._merge_entries(base, ours, theirs)
            if isinstance(merged, Entry):
                self.result.wanted[path] = merged
            else:
                self._conflict(Dispute(path=path, kind=merged, base=base, ours=ours, theirs=theirs))

    def _follow_theirs(self, base: Entry, ours: Entry | None) -> None:
        """The child has deleted or moved what the parent has changed."""
        moved = self._theirs.target(base.path)
        put = {base.path: None} if moved is None else {base.path: None, moved.path: moved}
        drop = () if moved is None else (moved.path,)
        kind = ConflictKind.DELETE if moved is None else ConflictKind.RENAME
        self._follow(
            Dispute(
                path=base.path,
                kind=kind,
                base=base,
                ours=ours,
                moved=(None, moved.path if moved else None),
                put=put,
                drop=drop,
            ),
            ours,
            moved,
        )

    def _follow_ours(self, base: Entry, theirs: Entry | None) -> None:
        """The parent has deleted or moved what the child has changed."""
        moved = self._our_renames().target(base.path)
        put = {} if moved is None else {moved.path: None}
        kind = ConflictKind.DELETE if moved is None else ConflictKind.RENAME
        self._follow(
            Dispute(
                path=base.path,
                kind=kind,
                base=base,
                theirs=theirs,
                moved=(moved.path if moved else None, None),
                put=put,
            ),
            theirs,
            moved,
        )

    def _follow(self, dispute: Dispute, changed: Entry | None, moved: Entry | None) -> None:
        """One side changed a file that the other does not have at this path any more."""
        base = dispute.base
        if _is_folder(base) and _is_folder(changed):
            return  # only its mode: a folder that is gone needs none
        if base is None or changed is None or moved is None:
            self._conflict(dispute)
            return
        merged = self._merge_entries(base, changed, moved)
        there = self._trees.ours(moved.path)
        in_the_way = there is not None and not same_state(there, moved)
        if not isinstance(merged, Entry) or in_the_way:
            self._conflict(dispute)
            return
        self.result.wanted[base.path] = None
        self.result.wanted[moved.path] = merged._replace(path=moved.path)

    def _refuse_two_targets(self, path: bytes) -> None:
        """Both moved the same file: to the same place, or nobody can say where it belongs."""
        if self._strategy in (MergeStrategy.LAST_WINS, MergeStrategy.SEQUENTIAL_APPLY):
            return
        theirs = self._theirs.target(path)
        ours = self._our_renames().target(path) if theirs else None
        if theirs and ours and theirs.path != ours.path:
            self._conflict(
                Dispute(
                    path=path,
                    kind=ConflictKind.RENAME,
                    moved=(ours.path, theirs.path),
                    put={ours.path: None, theirs.path: theirs},
                    drop=(theirs.path,),
                )
            )

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
        if max(base.size, ours.size, theirs.size) > LARGEST_TEXT:
            return ConflictKind.BINARY
        one, two, three = (self._content(entry) for entry in (base, ours, theirs))
        if two == three:  # under two names, one of which is a blob's
            return ours._replace(mode=mode)
        if any(b"\0" in data[:_SNIFFED] for data in (one, two, three)):
            return ConflictKind.BINARY
        text = self._merge_text(one, two, three)
        if text is None:
            return ConflictKind.CONTENT
        return self._with_text(ours._replace(mode=mode), text)

    def _with_text(self, entry: Entry, text: bytes) -> Entry:
        key = hashlib.sha256(text).digest()
        self.result.contents[key] = text
        return entry._replace(hash=key, size=len(text), mtime_ns=self._now_ns)

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
                ours, kind = self._trees.ours(path), ConflictKind.CREATE
                self._conflict(Dispute(path=path, kind=kind, ours=ours, theirs=wanted))

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
            theirs, kind = wanted.pop(path, None), ConflictKind.CREATE
            put = {folder: self._trees.folder(folder)}
            self._conflict(Dispute(path=path, kind=kind, theirs=theirs, put=put))
        return True

    # --- what cannot be merged ------------------------------------------------------------------

    def _conflict(self, dispute: Dispute) -> None:
        """Told, unless somebody has decided about exactly this."""
        if not _is_about_modes(dispute):
            whole = self._strategy is MergeStrategy.SEQUENTIAL_APPLY
            dispute = with_texts(dispute, self._content, whole=whole)
        answer = self._resolve(dispute)
        if answer is None:
            self.result.conflicts.append(dispute)
        elif isinstance(answer, bytes):
            self._write(dispute, dispute.ours or dispute.theirs, answer)
        else:
            self._take_answer(dispute, answer)

    def _take_answer(self, dispute: Dispute, side: Side) -> None:
        wanted = self.result.wanted
        other = Side.OURS if side is Side.THEIRS else Side.THEIRS
        self.result.left_out.append(dispute.left_out(other))
        if side is Side.THEIRS:
            wanted.update({dispute.path: dispute.theirs, **dispute.put})
            if dispute.theirs is not None and not _is_folder(dispute.theirs):
                wanted.update(dict.fromkeys(self._trees.below(dispute.path)))
        for path in dispute.drop if side is Side.OURS else ():
            wanted.pop(path, None)
        text = dispute.answers.get(side)
        if text is not None:
            self._write(dispute, dispute.theirs if side is Side.THEIRS else dispute.ours, text)

    def _write(self, dispute: Dispute, entry: Entry | None, text: bytes) -> None:
        assert entry is not None
        sides = (dispute.base, dispute.ours, dispute.theirs)
        modes = [one.mode for one in sides if one is not None]
        if len(modes) == len(sides):  # whoever changed that has changed it
            entry = entry._replace(mode=_one_of(*modes) or entry.mode)
        self.result.wanted[dispute.path] = self._with_text(entry, text)


def _kind(base: Entry | None, ours: Entry | None, theirs: Entry | None) -> ConflictKind:
    if base is None:
        return ConflictKind.CREATE
    return ConflictKind.DELETE if ours is None or theirs is None else ConflictKind.CONTENT


def _is_about_modes(dispute: Dispute) -> bool:
    """Then lines have nothing to say, and each side is taken as it is."""
    sides = (dispute.base, dispute.ours, dispute.theirs)
    modes = [entry.mode for entry in sides if entry is not None]
    return len(modes) == len(sides) and _one_of(*modes) is None


def _one_of(base: T, ours: T, theirs: T) -> T | None:
    """The side that changed, if only one did or both did the same."""
    if ours in (base, theirs):
        return theirs
    return ours if theirs == base else None


def _is_folder(entry: Entry | None) -> bool:
    return entry is not None and entry.kind is Kind.DIR
