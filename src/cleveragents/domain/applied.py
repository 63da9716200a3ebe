"""What is on record of an apply that can be taken back: where the project stands, and until when.

The plan itself stays applied: what it has done is over. Whether its result is in the project is a
fact of its own, which `undo` and `redo` change (ADR 0098).
"""

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum

from msgspec import Struct, field
from msgspec.structs import replace

from cleveragents.domain.ids import PlanId
from cleveragents.domain.resource import OwnState


class ApplySide(StrEnum):
    """Of an apply: what the project was before it, and what it was made."""

    BEFORE = "before"
    AFTER = "after"

    @property
    def other(self) -> "ApplySide":
        return ApplySide.AFTER if self is ApplySide.BEFORE else ApplySide.BEFORE


Ways = Mapping[str, OwnState]
"""By resource, the token of the way that was taken to where it stands."""


class AppliedChange(Struct, frozen=True, kw_only=True):
    """`heading` is where an undo or redo leads that has begun, over `under_way`; until it is over,
    the project may be on neither side. `freed`: what it could be taken back by is not kept any
    more, or is being removed."""

    plan_id: PlanId
    side: ApplySide
    until: datetime
    changed_at: datetime
    ways: Ways = field(default_factory=dict[str, OwnState])
    heading: ApplySide | None = None
    under_way: Ways = field(default_factory=dict[str, OwnState])
    freed: bool = False

    def can_move(self, now: datetime) -> bool:
        """What has begun is finished, however late."""
        return not self.freed and (self.heading is not None or now < self.until)

    def is_due(self, now: datetime) -> bool:
        """Whether what is kept for it can go, or was already on its way when a kill came."""
        return self.heading is None and (self.freed or now >= self.until)

    def begin(self, ways: Ways) -> "AppliedChange":
        """Intent before effect."""
        return replace(self, heading=self.side.other, under_way=ways)

    def withdrawn(self) -> "AppliedChange":
        return replace(self, heading=None, under_way={})

    def arrived(self, now: datetime) -> "AppliedChange":
        if self.heading is None:
            return self
        moved = replace(self, side=self.heading, ways=self.under_way, changed_at=now)
        return moved.withdrawn()

    def free(self) -> "AppliedChange":
        return replace(self, freed=True)
