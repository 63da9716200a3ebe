"""What a difference between two states is called when people are told about it."""

from collections.abc import Callable, Collection, Iterable
from operator import itemgetter
from typing import NamedTuple

from cleveragents.domain.changes import ChangeKind, FileChange
from cleveragents.domain.footprint import Footprint
from cleveragents.infrastructure.files.entry import Entry, Kind, TreeEntry, parent_of, shown
from cleveragents.infrastructure.files.tree_hash import SUM_MODULUS, token

HasChildren = Callable[[bytes], bool]
Change = tuple[bytes, TreeEntry | None, TreeEntry | None]
"""A path, and its two states, which are not the same: a Difference for those who need no names."""
# Other than a member of Kind, it need not be looked up for each of thousands.
_FOLDER = int(Kind.DIR)
_WHITEOUT = int(Kind.WHITEOUT)


class PathDifference(NamedTuple):
    """A path, and its two states, which are not the same."""

    path: bytes
    old: Entry | None
    new: Entry | None


def total_after(total: int, changes: Iterable[Change]) -> int:
    """The sum over a tree after these."""
    for _, old, new in changes:
        total += (token(new) if new else 0) - (token(old) if old else 0)
    return total % SUM_MODULUS


def file_changes(
    changes: Collection[Change], old_has: HasChildren, new_has: HasChildren
) -> tuple[FileChange, ...]:
    """Files and links count, folders only where they are empty, because nothing else shows them.

    `old_has` and `new_has` tell whether a folder that is in both states has children; of one that
    is in a single state all children are changes themselves.
    """
    old_parents, new_parents = _parents(changes)
    told: list[FileChange] = []
    for path, old, new in sorted(changes, key=itemgetter(0)):
        if _is_whiteout(old) or _is_whiteout(new):
            # Of a layer: what is below is gone, or shows again, or something is in its place.
            kind = ChangeKind.DELETED if _is_whiteout(new) else ChangeKind.ADDED
            told.append(FileChange(path=shown(path), kind=kind))
            continue
        was, is_ = old is not None, new is not None
        if _is_folder(old):
            was = not (path in old_parents or (_is_folder(new) and old_has(path)))
        if _is_folder(new):
            is_ = not (path in new_parents or (_is_folder(old) and new_has(path)))
        if was or is_:
            told.append(FileChange(path=shown(path), kind=_kind(was=was, is_=is_)))
    return tuple(told)


def footprint(changes: Collection[Change], *, whole: bool) -> Footprint:
    """The same exactly; `whole` if something beside the files changed too."""
    # Folders that are in one of the two states, where the other one has nothing.
    folders = {path for path, old, new in changes if not (old and new) and _is_folder(old or new)}
    if folders:
        folders &= {parent_of(path) for path, _, _ in changes}
    return Footprint(
        paths=frozenset(_exact(path) for path, _, _ in changes if path not in folders),
        folders=frozenset(map(_exact, folders)),
        whole=whole,
    )


def _parents(changes: Collection[Change]) -> tuple[set[bytes], set[bytes]]:
    """The folders of what is in the old state, and of what is in the new one."""
    if not any(_is_folder(old) or _is_folder(new) for _, old, new in changes):
        return set(), set()  # nobody will ask
    olds = {parent_of(path) for path, old, _ in changes if old}
    return olds, {parent_of(path) for path, _, new in changes if new}


def _exact(path: bytes) -> str:
    return path.decode("utf-8", "surrogateescape")


def _is_folder(state: TreeEntry | None) -> bool:
    return state is not None and state.kind == _FOLDER


def _is_whiteout(state: TreeEntry | None) -> bool:
    return state is not None and state.kind == _WHITEOUT


def _kind(*, was: bool, is_: bool) -> ChangeKind:
    if was and is_:
        return ChangeKind.MODIFIED
    return ChangeKind.ADDED if is_ else ChangeKind.DELETED
