"""The needs of the use cases for what is on record, one repository per kind of row."""

from collections.abc import Collection, Mapping, Sequence, Set
from contextlib import AbstractContextManager
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

from cleveragents.domain.actor_protocol import Message
from cleveragents.domain.checkpoint import CheckpointGroup, PrunedCheckpoint
from cleveragents.domain.correction import Correction, Supersession, Unchecked
from cleveragents.domain.decision import Decision, Dependency, Fork, Position, ToolCall
from cleveragents.domain.effects import Effect
from cleveragents.domain.ids import (
    CheckpointId,
    CorrectionId,
    DecisionId,
    EffectId,
    GroupId,
    PlanId,
    ResourceId,
)
from cleveragents.domain.places import PlacedPlan
from cleveragents.domain.plan import Plan
from cleveragents.domain.resource import PlanResource
from cleveragents.domain.retention import GroupOutline, StateCounts

if TYPE_CHECKING:  # few look at these
    from cleveragents.domain.applied import AppliedChange


class Leases(Protocol):
    def held(self, plan_id: PlanId) -> AbstractContextManager[None]:
        """The lock is ours: until the end of the block only this process writes the plan's records,
        and whoever could before cannot any more."""
        ...


class PlanRepository(Protocol):
    def add(self, plan: Plan) -> None: ...
    def save(self, plan: Plan) -> None: ...
    def give_action(self, plan: Plan) -> None:
        """Its action is another one from now on, and it counts as the plan that was made last.

        Raises PlanNotFoundError.
        """
        ...

    def refuse_overtaken(self, plan_id: PlanId) -> None:
        """Raise PlanOvertakenError if another process has taken the plan over: to be asked before
        files are changed for which no record is written first."""
        ...

    def get(self, plan_id: PlanId) -> Plan:
        """Raises PlanNotFoundError."""
        ...

    def next_number(self, plan: Plan) -> int:
        """The one after the last that a plan of this action has had, gone ones too; it is given
        out, and to no other plan again."""
        ...

    def starting_with(self, prefix: str) -> Sequence[PlanId]:
        """In their order; the prefix is in upper case."""
        ...

    def ending_with(self, ending: str) -> Sequence[PlanId]:
        """The same by the other end."""
        ...

    def list(self) -> Sequence[Plan]:
        """All plans, the last one made first, whatever the clock said then."""
        ...

    def places(self) -> Sequence[PlacedPlan]:
        """Those of `list` that are no child plans, at a fraction of its cost."""
        ...

    def of_action(self, name: str, number: int | None = None) -> Sequence[PlacedPlan]:
        """Those of `places` that were made of an action of this name, or the one of this number."""
        ...


class ResourceRepository(Protocol):
    def add(self, *resources: PlanResource) -> None: ...
    def save(self, *resources: PlanResource) -> None: ...
    def of_plan(self, plan_id: PlanId) -> Sequence[PlanResource]: ...


class DecisionRepository(Protocol):
    def add(self, decision: Decision) -> None: ...
    def get(self, decision_id: DecisionId) -> Decision:
        """Raises DecisionNotFoundError."""
        ...

    def starting_with(self, prefix: str) -> Sequence[DecisionId]:
        """Of all plans, in their order; the prefix is in upper case."""
        ...

    def ending_with(self, ending: str) -> Sequence[DecisionId]:
        """The same by the other end."""
        ...

    def of_plan(self, plan_id: PlanId) -> Sequence[Decision]:
        """All of them, superseded ones too, in the order they were made."""
        ...

    def mark_superseded(self, plan_id: PlanId, superseded: Collection[DecisionId]) -> None:
        """Exactly these are superseded from now on, and no others of the plan."""
        ...

    def depend(self, plan_id: PlanId, dependencies: Collection[Dependency]) -> None:
        """What is known already stays as it is."""
        ...

    def dependencies(self, plan_id: PlanId) -> Sequence[Dependency]: ...
    def dependents(self, decision_id: DecisionId) -> Sequence[Dependency]:
        """Those of what was built on this decision."""
        ...


class ToolCallRepository(Protocol):
    def add(self, call: ToolCall) -> None: ...
    def of_plan(self, plan_id: PlanId) -> Sequence[ToolCall]: ...
    def of_decision(self, plan_id: PlanId, decision_id: DecisionId) -> Sequence[ToolCall]:
        """Those of one decision, in the order of `of_plan`."""
        ...

    def mark_undone(self, plan_id: PlanId, undone: Collection[str]) -> None:
        """Exactly these are undone from now on, and no others of the plan."""
        ...


