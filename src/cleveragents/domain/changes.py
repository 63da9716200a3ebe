"""What differs between two states of a resource."""

from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace


class ChangeKind(StrEnum):
    ADDED = "added"
    MODIFIED = "modified"
    DELETED = "deleted"


class FileChange(NamedTuple):
    """One path that differs. `path` is text for people: bytes that are not UTF-8 are escaped.

    One is made for every path of a step that changed thousands, so it is of the kind that is made
    fastest.
    """

    path: str
    kind: ChangeKind


class FileDiff(Struct, frozen=True, kw_only=True):
    """One file of a diff; `insertions` and `deletions` are None for binary content."""

    path: str
    kind: ChangeKind
    insertions: int | None
    deletions: int | None


class ResourceDiff(Struct, frozen=True, kw_only=True):
    """What a plan would change in one resource; apply does not take the ignored `left_behind`, nor
    `empty_folders`, which git does not keep.

    `brought` is how much of ignored folders comes along, because somebody wants it; `can_bring`:
    what is left behind could be wanted too. `notes` are sentences for people about what the files
    do not show.
    """

    files: tuple[FileDiff, ...] = ()
    patch: str = ""
    left_behind: tuple[str, ...] = ()
    empty_folders: tuple[str, ...] = ()
    brought: tuple[str, ...] = ()
    can_bring: bool = False
    notes: tuple[str, ...] = ()

    def leaving_out(self, other: "ResourceDiff") -> "ResourceDiff":
        """The same with what the other one says that apply does not take."""
        return replace(self, left_behind=other.left_behind, empty_folders=other.empty_folders)


_LONGEST_PATH = 60


def in_words(changes: Sequence[FileChange]) -> str:
    """What changed, in a few words: one path, and how many others. Rather one that is not hidden:
    what programs note for themselves says little."""
    path = next((c.path for c in changes if not _is_hidden(c.path)), changes[0].path)
    shown = path if len(path) <= _LONGEST_PATH else f"…{path[1 - _LONGEST_PATH :]}"
    return shown if len(changes) == 1 else f"{shown}, {len(changes) - 1} more"


def _is_hidden(path: str) -> bool:
    return path.startswith(".") or "/." in path
