"""What is asked of a rollback: where to, and what a person has to agree to.

Which plans have no way back, such as an applied one: `_guarded` in `rollback_service.py`.
"""

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from msgspec import Struct

from cleveragents.domain.actor_protocol import caveats
from cleveragents.domain.checkpoint import CheckpointGroup, RollbackPreview
from cleveragents.domain.effects import EffectReport
from cleveragents.domain.ids import GroupId
from cleveragents.domain.plan import Plan
from cleveragents.domain.selection import Selection

if TYPE_CHECKING:
    from cleveragents.application.services.checkpoints.held import HeldPlan


class RollbackTarget(Struct, frozen=True, kw_only=True):
    """Where a plan shall go back to; with `only`, just these files, and the plan itself stays.

    `head` is the group that it stands on. With `keep`, what others have changed in place since then
    stays as it is."""

    target: CheckpointGroup
    head: CheckpointGroup | None = None
    only: Selection | None = None
    keep: bool = False

    def caveats(self, plan: Plan) -> Sequence[str]:
        """What the actor will not remember as it is in the files."""
        return caveats(plan.action, self.target.actor_state) if self.only is None else ()

    @property
    def label(self) -> str:
        if self.only is None:
            return f"before rollback to {self.target.label}"
        return f"before restoring {', '.join(self.only.names)} from {self.target.label}"


class RollbackQuestion:
    """What a person is asked before anything changes; looking ahead costs only whoever looks."""

    def __init__(
        self,
        target: CheckpointGroup,
        look: Callable[[], RollbackPreview],
        foresee: Callable[[], EffectReport],
        others: Callable[[], tuple[str, ...]] = tuple,
        *,
        in_place: bool = False,
    ) -> None:
        self.target = target
        self.in_place = in_place
        self._others = others
        self._look = look
        self._foresee = foresee

    @cached_property
    def effects(self) -> EffectReport:
        """What would become of effects outside the sandboxes."""
        return self._foresee()

    @cached_property
    def others(self) -> tuple[str, ...]:
        """What others have changed in place since the last group, and would be taken back too."""
        return self._others()

    @cached_property
    def preview(self) -> RollbackPreview:
        return self._look()


Confirm = Callable[[RollbackQuestion], bool]
Choose = Callable[["HeldPlan", GroupId | None], str]
"""Where to, said by whoever knows only then; with the target of a rollback that was cut off, and
was finished just now."""
