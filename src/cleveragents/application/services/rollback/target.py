"""What is asked of a rollback: where to, and what a person has to agree to."""

from collections.abc import Callable, Sequence
from functools import cached_property

from msgspec import Struct

from cleveragents.domain.actor_protocol import caveats
from cleveragents.domain.checkpoint import CheckpointGroup, RollbackPreview
from cleveragents.domain.plan import Plan
from cleveragents.domain.selection import Selection


class RollbackTarget(Struct, frozen=True, kw_only=True):
    """Where a plan shall go back to; with `only`, just these files, and the plan itself stays.

    `head` is the group that it stands on."""

    target: CheckpointGroup
    head: CheckpointGroup | None = None
    wanted: str = ""
    only: Selection | None = None

    @property
    def checkpoint_id(self) -> str:
        """As it was asked for, if that was by an id."""
        named = self.wanted.strip().upper()
        return named if named in self.target.names() else self.target.head

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

    def __init__(self, target: CheckpointGroup, look: Callable[[], RollbackPreview]) -> None:
        self.target = target
        self._look = look

    @cached_property
    def preview(self) -> RollbackPreview:
        return self._look()


Confirm = Callable[[RollbackQuestion], bool]