class CheckpointRepository(Protocol):
    def add(self, group: CheckpointGroup) -> None:
        """Groups, their checkpoints and resource states are written whole, or not at all."""
        ...

    def get(self, group_id: GroupId) -> CheckpointGroup: ...
    def of_plan(self, plan_id: PlanId) -> Sequence[CheckpointGroup]:
        """Oldest first."""
        ...

    def positions(self, plan_id: PlanId) -> Mapping[GroupId, Position]:
        """Where each group of the plan is in its history."""
        ...

    def of_decision(self, plan_id: PlanId, decision_id: DecisionId) -> Sequence[CheckpointGroup]:
        """Those of one decision, oldest first: the first was stored together with it."""
        ...

    def called(self, plan_id: PlanId, name: str) -> Sequence[CheckpointGroup]:
        """Those that could be meant by it, oldest first: whose label it is, or whose id, or that of
        one of whose checkpoints, begins or ends with it. Labels as they are, ids in any case."""
        ...

    def has_own_label(self, plan_id: PlanId, label: str) -> bool:
        """Whether a group has it from a person."""
        ...

    def holding(self, checkpoint_id: CheckpointId) -> CheckpointGroup:
        """The group that this checkpoint belongs to."""
        ...

    def owner_of(self, name: str) -> PlanId | None:
        """The plan that the checkpoint or group of exactly this id belongs to."""
        ...

    def mark_superseded(self, plan_id: PlanId, superseded: Collection[GroupId]) -> None: ...
    def delete(self, plan_id: PlanId, removed: Mapping[GroupId, str], now: datetime) -> None:
        """Groups of the plan by id, each with the reason, which is remembered beside the id."""
        ...

    def pruned(self, plan_id: PlanId, name: str) -> PrunedCheckpoint | None:
        """What is remembered of a deleted group by its id, one of its checkpoints, or label."""
        ...

    def count(self, plan_id: PlanId) -> int: ...
    def sizes(self) -> Mapping[PlanId, int]:
        """By plan, the bytes that its checkpoints have cost."""
        ...

    def snapshots(self, plan_id: PlanId) -> Mapping[ResourceId, Set[str]]:
        """By resource, those that a group of the plan needs, to go back to it or to a boundary."""
        ...

    def state_counts(self, plan_id: PlanId) -> StateCounts: ...
    def outlines(self, plan_id: PlanId, *, counts_only: bool = False) -> Sequence[GroupOutline]:
        """Oldest first, like `of_plan`, at a fraction of its cost.

        For a rule that only counts, without their sizes and times.
        """
        ...


class AppliedRepository(Protocol):
    """What is kept of applies, one row a plan."""

    def put(self, change: "AppliedChange") -> None:
        """Add it, or replace what is known of it."""
        ...

    def find(self, plan_id: PlanId) -> "AppliedChange | None": ...
    def kept(self) -> "Sequence[AppliedChange]":
        """Those of which something is kept."""
        ...


class EffectRepository(Protocol):
    def put(self, effect: Effect) -> None:
        """Add it, or replace what is known of it."""
        ...

    def remove(self, effect: Effect) -> None: ...
    def get(self, effect_id: EffectId) -> Effect:
        """One that is known to be there."""
        ...

    def of_plan(self, plan_id: PlanId) -> Sequence[Effect]:
        """All of them, in the order they began."""
        ...


class TimelineRepository(Protocol):
    def add(self, plan_id: PlanId, fork: Fork) -> None: ...
    def of_plan(self, plan_id: PlanId) -> Sequence[Fork]: ...


class CorrectionRepository(Protocol):
    def add(self, correction: Correction) -> None: ...
    def save(self, correction: Correction) -> None: ...
    def get(self, correction_id: CorrectionId) -> Correction:
        """Raises CorrectionNotFoundError."""
        ...

    def with_part(self, part: str) -> Sequence[Correction]:
        """Those whose id begins or ends so; the part is in upper case."""
        ...

    def of_plan(self, plan_id: PlanId) -> Sequence[Correction]:
        """Oldest first, whatever became of them."""
        ...

    def supersede(self, plan_id: PlanId, items: Collection[Supersession]) -> None: ...
    def supersessions(self, plan_id: PlanId) -> Sequence[Supersession]: ...
    def let_stand(self, plan_id: PlanId, items: Collection[Unchecked]) -> None: ...
    def unchecked(self, plan_id: PlanId) -> Sequence[Unchecked]:
        """Every mark that was made, oldest first, whether it counts now or not."""
        ...


class MessageRepository(Protocol):
    """What actors remember; a state names the last message, which names the one before it."""

    def add(self, plan_id: PlanId, messages: Collection[Message]) -> None:
        """What is there already stays as it is."""
        ...

    def chain(self, plan_id: PlanId, head: str) -> Sequence[Message]:
        """Oldest first, up to this one; empty if it is not there."""
        ...

    def keep_only(self, plan_id: PlanId, heads: Collection[str]) -> int:
        """Remove what does not lead to one of these; gives back how many went."""
        ...
