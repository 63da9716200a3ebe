"""A step that spawns child plans: run them wave by wave, merge their results, say what failed.

The step is done when every child is merged. Each merge is a step boundary of its own, so that a
child whose result is in the parent is never run again (ADR 0023).
"""

from collections.abc import Iterable, Sequence

from msgspec import Struct

from cleveragents.application.ports.runtime import Runtime
from cleveragents.application.services.checkpoints.checkpoint_service import (
    CheckpointService,
    CommitExtras,
    Committed,
)
from cleveragents.application.services.checkpoints.held import HeldResources
from cleveragents.application.services.execute.tool_runner import Task
from cleveragents.application.services.subplans.merger import ConflictDraft, SubplanMerger
from cleveragents.application.services.subplans.queries import conflicting
from cleveragents.application.services.subplans.runner import SubplanRunner
from cleveragents.application.services.subplans.spawner import SubplanSpawner
from cleveragents.domain.action import MergeStrategy, Subplan, Subplans
from cleveragents.domain.changes import FileChange
from cleveragents.domain.checkpoint import CheckpointReason, Trigger
from cleveragents.domain.conflicts import ConflictKey
from cleveragents.domain.decision import ToolResult
from cleveragents.domain.errors import SubplansFailedError
from cleveragents.domain.ids import PlanId
from cleveragents.domain.plan import Plan, PlanFailure
from cleveragents.domain.subplan import ChildPlan, Conflict, MergeOutcome, current, waves


class SubplanService(Struct, frozen=True):
    _runtime: Runtime
    _checkpoints: CheckpointService
    _spawner: SubplanSpawner
    _crew: SubplanRunner
    merger: SubplanMerger

    def run(self, plan: Plan, task: Task) -> Committed:
        """Carry the step out, or go on with it after an interruption or a failure."""
        assert task.step.subplans is not None
        plan = self._before_spawn(plan, task)
        changes: list[FileChange] = []
        for wave in waves(task.step.subplans):
            plan, more = self._run_wave(plan, task, wave)
            changes.extend(more)
            if self._is_over(plan, task, wave):
                break
        missing = self._missing(plan, task)
        if missing or any(child.name not in self._current(plan, task) for child in _specs(task)):
            return self._failed(plan, task, missing)
        memory = task.memory(ToolResult(output=f"merged: {', '.join(_names(task))}"))
        plan = plan.advance(task.step_index, memory.state)
        plan = self._checkpoints.save_progress(plan, CommitExtras(messages=memory.added))
        return Committed(plan=plan, changes=tuple(changes))

    def _is_over(self, plan: Plan, task: Task, wave: Sequence[Subplan]) -> bool:
        """Whether what has become of a wave keeps the others from being started."""
        subplans = task.step.subplans
        assert subplans is not None
        found = self._current(plan, task)
        merged = [child for child in found.values() if child.outcome is MergeOutcome.MERGED]
        # Of this wave: what later ones came to in an earlier run is still to be done again.
        conflict = _any_conflict(found[child.name] for child in wave if child.name in found)
        if subplans.merge_strategy is MergeStrategy.FAIL_ON_CONFLICT and conflict:
            if merged:
                self.merger.revert(task.resources, merged)
            return True
        names = {child.name for child in merged}
        return subplans.fail_fast and not names.issuperset(child.name for child in wave)

    def _before_spawn(self, plan: Plan, task: Task) -> Plan:
        if self._current(plan, task):
            return plan  # an earlier run of this step has spawned already
        moment = task.moment(CheckpointReason.ON_SUBPLAN_SPAWN, f"before {task.step.name}")
        trigger = Trigger.ON_SUBPLAN_SPAWN
        return self._checkpoints.auto_create_if_configured(
            trigger, plan, task.resources, moment
        ).plan

    def _run_wave(
        self, plan: Plan, task: Task, wave: Sequence[Subplan]
    ) -> tuple[Plan, Sequence[FileChange]]:
        """Children that start from the same state of the parent, which nobody changes meanwhile."""
        subplans = task.step.subplans or Subplans(plans=())
        merged = self._names(plan, task, MergeOutcome.MERGED)
        startable = [child for child in wave if merged.issuperset(child.depends_on)]
        decided = bool(task.resolution)
        plan, children = self._spawner.children(
            plan, task.decision, subplans, startable, decided=decided
        )
        task.resources.something_runs()
        self._crew.run(plan, children, subplans, task.choice)
        return self.merger.merge(plan, task, [child.plan_id for child in children])

    def _missing(self, plan: Plan, task: Task) -> Sequence[ChildPlan]:
        """Those that were spawned and are not merged."""
        found = self._current(plan, task).values()
        return [child for child in found if child.outcome is not MergeOutcome.MERGED]

    def _names(self, plan: Plan, task: Task, outcome: MergeOutcome) -> set[str]:
        return {c.name for c in self._current(plan, task).values() if c.outcome is outcome}

    def _current(self, plan: Plan, task: Task) -> "dict[str, ChildPlan]":
        with self._runtime.unit_of_work.reading() as uow:
            children = uow.subplans.of_parent(plan.plan_id)
        return dict(current(children, task.decision.decision_id))

    def _failed(self, plan: Plan, task: Task, missing: Sequence[ChildPlan]) -> Committed:
        message = "; ".join(_told(child, all_or_none=_any_conflict(missing)) for child in missing)
        waiting = [c.name for c in _specs(task) if c.name not in self._current(plan, task)]
        if waiting:
            message += f"; not started: {', '.join(waiting)}"
        failure = PlanFailure(
            message=message,
            hint=_hint(plan.plan_id, missing),
            code=SubplansFailedError.code,
            tool=task.step.tool,
            step=task.step_index,
            checkpoint=plan.head,
        )
        plan = plan.fail(failure, self._runtime.clock.now())
        self._crew.end(plan.plan_id)
        task.resources.something_runs()
        label = f"error in {task.step.name}"
        moment = task.moment(CheckpointReason.ON_ERROR, label, mid_step=True)
        return self._checkpoints.auto_create_if_configured(
            Trigger.ON_ERROR, plan, task.resources, moment
        )


