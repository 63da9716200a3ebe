"""What a plan still has on this machine, and what would be lost with it."""

from collections.abc import Mapping
from datetime import datetime, timedelta

from msgspec import Struct, field

from cleveragents.domain.plan import Plan, State


class PlanHoldings(Struct, frozen=True, kw_only=True):
    """`project` is where the plan belongs; `sandboxes` says by resource where each is.

    `lost` has by resource the files of a sandbox that exist nowhere else; `unknown` why a sandbox
    could not be compared, so that all of it may be lost. `owner` is who works on the plan now.
    """

    plan: Plan
    project: str | None = None
    sandboxes: Mapping[str, str] = field(default_factory=dict[str, str])
    lost: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    unknown: Mapping[str, str] = field(default_factory=dict[str, str])
    owner: str | None = None

    @property
    def lost_files(self) -> int:
        return sum(len(paths) for paths in self.lost.values())

    @property
    def is_precious(self) -> bool:
        """Whether something goes with it that exists nowhere else, as far as is known."""
        return bool(self.lost_files or self.unknown)


class FolderContents(Struct, frozen=True, kw_only=True):
    """`ours` by path with the bytes that each takes; `strange` is what we have not made, and
    stays. `settings` are the files that a person has written settings to."""

    location: str
    ours: Mapping[str, int]
    strange: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()

    @property
    def bytes(self) -> int:
        return sum(self.ours.values())


def last_touched(plan: Plan, last_group: datetime | None) -> datetime:
    """When something last happened to it; of a plan that is over, when it ended."""
    if plan.is_final and plan.finished_at is not None:
        return plan.finished_at
    known = (plan.created_at, plan.started_at, plan.finished_at, last_group)
    return max(moment for moment in known if moment is not None)


def is_due(
    plan: Plan, touched: datetime, now: datetime, age: timedelta, *, unapplied: bool
) -> bool:
    """Whether a clean-up of what is older than `age` takes this plan.

    Children go with the plan at the top. One that is not over only goes if that was asked for, and
    never in the middle of an apply, which only another apply can finish.
    """
    if plan.child_of is not None or now - touched < age:
        return False
    if plan.is_final:
        return True
    return unapplied and plan.state is not State.PROCESSING
