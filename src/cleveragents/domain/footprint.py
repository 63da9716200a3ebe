"""What a step touched and how far it looked, and whose output that makes it depend on."""

from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct, field

from cleveragents.domain.ids import DecisionId

EVERYTHING = "."
"""As a path that is read: all of the resource."""


class Footprint(Struct, frozen=True, kw_only=True):
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


class Reach(Struct, frozen=True, kw_only=True):
    """How far a step may have looked, and whether it may have changed what nobody sees.

    `reads` None means that nobody knows, so everything. `targets` is what it was told to write: if
    the same was there already, it has touched nothing, which depends on who had put it there.
    Hidden is what no snapshot shows: what is excluded, resources without checkpoints, and the world
    outside the sandboxes.
    """

    reads: Reads | None = None
    targets: Reads = field(default_factory=dict[str, tuple[str, ...]])
    reads_hidden: bool = True
    writes_hidden: bool = True

    def joined(self, other: "Reach") -> "Reach":
        """That of both together."""
        known = self.reads is not None and other.reads is not None
        return Reach(
            reads=_both(self.reads or {}, other.reads or {}) if known else None,
            targets=_both(self.targets, other.targets),
            reads_hidden=self.reads_hidden or other.reads_hidden,
            writes_hidden=self.writes_hidden or other.writes_hidden,
        )


UNKNOWN = Reach()
NO_REACH = Reach(reads={}, reads_hidden=False, writes_hidden=False)


class StepWrites(Struct, frozen=True, kw_only=True):
    """What a live decision did: its step, what that changed, how far it looked, and when."""

    decision_id: DecisionId
    step_index: int | None
    seq: int
    touched: Touched
    reach: Reach = UNKNOWN

    @property
    def left_something(self) -> bool:
        """Whether there is anything that whoever comes later could find."""
        return self.reach.writes_hidden or any(self.touched.values())


class _Trail(Struct):
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

    def __init__(self, known: Iterable[StepWrites] = ()) -> None:
        self._trails: dict[str, _Trail] = {}
        # By decision, when it last ran; and those that ran after a step which they come before.
        self._ran: dict[DecisionId, tuple[int, StepWrites]] = {}
        self._late: list[tuple[int, StepWrites]] = []
        self._count = 0
        self._farthest = -1
        for deed in known:
            self.add(deed)

    def add(self, deed: StepWrites) -> None:
        self._count += 1
        self._ran[deed.decision_id] = (self._count, deed)
        if deed.step_index is not None and deed.step_index < self._farthest:
            self._late.append((self._count, deed))
        self._farthest = max(self._farthest, -1 if deed.step_index is None else deed.step_index)
        for resource, footprint in deed.touched.items():
            if footprint:
                self._trails.setdefault(resource, _Trail()).add(deed.decision_id, footprint)

    def overtaken(self, decision_id: DecisionId, *, unproven: bool = True) -> str | None:
        """Why a step cannot stay: one that comes before it has run after it.

        With `unproven` it is enough that it may have used what that one did.
        """
        if decision_id not in self._ran:
            return None
        since, mine = self._ran[decision_id]
        later = [deed for when, deed in self._late if when > since and _comes_before(deed, mine)]
        used = Writers(later).behind(mine.touched, mine.reach)
        if used:
            return next(iter(used.values()))
        doubts = [doubt(mine.reach, deed) for deed in later] if unproven else []
        return next(filter(None, doubts), None)

    def behind(self, touched: Touched, reach: Reach) -> Mapping[DecisionId, str]:
        """Those whose output a step is known to have used, each with the reason."""
        changed = {
            resource: (EVERYTHING,) if footprint.whole else tuple(sorted(footprint.paths))
            for resource, footprint in touched.items()
        }
        found: dict[DecisionId, str] = {}
        for places, why in (
            (reach.reads or {}, "reads {}"),
            (changed, "changes {} after it"),
            (reach.targets, "writes {} after it"),
        ):
            for resource, path in _each(places):
                for decision_id in self._who(resource, path):
                    found.setdefault(decision_id, why.format(_named(resource, path)))
        return found

    def _who(self, resource: str, path: str) -> Iterable[DecisionId]:
        trail = self._trails.get(resource)
        if trail is None:
            return ()
        return trail.everybody if path == EVERYTHING else trail.near(path)


UNDECLARED = "may read anything: no `reads` is declared"
HIDDEN = "reads what no checkpoint shows"


def doubt(reach: Reach, earlier: StepWrites) -> str | None:
    """Why nothing proves that a step which looks so far did not use what an earlier one did."""
    if reach.reads is None and earlier.left_something:
        return UNDECLARED
    return HIDDEN if reach.reads_hidden and earlier.reach.writes_hidden else None


def _comes_before(deed: StepWrites, other: StepWrites) -> bool:
    """In the order of the steps, whichever ran first."""
    if deed.step_index is None or other.step_index is None:
        return False
    return deed.step_index < other.step_index


def _both(one: Reads, two: Reads) -> Reads:
    names = sorted({*one, *two})
    return {name: (*one.get(name, ()), *two.get(name, ())) for name in names}


def _each(places: Reads) -> Iterator[tuple[str, str]]:
    for resource, paths in places.items():
        for path in paths:
            yield resource, path


def parents(path: str) -> Iterator[str]:
    while "/" in path:
        path = path.rpartition("/")[0]
        yield path


def _named(resource: str, path: str) -> str:
    return resource if path == EVERYTHING else f"{resource}:{path}"
