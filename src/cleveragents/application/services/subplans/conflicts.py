"""What a person needs to decide about children whose results do not fit together."""

from collections.abc import Sequence

from msgspec import Struct

from cleveragents.application.ports.runtime import PlanLocks, UnitOfWorkFactory
from cleveragents.application.services.checkpoints.held import HeldResources
from cleveragents.application.services.subplans.merger import ConflictDraft, SubplanMerger
from cleveragents.application.services.subplans.queries import conflicting
from cleveragents.domain.action import MergeStrategy
from cleveragents.domain.conflicts import ConflictKey
from cleveragents.domain.ids import PlanId
from cleveragents.domain.plan import Plan
from cleveragents.domain.subplan import ChildPlan, Conflict, MergeOutcome


class Drafts(Struct, frozen=True, kw_only=True):
    """`texts` can be edited; of the `others` one side or the other can be taken."""

    texts: tuple[ConflictDraft, ...]
    others: tuple[tuple[ChildPlan, Conflict], ...]


class SubplanConflicts:
    def __init__(
        self, unit_of_work: UnitOfWorkFactory, merger: SubplanMerger, locks: PlanLocks
    ) -> None:
        self._unit_of_work = unit_of_work
        self._merger = merger
        self._locks = locks

    def waiting(self, plan_id: PlanId) -> Sequence[ConflictKey]:
        """What waits for a decision, as it was told. Raises NoConflictError."""
        with self._unit_of_work.reading() as uow:
            children = conflicting(uow, uow.plans.get(plan_id))
        return [(c.plan_id, item.resource, item.path) for c in children for item in c.conflicts]

    def drafts(self, plan_id: PlanId) -> Drafts:
        """Both sides of everything that waits for a decision. Raises NoConflictError."""
        with self._locks.hold(plan_id, "resume --edit"):
            with self._unit_of_work.reading() as uow:
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
