"""Owns the question which paths may have changed since the last snapshot."""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from cleveragents.infrastructure.snapshots.anchor import Anchor
from cleveragents.infrastructure.snapshots.entry import Seen
from cleveragents.infrastructure.snapshots.excludes import Excludes
from cleveragents.infrastructure.snapshots.walk import Listing, walk


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidates:
    """Paths to look at again, `special` ones that cannot be captured, in path order.

    `notes` tell people how they were found, if that was not the usual way.
    """

    paths: tuple[bytes, ...]
    special: tuple[bytes, ...] = ()
    notes: tuple[str, ...] = ()


class Known(NamedTuple):
    """All paths as they were last seen, and a way to those below one folder."""

    seen: Mapping[bytes, Seen]
    below: Callable[[bytes], Iterable[bytes]]


class ChangeTracker(Protocol):
    """Names all paths that may differ from what is known: one too many is a hash, one too few a
    file."""

    def candidates(self, anchor: Anchor, exclude: Excludes, known: Known) -> Candidates:
        """Named again by the next call, unless `settled` is called in between."""
        ...

    def look_again(self, anchor: Anchor, known: Known, paths: Collection[bytes]) -> None:
        """These will be looked at after this call: what happened to them until now is no news."""
        ...

    def settled(self, root: bytes, seen: Mapping[bytes, Seen]) -> None:
        """Everything named is stored, and `seen` is what is known from now on."""
        ...

    def release(self, root: bytes) -> None:
        """Nothing will be asked about this tree any more."""
        ...


class FullComparison:
    """Looks at the status of every path; right in every process and at any time."""

    def candidates(self, anchor: Anchor, exclude: Excludes, known: Known) -> Candidates:
        return compared(walk(anchor, exclude), known)

    def look_again(self, anchor: Anchor, known: Known, paths: Collection[bytes]) -> None:
        """Nothing to do."""

    def settled(self, root: bytes, seen: Mapping[bytes, Seen]) -> None:
        """Nothing to do."""

    def release(self, root: bytes) -> None:
        """Nothing to do."""


def compared(listing: Listing, known: Known) -> Candidates:
    seen, found = known.seen, listing.found
    doubtful = [
        path
        for path, status in found.items()
        if (before := seen.get(path)) is None or not before.still_is(status)
    ]
    gone = [path for path in seen if path not in found]
    return Candidates(paths=tuple(sorted(doubtful + gone)), special=tuple(sorted(listing.special)))
