"""The care that a plan's sandboxes get before anything else is done: who sees to what, in order."""

from typing import TYPE_CHECKING

from msgspec import Struct

from cleveragents.application.services.checkpoints.held import HeldPlan
from cleveragents.application.services.sandboxes.after_restart import AfterRestart
from cleveragents.application.services.sandboxes.project_care import ProjectCare
from cleveragents.application.services.sandboxes.rebuilding import SandboxRebuilding

if TYPE_CHECKING:  # in place only
    from cleveragents.application.services.execute.others import OthersSteps


class SandboxCare(Struct, frozen=True, kw_only=True):
    """Who sees to it that there is something to work on."""

    projects: ProjectCare
    rebuilding: SandboxRebuilding
    restarts: AfterRestart
    others: "OthersSteps"

    def attend(self, held: HeldPlan, *, rebuild: bool = False) -> None:
        """Projects that were moved are followed, and sandboxes made again that were half made;
        with `rebuild` also those that are gone."""
        self.projects.attend(held.resources)
        if rebuild:
            self.rebuilding.rebuild(held)
        else:
            self.rebuilding.finish(held)

    def mended(self, held: HeldPlan, *, rebuild: bool = False) -> HeldPlan:
        """All that has to be done for a plan that no rollback waits to be finished for."""
        self.attend(held, rebuild=rebuild)
        return self.restarts.mend(held)
