"""Which of many snapshots of one resource are damaged, found in one walk through its history.

From one snapshot to the next only a few places (paths, or pages) change. The walk goes from the
oldest to the newest and moves the sum over the state by these; what a new version of a place needs
is gathered, and read once for all. Only then is it told which snapshots have a damaged place: those
from the version that needs what is damaged to the next version of that place. What lies between two
snapshots that are asked for, and is in neither, is not read.
"""

from collections.abc import Callable, Collection, Container, Iterable, Mapping
from typing import Generic, TypeVar

from msgspec import Struct

from cleveragents.application.ports.runtime import Expected
from cleveragents.domain.errors import SnapshotDamagedError

Damages = dict[Expected, SnapshotDamagedError]
"""Snapshots that could not be restored whole, each with one reason."""

Place = TypeVar("Place")
Need = TypeVar("Need")
Target = TypeVar("Target")


class ProofStage(Struct, Generic[Place, Need], frozen=True, kw_only=True):
    """One snapshot on the way. `wrong` if its hash is not the one that it should be; `changed` are
    the places that differ from the stage before, each with what it needs from here on."""

    snapshot: Expected
    wrong: SnapshotDamagedError | None
    changed: Mapping[Place, Need | None]


def looked_up(
    snapshots: Collection[Expected], find: Callable[[str], Target]
) -> tuple[Mapping[Expected, Target], Damages]:
    """What there is of these by `find`, and why there is nothing of the others."""
    there: dict[Expected, Target] = {}
    missing: Damages = {}
    for snapshot in snapshots:
        try:
            there[snapshot] = find(snapshot.ref)
        except SnapshotDamagedError as error:
            missing[snapshot] = error
    return there, missing


def needs_of(stages: Iterable[ProofStage[Place, Need]]) -> Mapping[Need, Place]:
    """All that is needed, each with the first place that needs it."""
    found: dict[Need, Place] = {}
    for stage in stages:
        for place, need in stage.changed.items():
            if need is not None:
                found.setdefault(need, place)
    return found


def told(
    stages: Iterable[ProofStage[Place, Need]],
    broken: Container[Need],
    why: Callable[[Place, Need], SnapshotDamagedError | None],
) -> Damages:
    """The damaged snapshots, each with one reason: `broken` is what was found to be no more."""
    found: Damages = {}
    bad: dict[Place, Need] = {}
    reasons: dict[tuple[Place, Need], SnapshotDamagedError | None] = {}
    for stage in stages:
        for place, need in stage.changed.items():
            bad.pop(place, None)
            if need is not None and need in broken:
                bad[place] = need
        if stage.wrong is not None:
            found[stage.snapshot] = stage.wrong
        elif bad:
            first = next(iter(bad.items()))
            if first not in reasons:
                reasons[first] = why(*first)
            if (reason := reasons[first]) is not None:
                found[stage.snapshot] = reason
    return found


def refusal(check: Callable[[], object]) -> SnapshotDamagedError | None:
    """What it raises."""
    try:
        check()
    except SnapshotDamagedError as error:
        return error
    return None


def mended(name: str) -> str:
    return f"what was stored of {name} was damaged, and is stored anew from the sandbox"
