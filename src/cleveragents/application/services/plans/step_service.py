"""One step of a plan: what was asked for, what it said, and what it changed.

The difference is that of two snapshots: it needs no sandbox, and the present may be anything.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from cleveragents.application.services.checkpoints.naming import timeline_of
from cleveragents.domain.changes import ResourceDiff
from cleveragents.domain.checkpoint import CheckpointGroup
from cleveragents.domain.decision import Decision, ToolCall
from cleveragents.domain.errors import SnapshotDamagedError
from cleveragents.domain.plan import Plan, State
from cleveragents.domain.resource import PlanResource
from cleveragents.domain.resource_kinds import kind_of

if TYPE_CHECKING:
    from cleveragents.application.ports.runtime import UnitOfWork, UnitOfWorkFactory
    from cleveragents.application.ports.sandboxes import SnapshotDiffs
    from cleveragents.domain.ids import DecisionId, GroupId, PlanId

_MOST_BYTES = 32 * 1024 * 1024


class ShownStep(Struct, frozen=True, kw_only=True):
    """`before` and `after` are the groups whose difference it is; `notes` say what is missing."""

    plan: Plan
    decision: Decision
    calls: tuple[ToolCall, ...]
    before: CheckpointGroup | None
    after: CheckpointGroup | None
    diffs: dict[str, ResourceDiff]
    notes: tuple[str, ...] = ()


class StepService:
    def __init__(self, unit_of_work: "UnitOfWorkFactory", snapshots: "SnapshotDiffs") -> None:
        self._unit_of_work = unit_of_work
        self._snapshots = snapshots

    def show(self, decision_id: "DecisionId") -> ShownStep:
        with self._unit_of_work.reading() as uow:
            decision = uow.decisions.get(decision_id)
            plan = uow.plans.get(decision.plan_id)
            calls = tuple(uow.tool_calls.of_decision(plan.plan_id, decision_id))
            before, after = _around(uow, decision)
            resources = uow.resources.of_plan(plan.plan_id)
        diffs: dict[str, ResourceDiff] = {}
        notes: list[str] = []
        if before is None or after is None:
            notes.append("what it changed is not known any more: its checkpoints are pruned")
        else:
            diffs, notes = self._diffs(plan, resources, before, after)
        return ShownStep(
            plan=plan,
            decision=decision,
            calls=calls,
            before=before,
            after=after,
            diffs=diffs,
            notes=tuple(notes),
        )

    def tables(
        self, plan_id: "PlanId", old: "GroupId", new: "GroupId"
    ) -> Mapping[str, ResourceDiff]:
        """What differs in the databases, by the name of each, from one group to the other.

        A large one is left out: all of its rows would have to be read.
        """
        with self._unit_of_work.reading() as uow:
            plan = uow.plans.get(plan_id)
            one, two = uow.checkpoints.get(old), uow.checkpoints.get(new)
            groups = uow.checkpoints.of_plan(plan_id)
            resources = [
                resource
                for resource in uow.resources.of_plan(plan_id)
                if kind_of(resource.type).is_database and _stored(groups, resource) <= _MOST_BYTES
            ]
        diffs, _ = self._diffs(plan, resources, one, two)
        return {name: found for name, found in diffs.items() if found.files}

    def _diffs(
        self,
        plan: Plan,
        resources: Sequence[PlanResource],
        old: CheckpointGroup,
        new: CheckpointGroup,
    ) -> tuple[dict[str, ResourceDiff], list[str]]:
        diffs: dict[str, ResourceDiff] = {}
        notes: list[str] = []
        for resource in resources:
            one, two = old.state_of(resource.resource_id), new.state_of(resource.resource_id)
            if one is None or two is None:
                continue
            try:
                diffs[resource.name] = self._snapshots.diff_between(
                    resource, one.snapshot, two.snapshot
                )
            except SnapshotDamagedError as error:
                notes.append(_missing(plan, resource, error))
        return diffs, list(dict.fromkeys(notes))


def _missing(plan: Plan, resource: PlanResource, error: SnapshotDamagedError) -> str:
    """Applied and discarded plans have no snapshots any more, and nothing is wrong with that."""
    if plan.state is State.APPLIED:
        return (
            "its lines are not kept, as the plan is applied;"
            f" those of all steps together: agents plan diff {plan.plan_id}"
        )
    if plan.state is State.CANCELLED:
        return "its lines are not kept, as the plan is discarded"
    return f"what it changed in `{resource.name}`: {error.message}"


def _stored(groups: Iterable[CheckpointGroup], resource: PlanResource) -> int:
    return sum(
        item.size_bytes
        for group in groups
        for item in group.checkpoints
        if item.resource_id == resource.resource_id
    )


def _around(
    uow: "UnitOfWork", decision: Decision
) -> tuple[CheckpointGroup | None, CheckpointGroup | None]:
    """The state that the decision was made in, and the last one that the step itself has left."""
    own = uow.checkpoints.of_decision(decision.plan_id, decision.decision_id)
    if not own:
        return None, None
    after = own[-1]
    if decision.step_index is not None and not decision.superseded:
        row = timeline_of(uow, decision.plan_id).numbered(decision.step_index + 1)
        # A step that wrote although no trigger is on has left no group: the next one holds it.
        after = row.group if row is not None and row.group is not None else after
    return own[0], after
