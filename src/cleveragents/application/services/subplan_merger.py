"""Owns bringing children's results into their parent: files first, then one transaction each."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import reduce

from cleveragents.application.ports import (
    Clock,
    IdSource,
    SnapshotStore,
    UnitOfWorkFactory,
)
from cleveragents.application.services.checkpoint_service import Additions, CheckpointService
from cleveragents.application.services.course import successes
from cleveragents.application.services.rollback_service import RollbackService
from cleveragents.application.services.subplan_care import SubplanCare
from cleveragents.application.services.tool_runner import Task
from cleveragents.application.subplan_ports import Merges, PreparedMerge
from cleveragents.domain.action import SUBPLANS, MergeStrategy
from cleveragents.domain.changes import FileChange
from cleveragents.domain.checkpoint import CheckpointMoment, CheckpointReason, Trigger
from cleveragents.domain.decision import ToolCall, ToolCallStatus, ToolResult
from cleveragents.domain.errors import PlanError, SandboxError
from cleveragents.domain.footprint import NO_REACH, UNKNOWN, Reach
from cleveragents.domain.ids import PlanId, ToolCallId
from cleveragents.domain.plan import Plan, State
from cleveragents.domain.sandbox import PlanResource
from cleveragents.domain.subplan import ChildPlan, Conflict

Prepared = Mapping[str, PreparedMerge]
"""By the name of the resource."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Result:
    """A child that has done all its steps, and what it works on."""

    child: ChildPlan
    resources: Mapping[str, PlanResource]


