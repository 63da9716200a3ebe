"""Owns what a step touched in each resource, and which earlier steps that makes it depend on."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from cleveragents.domain.ids import DecisionId

EVERYTHING = "."
"""As a path that is read: all of the resource."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Footprint:
    """What one step changed in one resource.

    `paths` are files, links, empty folders and folders whose mode changed; `folders` came or went
    only because of what is in them. `whole` means that single paths do not tell it all: a
    database, or a git checkout whose HEAD, branch or index moved. Bytes of a path that are not
    UTF-8 are surrogates.
    """

    paths: frozenset[str] = frozenset()
    folders: frozenset[str] = frozenset()
    whole: bool = False

    def __bool__(self) -> bool:
        return self.whole or bool(self.paths) or bool(self.folders)


NOTHING = Footprint()
Touched = Mapping[str, Footprint]
"""By the resource's name."""
Reads = Mapping[str, tuple[str, ...]]
"""By the resource's name, the paths that a step read."""


@dataclass(slots=True)
class _Trail:
    """Who changed what in one resource."""

    everybody: dict[DecisionId, None] = field(default_factory=dict[DecisionId, None])
    whole: DecisionId | None = None
    at: dict[str, DecisionId] = field(default_factory=dict[str, DecisionId])
    below: dict[str, dict[DecisionId, None]] = field(
        default_factory=dict[str, dict[DecisionId, None]]
    )

    def add(self, decision_id: DecisionId, footprint: Footprint) -> None:
        self.everybody[decision_id] = None
        if footprint.whole:
            self.whole = decision_id
        for path in footprint.paths:
            self.at[path] = decision_id
            for above in parents(path):
                self.below.setdefault(above, {})[decision_id] = None

    def near(self, path: str) -> Iterator[DecisionId]:
        """Who changed this path, one above it or one below it."""
        if self.whole is not None:
            yield self.whole
        for one in (path, *parents(path)):
            if one in self.at:
                yield self.at[one]
        yield from self.below.get(path, ())


class Writers:
    """The live steps of a plan in the order they ran, by what they changed."""

    def __init__(self, known: Iterable[tuple[DecisionId, Touched]] = ()) -> None:
        self._trails: dict[str, _Trail] = {}
        for decision_id, touched in known:
            self.add(decision_id, touched)

    def add(self, decision_id: DecisionId, touched: Touched) -> None:
        for resource, footprint in touched.items():
            if footprint:
                self._trails.setdefault(resource, _Trail()).add(decision_id, footprint)

    def behind(self, touched: Touched, reads: Reads) -> Mapping[DecisionId, str]:
        """Those whose output a step used that read and changed this, each with the reason."""
        found: dict[DecisionId, str] = {}
        for resource, paths in reads.items():
            for path in paths:
                for decision_id in self._who(resource, path):
                    found.setdefault(decision_id, f"reads {_named(resource, path)}")
        for resource, footprint in touched.items():
            for path in [EVERYTHING] if footprint.whole else sorted(footprint.paths):
                for decision_id in self._who(resource, path):
                    found.setdefault(decision_id, f"changes {_named(resource, path)} after it")
        return found

    def _who(self, resource: str, path: str) -> Iterable[DecisionId]:
        trail = self._trails.get(resource)
        if trail is None:
            return ()
        return trail.everybody if path == EVERYTHING else trail.near(path)


def parents(path: str) -> Iterator[str]:
    while "/" in path:
        path = path.rpartition("/")[0]
        yield path


def _named(resource: str, path: str) -> str:
    return resource if path == EVERYTHING else f"{resource}:{path}"
