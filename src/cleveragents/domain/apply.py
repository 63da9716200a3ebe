"""What an apply is asked for, and what of it is prepared before anything real changes."""

from collections.abc import Collection

from msgspec import Struct

from cleveragents.domain.changes import ResourceDiff
from cleveragents.domain.conflicts import Side
from cleveragents.domain.ids import ResourceId
from cleveragents.domain.resource import OwnState


class ApplyOptions(Struct, frozen=True, kw_only=True):
    """How the result reaches the project: `branch` names a new branch, `commit` False leaves it
    in the working tree. `with_ignored` are paths of which what was changed comes along although
    it is ignored. `side` is taken where commits changed the same lines as the plan."""

    message: str
    branch: str | None = None
    commit: bool = True
    with_ignored: tuple[str, ...] = ()
    side: Side | None = None


class PreparedApply(Struct, frozen=True, kw_only=True):
    """A merge that was computed and checked, and has changed nothing real yet.

    `token` is opaque and durable: `carry_out`, `revert` and `finish` can be repeated with it
    after a crash. `snapshots` are needed until it is settled. `alone` are paths to which no other
    resource of the plan may bring anything. `target` says in words where it would go. `ignored` are
    those of the wanted ignored paths of which there is something to bring.
    """

    resource_id: ResourceId
    token: OwnState
    diff: ResourceDiff
    snapshots: tuple[str, ...] = ()
    alone: tuple[str, ...] = ()
    target: str = ""
    ignored: tuple[str, ...] = ()


def trespassers(place: str, diff: ResourceDiff, alone: Collection[str]) -> list[str]:
    """Which of the changes at `place` are at one of these paths, or take the place of a folder
    above one."""
    paths = [f"{place}/{file.path}" for file in diff.files]
    return [path for path in paths if any(f"{one}/".startswith(f"{path}/") for one in alone)]


def intended(resource_id: ResourceId, token: OwnState) -> PreparedApply:
    """What was prepared, told from the token that was stored; nobody is shown its diff again."""
    return PreparedApply(resource_id=resource_id, token=token, diff=ResourceDiff())
