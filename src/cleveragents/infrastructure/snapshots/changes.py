"""Owns what a difference between two states is called when people are told about it."""

from collections.abc import Callable, Collection, Iterable
from typing import NamedTuple

from cleveragents.domain.changes import ChangeKind, FileChange
from cleveragents.domain.footprint import Footprint
from cleveragents.infrastructure.snapshots.entry import (
    SUM_MODULUS,
    Entry,
    Kind,
    parent_of,
    shown,
)

HasChildren = Callable[[bytes], bool]


class Difference(NamedTuple):
    """A path, and its two states, which are not the same."""

    path: bytes
    old: Entry | None
    new: Entry | None


def total_after(total: int, differences: Iterable[Difference]) -> int:
    """The sum over a tree after these."""
    for _, old, new in differences:
        total += (new.token() if new else 0) - (old.token() if old else 0)
    return total % SUM_MODULUS


def file_changes(
    differences: Collection[Difference], old_has: HasChildren, new_has: HasChildren
) -> tuple[FileChange, ...]:
    """Files and links count, folders only where they are empty, because nothing else shows them.

    `old_has` and `new_has` tell whether a folder that is in both states has children; of one that
    is in a single state all children are differences themselves.
    """
    old_parents = {parent_of(path) for path, old, _ in differences if old}
    new_parents = {parent_of(path) for path, _, new in differences if new}
    changes: list[FileChange] = []
    for path, old, new in sorted(differences):
        stays = _is_folder(old) and _is_folder(new)
        was = _counts(old, path in old_parents or (stays and old_has(path)))
        is_ = _counts(new, path in new_parents or (stays and new_has(path)))
        if was or is_:
            changes.append(FileChange(path=shown(path), kind=_kind(was=was, is_=is_)))
    return tuple(changes)


def footprint(differences: Collection[Difference], *, whole: bool) -> Footprint:
    """The same exactly; `whole` if something beside the files changed too."""
    above = {parent_of(item.path) for item in differences}
    folders = {item.path for item in differences if _comes_or_goes(item) and item.path in above}
    return Footprint(
        paths=frozenset(_exact(item.path) for item in differences if item.path not in folders),
        folders=frozenset(map(_exact, folders)),
        whole=whole,
    )


def _comes_or_goes(item: Difference) -> bool:
    """A folder that is in one of the two states, where the other one has nothing."""
    there = item.old or item.new
    return (item.old is None or item.new is None) and _is_folder(there)


def _exact(path: bytes) -> str:
    return path.decode("utf-8", "surrogateescape")


def _is_folder(entry: Entry | None) -> bool:
    return entry is not None and entry.kind is Kind.DIR


def _counts(entry: Entry | None, has_children: bool) -> bool:  # noqa: FBT001 - a fact, no switch
    return entry is not None and (entry.kind is not Kind.DIR or not has_children)


def _kind(*, was: bool, is_: bool) -> ChangeKind:
    if was and is_:
        return ChangeKind.MODIFIED
    return ChangeKind.ADDED if is_ else ChangeKind.DELETED
