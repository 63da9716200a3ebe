"""What becomes true together with a group: a decision, a tool call, what it used."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from cleveragents.application.ports.runtime import UnitOfWork
from cleveragents.domain.actor_protocol import Message
from cleveragents.domain.changes import FileChange
from cleveragents.domain.correction import Correction, Supersession, Unchecked
from cleveragents.domain.decision import Decision, Dependency, ToolCall
from cleveragents.domain.effects import Effect
from cleveragents.domain.footprint import Touched, Writers
from cleveragents.domain.plan import Plan
from cleveragents.domain.subplan import ChildPlan

if TYPE_CHECKING:
    from cleveragents.application.services.rollback.unchecked_steps import BroughtBack


class CommitExtras(Struct, frozen=True, kw_only=True):
    """What else becomes true in the same transaction as a group.

    `dependencies` are those of the decision; those of the tool call follow from what it touched and
    is known to have read, and the steps before it. `messages` are what the plan's actor remembers
    from now on. Of a correction, `intended` is what is about to be done, and `in_force` what has
    been: steps that it lets stand without a check do so `kept_because` of that. `brought_back` are
    single files that a person restored.
    """

    decision: Decision | None = None
    dependencies: tuple[Dependency, ...] = ()
    tool_call: ToolCall | None = None
    writers: Writers | None = None
    effect: Effect | None = None
    merged_child: ChildPlan | None = None
    messages: tuple[Message, ...] = ()
    intended: Correction | None = None
    in_force: Correction | None = None
    kept_because: str = ""
    brought_back: "BroughtBack | None" = None

    def with_outcome(self, changes: tuple[FileChange, ...], touched: Touched) -> "CommitExtras":
        """What the tool call came to is known only once the sandboxes were captured."""
        call = self.tool_call
        if call is None:
            return self
        return replace(self, tool_call=replace(call, changes=changes, touched=touched))

    def let_know(self) -> None:
        """The run's own record of who did what has the call too, once it is stored."""
        if self.tool_call is not None and self.writers is not None:
            self.writers.add(self.tool_call.deed)


NO_EXTRAS = CommitExtras()


def store(uow: UnitOfWork, plan: Plan, additions: CommitExtras) -> Plan:
    """Each thing that happened moves the plan's history on by one."""
    if additions.messages:
        uow.messages.add(plan.plan_id, additions.messages)
    if additions.decision is not None:
        plan = plan.tick()
        uow.decisions.add(replace(additions.decision, position=plan.here))
        uow.decisions.depend(plan.plan_id, additions.dependencies)
    call = additions.tool_call
    if call is not None:
        plan = plan.tick()
        uow.tool_calls.add(replace(call, position=plan.here))
        uow.decisions.depend(plan.plan_id, _inferred(additions, call))
    if additions.effect is not None:
        uow.effects.put(additions.effect)
    if additions.merged_child is not None:
        plan = plan.tick()
        uow.subplans.save(additions.merged_child.merged_at(plan.here))
    return plan


def store_corrections(uow: UnitOfWork, plan: Plan, additions: CommitExtras) -> None:
    """With the plan as it is stored now: its place in history is theirs."""
    if additions.intended is not None:
        uow.corrections.add(replace(additions.intended, safety_group=plan.safety_group))
    if additions.in_force is not None:
        _take_over(uow, plan, additions.in_force, additions.kept_because)
    if additions.brought_back is not None:
        from cleveragents.application.services.rollback.unchecked_steps import (  # noqa: PLC0415 - only files that came back
            let_stand,
        )

        let_stand(uow, plan, additions.brought_back)


def _take_over(uow: UnitOfWork, plan: Plan, correction: Correction, kept_because: str) -> None:
    """What is corrected no longer counts; an appended one has had no intent on record."""
    known = {item.correction_id for item in uow.corrections.of_plan(plan.plan_id)}
    put = uow.corrections.save if correction.correction_id in known else uow.corrections.add
    put(correction)
    gone = [
        Supersession(
            decision_id=decision_id, correction_id=correction.correction_id, position=plan.here
        )
        for decision_id in correction.affected
    ]
    uow.corrections.supersede(plan.plan_id, gone)
    stays = [
        Unchecked(decision_id=decision_id, position=plan.here, why=kept_because)
        for decision_id in correction.kept
    ]
    uow.corrections.let_stand(plan.plan_id, stays)
    from cleveragents.application.services.rollback.rewind import recompute_superseded  # noqa: PLC0415 - only a correction

    recompute_superseded(uow, plan)


def _inferred(additions: CommitExtras, call: ToolCall) -> Sequence[Dependency]:
    if additions.writers is None:
        return ()
    behind = additions.writers.behind(call.touched, call.reach)
    return [
        Dependency(decision_id=call.decision_id, depends_on=source, why=why)
        for source, why in behind.items()
        if source != call.decision_id
    ]
