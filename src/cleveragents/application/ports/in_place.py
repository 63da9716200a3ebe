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


class StepProcesses(Protocol):
    def refuse_running(self, resource: PlanResource) -> None:
        """Raise StillRunningError if what a step has started in the user's own tree still runs."""
        ...

    def end_running(self, plan_id: PlanId) -> None:
        """End all that steps of the plan have started, wherever it has gone."""
        ...
