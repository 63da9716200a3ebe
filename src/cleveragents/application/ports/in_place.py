"""What a way back in the user's own tree needs, beside what every way back does."""

from collections.abc import Collection
from typing import TYPE_CHECKING, Protocol

from cleveragents.domain.ids import PlanId
from cleveragents.domain.in_place import Sparing
from cleveragents.domain.resource import PlanResource

if TYPE_CHECKING:
    from cleveragents.application.ports.runtime import Restored


class SparingRestores(Protocol):
    def restore_sparing(
        self, resource: PlanResource, ref: str, sparing: Sparing, paths: Collection[str] = ()
    ) -> "Restored":
        """Make the tree equal to the snapshot, or these paths of it, but for what somebody else has
        changed: that is left as it is, and named. Idempotent."""
        ...

    def refuse_in_use(
        self, resource: PlanResource, ref: str, last: str | None, *, keep: bool
    ) -> None:
        """Raise DatabaseInUseError if going to the snapshot would write a database that somebody
        has open for writing. With `keep`, what others changed since the snapshot `last` would not
        be written."""
        ...


class PlaceNotes(Protocol):
    def place_of(self, location: str) -> str:
        """The place that is meant, whatever links lead there."""
        ...

    def occupant(self, place: str) -> str | None:
        """The plan that a note in the tree names as the one that works there in place."""
        ...


class StepProcesses(Protocol):
    def refuse_running(self, resource: PlanResource) -> None:
        """Raise StillRunningError if what a step has started in the user's own tree still runs."""
        ...

    def end_running(self, plan_id: PlanId) -> None:
        """End all that steps of the plan have started, wherever it has gone."""
        ...
