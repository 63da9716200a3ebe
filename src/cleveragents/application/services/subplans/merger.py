"""Bringing children's results into their parent: files first, then one transaction each.

What: a three-way merge of each child, in the order of the children, onto what the last one made.
In which order: a parent that is not as its boundary says is put back, and told; if it is to be all
or none, all are prepared on top of each other; then for each child the files, one transaction that
says that it is merged and where the boundary is now, and last its sandboxes.
Why: killed before the record, the parent goes back to the boundary and the child is merged again,
from its snapshots. Each merge is a boundary, so that one which is in is never done twice.
What is not guaranteed: all or none, but for that strategy. Otherwise a child that conflicts waits
while the others are in, and the outcome depends on their order.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from functools import reduce

from msgspec import Struct
from msgspec.structs import replace

from cleveragents.application.ports.merging import Decide, Merges, PreparedMerge, undecided
from cleveragents.application.ports.runtime import Runtime
from cleveragents.application.services.checkpoints.checkpoint_service import (
    CheckpointService,
    CommitExtras,
)
from cleveragents.application.services.checkpoints.held import HeldResources
from cleveragents.application.services.execute.run_state import successes
from cleveragents.application.services.execute.step_boundary import StepBoundary
from cleveragents.application.services.execute.tool_runner import Task
from cleveragents.application.services.sandboxes.unfinished_step import UnfinishedStep
from cleveragents.application.services.subplans.merge_authors import Authors
from cleveragents.application.services.subplans.sandboxes import SubplanSandboxes
from cleveragents.domain.action import SUBPLANS, MergeStrategy
from cleveragents.domain.changes import FileChange
from cleveragents.domain.checkpoint import CheckpointMoment, CheckpointReason, Trigger
from cleveragents.domain.conflicts import Loss, Side
from cleveragents.domain.decision import ToolCall, ToolCallStatus, ToolResult
from cleveragents.domain.errors import PlanError, SandboxError
from cleveragents.domain.footprint import NO_REACH, UNKNOWN, Reach
from cleveragents.domain.ids import PlanId, ToolCallId
from cleveragents.domain.plan import Plan, State
from cleveragents.domain.resource import PlanResource
from cleveragents.domain.subplan import ChildPlan, Conflict

Prepared = Mapping[str, PreparedMerge]
"""By the name of the resource."""


class ConflictDraft(Struct, frozen=True, kw_only=True):
    """A text that a child conflicts over, both sides in one, with marks between them."""

    child: ChildPlan
    conflict: Conflict
    text: bytes


class _Result(Struct, frozen=True, kw_only=True):
    """A child that has done all its steps, and what it works on."""

    child: ChildPlan
    resources: Mapping[str, PlanResource]


class SubplanMerger(Struct, frozen=True):
    _runtime: Runtime
    _checkpoints: CheckpointService
    _unfinished: UnfinishedStep
    _boundary: StepBoundary
    _merges: Merges
    _care: SubplanSandboxes

    def merge(
        self, plan: Plan, task: Task, children: Sequence[PlanId]
    ) -> tuple[Plan, Sequence[FileChange]]:
        """In this order; a child that failed or conflicts is marked, and the others are merged."""
        assert task.step.subplans is not None
        strategy = task.step.subplans.merge_strategy
        results = self._results(children)
        if not results:
            return plan, ()
        self._refuse_stray_changes(plan, task.resources)
        if strategy is MergeStrategy.FAIL_ON_CONFLICT and self._any_conflict(plan, task, results):
            return plan, ()
        changes: list[FileChange] = []
        for result in results:
            plan, more = self._merge_one(plan, task, result, strategy)
            changes.extend(more)
        return plan, changes

    def drafts(
        self, resources: HeldResources, strategy: MergeStrategy, children: Sequence[PlanId]
    ) -> Sequence[ConflictDraft]:
        """Both sides of each text that these children conflict over; nothing changes."""
        found: list[ConflictDraft] = []
        for result, prepared in self._prepared(resources, strategy, self._results(children)):
            found += [
                ConflictDraft(
                    child=result.child,
                    conflict=conflict,
                    text=prepared[conflict.resource].drafts[conflict.path],
                )
                for conflict in _conflicts(prepared)
                if conflict.editable
            ]
        return found

    def _prepared(
        self,
        resources: HeldResources,
        strategy: MergeStrategy,
        results: Sequence[_Result],
        task: Task | None = None,
    ) -> Iterator[tuple[_Result, Prepared]]:
        """As they would be merged now, each by itself, or all together if it is all or none; with
        a task, by what was decided there."""
        parents = _by_name(resources)
        earlier: dict[str, list[PreparedMerge]] = {name: [] for name in parents}
        for result in results:
            decide = undecided if task is None else _deciding(task, result.child)
            prepared = self._prepare(parents, result, strategy, before=earlier, decide=decide)
            if strategy is MergeStrategy.FAIL_ON_CONFLICT and not _conflicts(prepared):
                for name, item in prepared.items():
                    earlier[name].append(item)
            yield result, prepared

    def revert(self, resources: HeldResources, merged: Sequence[ChildPlan]) -> None:
        """Make the parent what it was before the first of these, whose results wait again then."""
        self._boundary.return_to(resources, self._starts(merged), merged)

    def _starts(self, merged: Sequence[ChildPlan]) -> Mapping[str, str]:
        """For each resource, the parent's snapshot that the first of them was branched from."""
        starts: dict[str, str] = {}
        with self._runtime.unit_of_work.reading() as uow:
            for child in sorted(merged, key=lambda child: child.merges[-1].seq):
                for resource in uow.resources.of_plan(child.plan_id):
                    starts.setdefault(resource.name, str(resource.branched_at))
        return starts

    def _results(self, children: Sequence[PlanId]) -> Sequence[_Result]:
        return [found for child in children if (found := self._result(child)) is not None]

    def _result(self, plan_id: PlanId) -> _Result | None:
        """None for a child without one, which is marked as failed if that is for good."""
        with self._runtime.unit_of_work() as uow:
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

    def _refuse_stray_changes(self, plan: Plan, resources: HeldResources) -> None:
        """The parent's sandboxes are nobody's to write in while children work on theirs."""
        strayed = [resource.name for resource in self._checkpoints.capture(resources).moved]
        if not strayed:
            return
        self._unfinished.undo(plan, resources)
        raise SandboxError(
            f"the sandbox of {', '.join(strayed)} was written to while child plans ran; "
            "it was put back",
            "let the children's commands write in their own sandboxes only, then resume the plan",
        )

    def _any_conflict(self, plan: Plan, task: Task, results: Sequence[_Result]) -> bool:
        """Mark every child that conflicts; nothing is merged, not even those without conflicts."""
        found, strategy = False, MergeStrategy.FAIL_ON_CONFLICT
        for result, prepared in self._prepared(task.resources, strategy, results, task):
            if _conflicts(prepared):
                self._mark_conflict(plan, result.child, prepared)
                found = True
        return found

    def _merge_one(
        self, plan: Plan, task: Task, result: _Result, strategy: MergeStrategy
    ) -> tuple[Plan, Sequence[FileChange]]:
        parents = _by_name(task.resources)
        started = self._runtime.clock.now()
        decide = _deciding(task, result.child)
        prepared = self._prepare(parents, result, strategy, before={}, decide=decide)
        if _conflicts(prepared):
            self._mark_conflict(plan, result.child, prepared)
            return plan, ()
        merged = replace(result.child, losses=self._losses(plan, result.child, prepared))
        task.resources.something_runs()
        try:
            for name, item in prepared.items():
                self._merges.carry_out(parents[name], result.resources[name], item)
        except PlanError:
            self._unfinished.undo(plan, task.resources)
            raise
        call = self._call(plan, task, result.child, _told(merged, prepared), started)
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
            task.resources,
            moment,
            CommitExtras(
                tool_call=replace(call, reach=self._reach(result.child)),
                merged_child=merged,
                writers=task.writers,
            ),
        )
        self._care.remove_sandboxes(result.child.plan_id)
        return done.plan, done.changes

    def _reach(self, child: ChildPlan) -> Reach:
        """A child has looked as far as its steps have; who decides its own steps, anywhere."""
        with self._runtime.unit_of_work.reading() as uow:
            plan, calls = uow.plans.get(child.plan_id), uow.tool_calls.of_plan(child.plan_id)
        if plan.action.decides:
            return UNKNOWN
        return reduce(Reach.joined, (call.reach for call in successes(calls)), NO_REACH)

    def _call(
        self, plan: Plan, task: Task, child: ChildPlan, output: str, started: datetime
    ) -> ToolCall:
        """A merge is work of the parent's: it shows among its calls, and a rollback undoes it."""
        return ToolCall(
            call_id=ToolCallId(self._runtime.ids.new()),
            plan_id=plan.plan_id,
            decision_id=task.decision.decision_id,
            position=plan.here,
            step_index=task.step_index,
            tool=SUBPLANS,
            arguments={"merge": child.name, "plan_id": child.plan_id},
            status=ToolCallStatus.SUCCEEDED,
            result=ToolResult(output=output),
            started_at=started,
            finished_at=self._runtime.clock.now(),
        )

    def _prepare(
        self,
        parents: Mapping[str, PlanResource],
        result: _Result,
        strategy: MergeStrategy,
        *,
        before: Mapping[str, Sequence[PreparedMerge]],
        decide: Decide,
    ) -> Prepared:
        return {
            name: self._merges.prepare(
                parents[name], resource, strategy, before.get(name, ()), decide
            )
            for name, resource in result.resources.items()
        }

    def _mark_conflict(self, plan: Plan, child: ChildPlan, prepared: Prepared) -> None:
        with self._runtime.unit_of_work() as uow:
            authors = Authors.of(uow, plan.plan_id)
            found = [
                replace(item, ours_by=authors.who(item.resource, item.path))
                for item in _conflicts(prepared)
            ]
            uow.subplans.save(child.conflicting(found, ""))
            uow.commit()

    def _losses(self, plan: Plan, child: ChildPlan, prepared: Prepared) -> tuple[Loss, ...]:
        left = [(name, item) for name, merge in prepared.items() for item in merge.left_out]
        if not left:
            return ()
        with self._runtime.unit_of_work.reading() as uow:
            authors = Authors.of(uow, plan.plan_id)
        return tuple(
            Loss(
                resource=name,
                path=item.path,
                whose=child.name if item.side is Side.THEIRS else authors.who(name, item.path),
                lines=item.lines,
                count=item.count,
            )
            for name, item in left
        )


def _by_name(resources: HeldResources) -> Mapping[str, PlanResource]:
    return {resource.name: resource for resource in resources.capturable}


def _conflicts(prepared: Prepared) -> Sequence[Conflict]:
    return [conflict for item in prepared.values() for conflict in item.conflicts]


def _deciding(task: Task, child: ChildPlan) -> Decide:
    """What was decided is about the conflicts that were told, and nothing that came since."""

    def decide(conflict: Conflict) -> Side | bytes | None:
        if not any(conflict.is_as(told) for told in child.conflicts):
            return None
        return task.resolution.answer(child.plan_id, conflict.resource, conflict.path)

    return decide


def _told(child: ChildPlan, prepared: Prepared) -> str:
    changed = sum(item.changes for item in prepared.values())
    kept = [f"{item.resource}:{path}" for item in prepared.values() for path in item.kept]
    parts = [f"merged child {child.name}: {changed} paths"]
    if kept:
        parts.append(f"ignored files that both changed stay as they were: {', '.join(kept)}")
    if child.losses:
        parts.append(f"overwritten: {', '.join(map(str, child.losses))}")
    return "; ".join([*parts, *(note for item in prepared.values() for note in item.notes)])