def _specs(task: Task) -> Sequence[Subplan]:
    return task.step.subplans.plans if task.step.subplans else ()


def _names(task: Task) -> Sequence[str]:
    return [child.name for child in _specs(task)]


def _any_conflict(children: Iterable[ChildPlan]) -> bool:
    return any(child.outcome is MergeOutcome.CONFLICT for child in children)


def _hint(plan_id: PlanId, missing: Sequence[ChildPlan]) -> str:
    again = f"run those again on top of what is merged: agents plan resume {plan_id}"
    if not _any_conflict(missing):
        return again
    return (
        f"see both sides with `agents plan status {plan_id}`, then take one with `agents plan"
        f" resume --ours {plan_id}` (what is merged) or `--theirs` (the child's), or write it"
        f" yourself with `--edit`; or {again}"
    )


def _told(child: ChildPlan, *, all_or_none: bool) -> str:
    if child.outcome is MergeOutcome.CONFLICT:
        files = ", ".join(str(conflict) for conflict in child.conflicts)
        return f"child `{child.name}` conflicts: {files or child.reason}"
    if child.outcome is MergeOutcome.FAILED:
        return f"child `{child.name}` failed: {child.reason}"
    # Without a conflict, nothing but a stop keeps a child from having an outcome.
    why = "is not merged, because not all of them can be" if all_or_none else "was stopped"
    return f"child `{child.name}` {why}"


class Drafts(Struct, frozen=True, kw_only=True):
    """`texts` can be edited; of the `others` one side or the other can be taken."""

    texts: tuple[ConflictDraft, ...]
    others: tuple[tuple[ChildPlan, Conflict], ...]


class SubplanConflicts(Struct, frozen=True):
    _runtime: Runtime
    _merger: SubplanMerger

    def waiting(self, plan_id: PlanId) -> Sequence[ConflictKey]:
        """What waits for a decision, as it was told. Raises NoConflictError."""
        with self._runtime.unit_of_work.reading() as uow:
            children = conflicting(uow, uow.plans.get(plan_id))
        return [(c.plan_id, item.resource, item.path) for c in children for item in c.conflicts]

    def drafts(self, plan_id: PlanId) -> Drafts:
        """Both sides of everything that waits for a decision. Raises NoConflictError."""
        with self._runtime.locks.hold(plan_id, "resume --edit"):
            with self._runtime.unit_of_work.reading() as uow:
                plan, resources = uow.plans.get(plan_id), uow.resources.of_plan(plan_id)
                children = conflicting(uow, plan)
                strategy, waiting = _strategy(plan), children
                if strategy is MergeStrategy.FAIL_ON_CONFLICT:
                    # Then those that only wait for the others are merged before them.
                    waiting = _waiting(uow.subplans.of_parent(plan_id), children)
            wanted = [child.plan_id for child in waiting]
            texts = self._merger.drafts(HeldResources(resources), strategy, wanted)
        known = {(d.child.plan_id, d.conflict.resource, d.conflict.path) for d in texts}
        return Drafts(
            texts=tuple(texts),
            others=tuple(
                (child, conflict)
                for child in children
                for conflict in child.conflicts
                if (child.plan_id, conflict.resource, conflict.path) not in known
            ),
        )


def _strategy(plan: Plan) -> MergeStrategy:
    """That of the step that the plan has stopped at."""
    index = plan.last_completed_step + 1
    subplans = plan.action.steps[index].subplans
    assert subplans is not None
    return subplans.merge_strategy


def _waiting(every: Sequence[ChildPlan], conflicts: Sequence[ChildPlan]) -> Sequence[ChildPlan]:
    decisions = {child.decision_id for child in conflicts}
    wanted = (MergeOutcome.PENDING, MergeOutcome.CONFLICT)
    found = [c for c in every if c.counts and c.outcome in wanted and c.decision_id in decisions]
    return sorted(found, key=lambda child: child.index)
