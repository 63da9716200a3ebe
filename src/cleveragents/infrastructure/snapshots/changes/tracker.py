"""The port by which a snapshot asks which paths may have changed, and what it gives and gets."""

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Protocol

from msgspec import Struct

from cleveragents.infrastructure.files.entry import ManifestRow
from cleveragents.infrastructure.files.excludes import Excludes
from cleveragents.infrastructure.files.rooted_folder import RootedFolder
from cleveragents.infrastructure.snapshots.changes.listing import TreeListing
from cleveragents.infrastructure.snapshots.changes.stat_index import StatIndex, StatIndexDraft


class Watch(Protocol):
    """Is told of each folder before it is listed."""

    def folder(self, path: bytes, fd: int) -> None: ...

    def folders(self, root: int, paths: Iterable[bytes]) -> None:
        """Those that are there; parents come before their children."""
        ...

    def unheard(self, paths: Iterable[bytes]) -> set[bytes]:
        """Those of which it was not told."""
        ...

    def complete(self) -> None:
        """All that are known were told, and are listed by others now."""
        ...


class NoWatch:
    def folder(self, path: bytes, fd: int) -> None:
        """Nothing to do."""

    def folders(self, root: int, paths: Iterable[bytes]) -> None:
        """Nothing to do."""

    def unheard(self, paths: Iterable[bytes]) -> set[bytes]:  # noqa: ARG002 - a Watch
        return set()

    def complete(self) -> None:
        """Nothing to do."""


class Candidates(Struct, frozen=True, kw_only=True):
    """Paths to look at again, `special` ones that cannot be captured, in path order.

    Of the paths, `mapped` ones are written through memory by somebody, which nothing else shows.
    `notes` tell people how they were found, if that was not the usual way. `listing` is the tree
    as it was when they were found, and `stat_index` its folders, if that is worth keeping.
    `excluded` are the topmost paths that the excludes leave out, where they were seen on the way.
    """

    paths: tuple[bytes, ...]
    special: tuple[bytes, ...] = ()
    mapped: frozenset[bytes] = frozenset()
    notes: tuple[str, ...] = ()
    listing: TreeListing | None = None
    stat_index: StatIndexDraft | None = None
    excluded: frozenset[bytes] | None = None


def _load_nothing(paths: Collection[bytes]) -> object:
    """For a mapping that has everything already."""


def _no_children(folder: bytes) -> Iterable[bytes]:  # noqa: ARG001 - one of many
    return ()


def _no_outline(exclude: Excludes) -> TreeListing | None:  # noqa: ARG001 - one of many
    return None


def _no_sieve(exclude: Excludes) -> StatIndex | None:  # noqa: ARG001 - one of many
    return None


class ManifestView(Struct, frozen=True):
    """All paths as they were last seen, and a way to those below one folder.

    `load` says that many of them will be asked for. `listing` is one that was kept under the same
    excludes, `stat_index` one that was kept after it, and `touched` are the paths of which they
    may tell another state than `seen` does. `children` are those in one folder itself. `expected`
    are paths of files that most likely are there, where nothing was seen yet.
    """

    seen: Mapping[bytes, ManifestRow]
    below: Callable[[bytes], Iterable[bytes]]
    load: Callable[[Collection[bytes]], object] = _load_nothing
    listing: Callable[[Excludes], TreeListing | None] = _no_outline
    touched: Callable[[], set[bytes]] = set
    stat_index: Callable[[Excludes], StatIndex | None] = _no_sieve
    children: Callable[[bytes], Iterable[bytes]] = _no_children
    expected: Callable[[], Collection[bytes]] = tuple


class ChangeTracker(Protocol):
    """Names all paths that may differ from what is known: one too many is a hash, one too few a
    file."""

    def candidates(
        self, anchor: RootedFolder, exclude: Excludes, known: ManifestView
    ) -> Candidates:
        """Named again by the next call, unless `acknowledge` is called in between."""
        ...

    def look_again(
        self, anchor: RootedFolder, known: ManifestView, paths: Collection[bytes]
    ) -> None:
        """These will be looked at after this call: what happened to them until now is no news."""
        ...

    def acknowledge(self, root: bytes, seen: Mapping[bytes, ManifestRow]) -> None:
        """Everything named is stored, and `seen` is what is known from now on."""
        ...

    def release(self, root: bytes) -> None:
        """Nothing will be asked about this tree any more."""
        ...
