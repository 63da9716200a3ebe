"""A plan's timeline, and the group that a person names, read from the record."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from cleveragents.domain.checkpoint import CheckpointGroup
from cleveragents.domain.checkpoint_lookup import CheckpointNames
from cleveragents.domain.decision import ToolCall
from cleveragents.domain.ids import PlanId

if TYPE_CHECKING:
    from cleveragents.application.ports.runtime import UnitOfWork
    from cleveragents.domain.timeline import Timeline


def timeline_of(uow: "UnitOfWork", plan_id: PlanId, calls: Sequence[ToolCall] = ()) -> "Timeline":
    """Without the plan's `calls` no row says what changed, which names do not need."""
    from cleveragents.domain.timeline import timeline  # noqa: PLC0415 - an id needs none

    return timeline(uow.plans.get(plan_id), uow.checkpoints.of_plan(plan_id), calls)


def named_group(uow: "UnitOfWork", plan_id: PlanId, wanted: str) -> CheckpointGroup:
    """All groups are read only where neither an id nor a whole label was typed."""
    names = CheckpointNames(
        plan_id,
        line=lambda: timeline_of(uow, plan_id),
        owner_of=uow.checkpoints.owner_of,
        pruned=uow.checkpoints.pruned,
    )
    return names.find(wanted, uow.checkpoints.called(plan_id, wanted.strip()))
