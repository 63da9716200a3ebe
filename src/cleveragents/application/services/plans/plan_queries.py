"""What people ask about a plan; nothing here changes anything."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace

from cleveragents.application.services.execute.run_state import (
    done_steps,
    failed_steps,
    unchecked_of,
)
from cleveragents.application.services.plans.plan_lookup import PlanFinder, find_decision
from cleveragents.application.services.rollback.unchecked_steps import (
    UncheckedStep,
    unchecked_steps,
)
from cleveragents.application.services.subplans.queries import (
    ChildStatus,
    children_of_plan,
    with_children,
)
from cleveragents.domain.action import Step
from cleveragents.domain.checkpoint import CheckpointGroup
from cleveragents.domain.correction import Correction
from cleveragents.domain.decision import (
    Decision,
    Dependency,
    ToolCall,
    ToolCallStatus,
    is_live,
    lineage,
)
from cleveragents.domain.effects import CUT_OFF, Effect, EffectState
from cleveragents.domain.ids import DecisionId, EffectId, PlanId
from cleveragents.domain.places import latest_of
from cleveragents.domain.plan import Phase, Plan, State
from cleveragents.domain.plan_filter import EVERY_PLAN, PlanFilter
from cleveragents.domain.resource import PlanResource, SandboxStatus
from cleveragents.domain.subplan import ChildPlan
from cleveragents.domain.timeline import Timeline, TimelineRow, timeline
from cleveragents.domain.timeline_use import steps_ahead

if TYPE_CHECKING:
    from cleveragents.application.ports.locks import PlanLocks
    from cleveragents.application.ports.runtime import (
        Clock,
        UnitOfWork,
        UnitOfWorkFactory,
        Whereabouts,
    )
    from cleveragents.application.ports.sandboxes import SandboxPlaces
    from cleveragents.domain.applied import AppliedChange


class StepProgress(Struct, frozen=True, kw_only=True):
    step: str
    status: str


class PlanList(Struct, frozen=True, kw_only=True):
    """`projects` says where each belongs; `latest` is the one that is called so here, if any, and
    `here_at` its place. `sizes` is what the checkpoints of each cost."""

    plans: tuple[Plan, ...]
    projects: Mapping[PlanId, str | None]
    latest: PlanId | None
    now: datetime
    here_at: str | None = None
    sizes: Mapping[PlanId, int] = field(default_factory=dict[PlanId, int])
    abandoned: frozenset[PlanId] = frozenset()

    def project(self, plan: Plan) -> str | None:
        return self.projects[plan.child_of.root_id if plan.child_of else plan.plan_id]

    @property
    def here(self) -> "PlanList":
        """Only those of the place that has the latest."""
        place = self.projects[self.latest] if self.latest else None
        kept = [plan for plan in self.plans if place and self.project(plan) == place]
        return replace(self, plans=tuple(kept))


class PlanStatus(Struct, frozen=True, kw_only=True):
    """`owner` is who works on the plan now; None although it is `processing` means it died."""

    plan: Plan
    resources: tuple[PlanResource, ...]
    progress: tuple[StepProgress, ...]
    tool_calls: int
    files_modified: int
    checkpoints: int
    elapsed: timedelta
    now: datetime
    owner: str | None
    children: tuple[ChildStatus, ...] = ()
    unchecked: tuple[UncheckedStep, ...] = ()
    applied: "AppliedChange | None" = None

    @property
    def abandoned(self) -> bool:
        return self.plan.state is State.PROCESSING and self.owner is None


class PlanTimeline(Struct, frozen=True, kw_only=True):
    """A plan's history in rows, with where it belongs and how it stands.

    `brief` are the rows of a log, if that was asked for."""

    plan: Plan
    line: Timeline
    groups: tuple[CheckpointGroup, ...]
    resources: tuple[PlanResource, ...]
    now: datetime
    abandoned: bool
    brief: tuple[TimelineRow, ...] | None = None
    applied: "AppliedChange | None" = None


class DecisionHistory(Struct, frozen=True, kw_only=True):
    """All decisions of a plan in order, the group each can be gone back to, and the same of every
    child plan."""

    plan: Plan
    decisions: tuple[Decision, ...]
    groups: dict[DecisionId, CheckpointGroup]
    children: tuple[tuple[ChildPlan, "DecisionHistory"], ...] = ()
    unchecked: frozenset[DecisionId] = frozenset()


class ExplainedDecision(Struct, frozen=True, kw_only=True):
    """`corrections` are those that were made of it or took its place, or that made it.

    `unchecked` is why its result is not known to hold, if a person let it stand all the same.
    """

    decision: Decision
    group: CheckpointGroup | None
    calls: tuple[ToolCall, ...]
    depends_on: tuple[Dependency, ...] = ()
    used_by: tuple[Dependency, ...] = ()
    corrections: tuple[Correction, ...] = ()
    unchecked: str | None = None
    names: Mapping[DecisionId, str] = field(default_factory=dict[DecisionId, str])


class PlanRecord(Struct, frozen=True, kw_only=True):
    """A plan and every tool call it made; of one that is looked at for failures also its children,
    which may have failed instead of it."""

    plan: Plan
    calls: tuple[ToolCall, ...]
    children: tuple[ChildStatus, ...] = ()


class PlanEffects(Struct, frozen=True, kw_only=True):
    """The ledger of a plan; `undone` are those whose step a rollback has taken back."""

    plan: Plan
    effects: tuple[Effect, ...]
    undone: frozenset[EffectId]


class PlanQueries(PlanFinder):
    def __init__(
        self,
        unit_of_work: "UnitOfWorkFactory",
        locks: "PlanLocks",
        clock: "Clock",
        whereabouts: "Whereabouts",
        places: "SandboxPlaces",
    ) -> None:
        super().__init__(unit_of_work, whereabouts)
        self._locks = locks
        self._clock = clock
        self._places = places

    def list(self, *, children: bool = False, only: PlanFilter = EVERY_PLAN) -> PlanList:
        """The newest first; with `children` each has its own below it."""
        with self._unit_of_work.reading() as uow:
            plans, placed = uow.plans.list(), uow.plans.places()
            sizes = uow.checkpoints.sizes()
        here = latest_of(placed, self._whereabouts.around())
        shown = with_children(plans) if children else [p for p in plans if p.child_of is None]
        return PlanList(
            plans=tuple(plan for plan in shown if only.admits(plan)),
            projects={p.plan_id: p.place for p in placed},
            latest=here.plan_id if here else None,
            now=self._clock.now(),
            here_at=here.place if here else None,
            sizes=sizes,
            abandoned=frozenset(p.plan_id for p in shown if self._is_abandoned(p)),
        )

    def _is_abandoned(self, plan: Plan) -> bool:
        return plan.state is State.PROCESSING and self._locks.owner(plan.plan_id) is None

    def status(self, plan_id: PlanId) -> PlanStatus:
        with self._unit_of_work.reading() as uow:
            plan = uow.plans.get(plan_id)
            resources = tuple(uow.resources.of_plan(plan_id))
            calls = [call for call in uow.tool_calls.of_plan(plan_id) if not call.undone]
            done = done_steps(uow, plan, calls)
            checkpoints = uow.checkpoints.count(plan_id)
            children = children_of_plan(uow, plan_id)
            unchecked = unchecked_steps(uow, plan)
            applied = uow.applied.find(plan_id) if plan.state is State.APPLIED else None
        return PlanStatus(
            plan=plan,
            resources=tuple(self._as_found(resource) for resource in resources),
            progress=_progress(plan, done, failed_steps(calls)),
            tool_calls=len(calls),
            files_modified=len({change.path for call in calls for change in call.changes}),
            checkpoints=checkpoints,
            elapsed=self._elapsed(plan),
            now=self._clock.now(),
            owner=self._locks.owner(plan_id),
            children=children,
            unchecked=unchecked,
            applied=applied,
        )

    def timeline(self, plan_id: PlanId) -> PlanTimeline:
        with self._unit_of_work.reading() as uow:
            plan = uow.plans.get(plan_id)
            groups = tuple(uow.checkpoints.of_plan(plan_id))
            calls = uow.tool_calls.of_plan(plan_id)
            resources = tuple(uow.resources.of_plan(plan_id))
        return PlanTimeline(
            plan=plan,
            line=timeline(plan, groups, calls),
            groups=groups,
            resources=resources,
            now=self._clock.now(),
            abandoned=self._is_abandoned(plan),
        )

    def log(self, plan_id: PlanId) -> PlanTimeline:
        """The same, with what was undone marked."""
        from cleveragents.domain.undo import (  # noqa: PLC0415 - a list needs none of it
            PlanPast,
            brief_rows,
            with_undone,
        )

        found = self.timeline(plan_id)
        with self._unit_of_work.reading() as uow:
            forks = tuple(uow.timelines.of_plan(plan_id))
            decisions = uow.decisions.of_plan(plan_id)
            is_over = found.plan.state is State.APPLIED
            applied = uow.applied.find(plan_id) if is_over else None
        past = PlanPast(plan=found.plan, groups=found.groups, forks=forks)
        line = with_undone(past, found.line, decisions)
        return replace(found, line=line, brief=brief_rows(line), applied=applied)

    def history(self, plan_id: PlanId) -> DecisionHistory:
        with self._unit_of_work.reading() as uow:
            return _history(uow, plan_id)

    def find_decision(self, wanted: str, plan_id: PlanId | None) -> DecisionId:
        """Raises DecisionNotFoundError or DecisionAmbiguousError."""
        with self._unit_of_work.reading() as uow:
            return find_decision(uow, wanted, plan_id).decision_id

    def explain(self, wanted: str) -> ExplainedDecision:
        """Raises DecisionNotFoundError or DecisionAmbiguousError."""
        with self._unit_of_work.reading() as uow:
            decision = find_decision(uow, wanted)
            plan_id, mine = decision.plan_id, decision.decision_id
            dependencies = uow.decisions.dependencies(plan_id)
            depends_on = tuple(item for item in dependencies if item.decision_id == mine)
            used_by = tuple(item for item in dependencies if item.depends_on == mine)
            others = {d.depends_on for d in depends_on} | {d.decision_id for d in used_by}
            corrections = uow.corrections.of_plan(plan_id)
            return ExplainedDecision(
                decision=decision,
                group=next(iter(uow.checkpoints.of_decision(plan_id, mine)), None),
                calls=tuple(uow.tool_calls.of_decision(plan_id, mine)),
                depends_on=depends_on,
                used_by=used_by,
                corrections=tuple(item for item in corrections if item.is_about(mine)),
                unchecked=unchecked_of(uow, uow.plans.get(plan_id)).get(mine),
                names={other: uow.decisions.get(other).chosen for other in others},
            )

    def record(self, plan_id: PlanId) -> PlanRecord:
        with self._unit_of_work.reading() as uow:
            plan = uow.plans.get(plan_id)
            return PlanRecord(plan=plan, calls=tuple(uow.tool_calls.of_plan(plan_id)))

    def failures(self, plan_id: PlanId) -> PlanRecord:
        """The plan with those of its calls that failed, undone ones too."""
        found = self.record(plan_id)
        failed = tuple(call for call in found.calls if call.status is ToolCallStatus.FAILED)
        with self._unit_of_work.reading() as uow:
            children = children_of_plan(uow, plan_id)
        return PlanRecord(plan=found.plan, calls=failed, children=children)

    def effects(self, plan_id: PlanId) -> PlanEffects:
        owner = self._locks.owner(plan_id)
        with self._unit_of_work.reading() as uow:
            plan = uow.plans.get(plan_id)
            effects = uow.effects.of_plan(plan_id)
            reach = lineage(plan.timeline, uow.timelines.of_plan(plan_id))
        undone = {e.effect_id for e in effects if not is_live(e.position, reach)}
        # Nobody is running it, so it was cut off, though no command has written that down yet.
        known = [
            e.uncertain(CUT_OFF, e.started_at)
            if e.state is EffectState.STARTED and owner is None
            else e
            for e in effects
        ]
        return PlanEffects(plan=plan, effects=tuple(known), undone=frozenset(undone))

    def _as_found(self, resource: PlanResource) -> PlanResource:
        is_gone = resource.status is SandboxStatus.READY and not self._places.is_there(resource)
        return resource.missing() if is_gone else resource

    def _elapsed(self, plan: Plan) -> timedelta:
        if plan.started_at is None:
            return timedelta(0)
        running = plan.state is State.PROCESSING
        until = self._clock.now() if running else plan.finished_at
        return (until or plan.started_at) - plan.started_at


def _history(uow: "UnitOfWork", plan_id: PlanId) -> DecisionHistory:
    plan = uow.plans.get(plan_id)
    return DecisionHistory(
        plan=plan,
        decisions=tuple(uow.decisions.of_plan(plan_id)),
        groups=_by_decision(uow.checkpoints.of_plan(plan_id)),
        children=tuple(
            (child, _history(uow, child.plan_id)) for child in uow.subplans.of_parent(plan_id)
        ),
        unchecked=frozenset(unchecked_of(uow, plan)),
    )


def _progress(
    plan: Plan, done: Collection[int], failed: Collection[int]
) -> tuple[StepProgress, ...]:
    # Only an actor that decides its own steps goes on after one that failed.
    passed = min(plan.last_completed_step + 1, len(plan.action.steps))
    answered = {i for i in failed if plan.action.decides and i < passed}
    return tuple(
        StepProgress(
            step=step.name,
            status=ToolCallStatus.FAILED if i in answered else _step_status(plan, i, done),
        )
        for i, step in enumerate((*plan.action.steps, *_ahead(plan), *plan.action.validations))
    )


def _ahead(plan: Plan) -> Sequence[Step]:
    """Of an action file on a timeline, what is still to come."""
    return () if plan.executed or plan.is_final else steps_ahead(plan)


def _step_status(plan: Plan, index: int, done: Collection[int]) -> str:
    # Steps that a correction has left alone are done although an earlier one is not.
    if index <= plan.last_completed_step or index in done:
        return "complete"
    if index > plan.last_completed_step + 1 or plan.phase is not Phase.EXECUTE:
        return "queued"
    if plan.state in (State.PROCESSING, State.ERRORED):
        return plan.state.value
    return "queued"


def _by_decision(groups: Sequence[CheckpointGroup]) -> dict[DecisionId, CheckpointGroup]:
    """The first group of each decision: the one that was stored together with it."""
    found: dict[DecisionId, CheckpointGroup] = {}
    for group in groups:
        if group.decision_id is not None:
            found.setdefault(group.decision_id, group)
    return found