class SubplanMerger:
    def __init__(
        self,
        unit_of_work: UnitOfWorkFactory,
        checkpoints: CheckpointService,
        rollbacks: RollbackService,
        workplace: tuple[SnapshotStore, Merges, SubplanCare],
        chronicle: tuple[Clock, IdSource],
    ) -> None:
        self._unit_of_work = unit_of_work
        self._checkpoints = checkpoints
        self._rollbacks = rollbacks
        self._snapshots, self._merges, self._care = workplace
        self._clock, self._ids = chronicle

    def merge(
        self, plan: Plan, task: Task, children: Sequence[PlanId]
    ) -> tuple[Plan, Sequence[FileChange]]:
        """In this order; a child that failed or conflicts is marked, and the others are merged."""
        assert task.step.subplans is not None
        strategy = task.step.subplans.merge_strategy
        results = [found for child in children if (found := self._result(child)) is not None]
        if not results:
            return plan, ()
        self._refuse_stray_changes(plan)
        if strategy is MergeStrategy.FAIL_ON_CONFLICT and self._any_conflict(plan, results):
            return plan, ()
        changes: list[FileChange] = []
        for result in results:
            plan, more = self._merge_one(plan, task, result, strategy)
            changes.extend(more)
        return plan, changes

    def take_back(self, plan: Plan, merged: Sequence[ChildPlan]) -> None:
        """Make the parent what it was before the first of these, whose results wait again then.

        Files first: until the record says so, the boundary after the merges is gone back to.
        """
        parents, starts = self._parents(plan), self._starts(merged)
        restored = {
            name: self._snapshots.restore(parents[name], ref) for name, ref in starts.items()
        }
        with self._unit_of_work() as uow:
            for name, result in restored.items():
                uow.resources.save(parents[name].at_boundary(result.snapshot.ref))
            for child in merged:
                uow.subplans.save(child.taken_back())
            uow.commit()

    def _starts(self, merged: Sequence[ChildPlan]) -> Mapping[str, str]:
        """For each resource, the parent's snapshot that the first of them was branched from."""
        starts: dict[str, str] = {}
        with self._unit_of_work.reading() as uow:
            for child in sorted(merged, key=lambda child: child.merges[-1].seq):
                for resource in uow.resources.of_plan(child.plan_id):
                    starts.setdefault(resource.name, str(resource.branched_at))
        return starts

    def _result(self, plan_id: PlanId) -> _Result | None:
        """None for a child without one, which is marked as failed if that is for good."""
        with self._unit_of_work() as uow:
            plan, child = uow.plans.get(plan_id), uow.subplans.get(plan_id)
            assert child is not None
            if plan.executed:
                found = uow.resources.of_plan(plan_id)
                return _Result(child=child, resources={r.name: r for r in found})
            if plan.error is not None or plan.state is State.CANCELLED:
                reason = plan.error.message if plan.error else "it is cancelled"
                uow.subplans.save(child.failed(reason))
                uow.commit()
            return None

    def _refuse_stray_changes(self, plan: Plan) -> None:
        """The parent's sandboxes are nobody's to write in while children work on theirs."""
        resources = self._checkpoints.resources(plan.plan_id)
        strayed = [r.name for r in resources if self._snapshots.capture(r).ref != r.boundary]
        if not strayed:
            return
        self._rollbacks.return_to_boundary(plan)
        raise SandboxError(
            f"the sandbox of {', '.join(strayed)} was written to while child plans ran; "
            "it was put back",
            "let the children's commands write in their own sandboxes only, then resume the plan",
        )

    def _any_conflict(self, plan: Plan, results: Sequence[_Result]) -> bool:
        """Mark every child that conflicts; nothing is merged, not even those without conflicts."""
        parents = self._parents(plan)
        earlier: dict[str, list[PreparedMerge]] = {name: [] for name in parents}
        found = False
        for result in results:
            prepared = self._prepare(
                parents, result, MergeStrategy.FAIL_ON_CONFLICT, before=earlier
            )
            if _conflicts(prepared):
                self._mark_conflict(result.child, prepared)
                found = True
                continue
            for name, item in prepared.items():
                earlier[name].append(item)
        return found

    def _merge_one(
        self, plan: Plan, task: Task, result: _Result, strategy: MergeStrategy
    ) -> tuple[Plan, Sequence[FileChange]]:
        parents = self._parents(plan)
        started = self._clock.now()
        prepared = self._prepare(parents, result, strategy, before={})
        if _conflicts(prepared):
            self._mark_conflict(result.child, prepared)
            return plan, ()
        try:
            for name, item in prepared.items():
                self._merges.carry_out(parents[name], result.resources[name], item)
        except PlanError:
            self._rollbacks.return_to_boundary(plan)
            raise
        call = self._call(plan, task, result.child, _told(result.child, prepared), started)
        moment = CheckpointMoment(
            reason=CheckpointReason.AFTER_SUBPLAN,
            source=SUBPLANS,
            label=f"after child {result.child.name}",
            decision_id=task.decision.decision_id,
            step_index=task.step_index,
        )
        done = self._checkpoints.auto_create_if_configured(
            Trigger.AFTER_SUBPLAN,
            plan,
            moment,
            Additions(
                tool_call=replace(call, reach=self._reach(result.child)),
                merged_child=result.child,
                writers=task.writers,
            ),
        )
        self._care.remove_sandboxes(result.child.plan_id)
        return done.plan, done.changes

    def _reach(self, child: ChildPlan) -> Reach:
        """A child has looked as far as its steps have; who decides its own steps, anywhere."""
        with self._unit_of_work.reading() as uow:
            plan, calls = uow.plans.get(child.plan_id), uow.tool_calls.of_plan(child.plan_id)
        if plan.action.decides:
            return UNKNOWN
        return reduce(Reach.joined, (call.reach for call in successes(calls)), NO_REACH)

    def _call(
        self, plan: Plan, task: Task, child: ChildPlan, output: str, started: datetime
    ) -> ToolCall:
        """A merge is work of the parent's: it shows among its calls, and a rollback undoes it."""
        return ToolCall(
            call_id=ToolCallId(self._ids.new()),
            plan_id=plan.plan_id,
            decision_id=task.decision.decision_id,
            position=plan.here,
            step_index=task.step_index,
            tool=SUBPLANS,
            arguments={"merge": child.name, "plan_id": child.plan_id},
            status=ToolCallStatus.SUCCEEDED,
            result=ToolResult(output=output),
            error=None,
            changes=(),
            side_effects=(),
            started_at=started,
            finished_at=self._clock.now(),
        )

    def _prepare(
        self,
        parents: Mapping[str, PlanResource],
        result: _Result,
        strategy: MergeStrategy,
        *,
        before: Mapping[str, Sequence[PreparedMerge]],
    ) -> Prepared:
        return {
            name: self._merges.prepare(parents[name], resource, strategy, before.get(name, ()))
            for name, resource in result.resources.items()
        }

    def _mark_conflict(self, child: ChildPlan, prepared: Prepared) -> None:
        with self._unit_of_work() as uow:
            uow.subplans.save(child.conflicting(_conflicts(prepared), ""))
            uow.commit()

    def _parents(self, plan: Plan) -> Mapping[str, PlanResource]:
        return {r.name: r for r in self._checkpoints.resources(plan.plan_id)}


def _conflicts(prepared: Prepared) -> Sequence[Conflict]:
    return [conflict for item in prepared.values() for conflict in item.conflicts]


def _told(child: ChildPlan, prepared: Prepared) -> str:
    changed = sum(item.changes for item in prepared.values())
    kept = [f"{item.resource}:{path}" for item in prepared.values() for path in item.kept]
    text = f"merged child {child.name}: {changed} paths"
    return (
        f"{text}; ignored files that both changed stay as they were: {', '.join(kept)}"
        if kept
        else text
    )
