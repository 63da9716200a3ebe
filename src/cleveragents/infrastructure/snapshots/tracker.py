"""Owns the question which paths may have changed since the last snapshot."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from cleveragents.infrastructure.snapshots.anchor import Anchor
from cleveragents.infrastructure.snapshots.entry import Seen
from cleveragents.infrastructure.snapshots.excludes import Excludes
from cleveragents.infrastructure.snapshots.walk import walk


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidates:
    """Paths to look at again, `special` ones that cannot be captured, in path order."""

    paths: tuple[bytes, ...]
    special: tuple[bytes, ...] = ()


class ChangeTracker(Protocol):
    """Names all paths that may differ from `known`: one too many is a hash, one too few a file."""

    def candidates(
        self, anchor: Anchor, exclude: Excludes, known: Mapping[bytes, Seen]
    ) -> Candidates: ...


class FullComparison:
    """Looks at the status of every path; right in every process and at any time."""

    def candidates(
        self, anchor: Anchor, exclude: Excludes, known: Mapping[bytes, Seen]
    ) -> Candidates:
        listing = walk(anchor, exclude)
        doubtful = [
            path
            for path, status in listing.found.items()
            if path not in known or not known[path].still_is(status)
        ]
        gone = [path for path in known if path not in listing.found]
        return Candidates(
            paths=tuple(sorted(doubtful + gone)), special=tuple(sorted(listing.special))
        )
