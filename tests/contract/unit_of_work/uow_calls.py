"""Every method of every repository, called once: those that write, and those that only read."""

from collections.abc import Callable

from msgspec.structs import replace
from uow_values import (
    ACTION,
    BARE_RESOURCE,
    CHILD,
    EFFECT,
    FULL_APPLIED,
    FULL_CALL,
    FULL_CORRECTION,
    FULL_DECISION,
    FULL_DEPENDENCY,
    FULL_FORK,
    FULL_GROUP,
    FULL_PLAN,
    FULL_RESOURCE,
    FULL_SUPERSESSION,
    FULL_UNCHECKED,
    OTHER_PLAN,
    PLAN,
    ROOT,
    WHEN,
    a_group,
    ulid,
)

from cleveragents.domain.actor_protocol import Message
from cleveragents.domain.decision import Position
from cleveragents.domain.ids import (
    CheckpointId,
    CorrectionId,
    DecisionId,
    EffectId,
    PlanId,
    ResourceId,
    ToolCallId,
)
from cleveragents.domain.subplan import ChildPlan
from cleveragents.infrastructure.database.unit_of_work import SqlUnitOfWork

GRANDCHILD = PlanId(ulid(3))
SPAWNED = ChildPlan(
    plan_id=OTHER_PLAN,
    parent_id=PLAN,
    root_id=PLAN,
    decision_id=CHILD,
    name="part",
    index=0,
    position=Position(timeline=2, seq=20),
)
Call = Callable[[SqlUnitOfWork], object]

WRITES: dict[str, Call] = {
    "plans.save": lambda uow: uow.plans.save(replace(FULL_PLAN, attempt=99)),
    "plans.give_action": lambda uow: uow.plans.give_action(
        replace(FULL_PLAN, action=replace(ACTION, description="another"))
    ),
    "applied.put": lambda uow: uow.applied.put(FULL_APPLIED),
    "resources.add": lambda uow: uow.resources.add(
        replace(FULL_RESOURCE, resource_id=ResourceId(ulid(13)), name="more")
    ),
    "resources.save": lambda uow: uow.resources.save(replace(BARE_RESOURCE, base="x")),
    "decisions.add": lambda uow: uow.decisions.add(
        replace(FULL_DECISION, decision_id=DecisionId(ulid(23)))
    ),
    "decisions.mark_superseded": lambda uow: uow.decisions.mark_superseded(PLAN, [ROOT]),
    "decisions.depend": lambda uow: uow.decisions.depend(
        PLAN, [replace(FULL_DEPENDENCY, decision_id=ROOT, depends_on=CHILD)]
    ),
    "tool_calls.add": lambda uow: uow.tool_calls.add(
        replace(FULL_CALL, call_id=ToolCallId(ulid(42)))
    ),
    "tool_calls.mark_undone": lambda uow: uow.tool_calls.mark_undone(PLAN, []),
    "checkpoints.add": lambda uow: uow.checkpoints.add(a_group(200)),
    "checkpoints.mark_superseded": lambda uow: uow.checkpoints.mark_superseded(PLAN, []),
    "checkpoints.delete": lambda uow: uow.checkpoints.delete(
        PLAN, {FULL_GROUP.group_id: "old"}, WHEN
    ),
    "timelines.add": lambda uow: uow.timelines.add(PLAN, replace(FULL_FORK, timeline=4)),
    "effects.put": lambda uow: uow.effects.put(replace(EFFECT, effect_id=EffectId(ulid(53)))),
    "effects.remove": lambda uow: uow.effects.remove(replace(EFFECT, effect_id=EffectId(ulid(52)))),
    "subplans.add": lambda uow: uow.subplans.add(replace(SPAWNED, plan_id=GRANDCHILD)),
    "subplans.save": lambda uow: uow.subplans.save(replace(SPAWNED, retries=1)),
    "corrections.add": lambda uow: uow.corrections.add(
        replace(FULL_CORRECTION, correction_id=CorrectionId(ulid(54)))
    ),
    "corrections.save": lambda uow: uow.corrections.save(replace(FULL_CORRECTION, guidance="x")),
    "corrections.supersede": lambda uow: uow.corrections.supersede(
        PLAN, [replace(FULL_SUPERSESSION, decision_id=ROOT)]
    ),
    "corrections.let_stand": lambda uow: uow.corrections.let_stand(
        PLAN, [replace(FULL_UNCHECKED, decision_id=ROOT)]
    ),
    "messages.add": lambda uow: uow.messages.add(PLAN, [Message(key="b", parent="a", body="")]),
    "messages.keep_only": lambda uow: uow.messages.keep_only(PLAN, []),
}
CHECKPOINT = CheckpointId(ulid(101))
READS: dict[str, Call] = {
    "plans.get": lambda uow: uow.plans.get(PLAN),
    "plans.starting_with": lambda uow: uow.plans.starting_with("01"),
    "plans.ending_with": lambda uow: uow.plans.ending_with("01"),
    "plans.of_action": lambda uow: uow.plans.of_action("demo", 1),
    "plans.list": lambda uow: uow.plans.list(),
    "plans.places": lambda uow: uow.plans.places(),
    "plans.refuse_overtaken": lambda uow: uow.plans.refuse_overtaken(PLAN),
    "applied.find": lambda uow: uow.applied.find(PLAN),
    "applied.kept": lambda uow: uow.applied.kept(),
    "resources.of_plan": lambda uow: uow.resources.of_plan(PLAN),
    "decisions.get": lambda uow: uow.decisions.get(CHILD),
    "decisions.starting_with": lambda uow: uow.decisions.starting_with("01"),
    "decisions.ending_with": lambda uow: uow.decisions.ending_with("01"),
    "decisions.of_plan": lambda uow: uow.decisions.of_plan(PLAN),
    "decisions.dependencies": lambda uow: uow.decisions.dependencies(PLAN),
    "decisions.dependents": lambda uow: uow.decisions.dependents(ROOT),
    "tool_calls.of_decision": lambda uow: uow.tool_calls.of_decision(PLAN, CHILD),
    "tool_calls.of_plan": lambda uow: uow.tool_calls.of_plan(PLAN),
    "checkpoints.get": lambda uow: uow.checkpoints.get(FULL_GROUP.group_id),
    "checkpoints.holding": lambda uow: uow.checkpoints.holding(CHECKPOINT),
    "checkpoints.of_decision": lambda uow: uow.checkpoints.of_decision(PLAN, CHILD),
    "checkpoints.of_plan": lambda uow: uow.checkpoints.of_plan(PLAN),
    "checkpoints.called": lambda uow: uow.checkpoints.called(PLAN, "01"),
    "checkpoints.has_own_label": lambda uow: uow.checkpoints.has_own_label(PLAN, "x"),
    "checkpoints.owner_of": lambda uow: uow.checkpoints.owner_of(CHECKPOINT),
    "checkpoints.pruned": lambda uow: uow.checkpoints.pruned(PLAN, "x"),
    "checkpoints.count": lambda uow: uow.checkpoints.count(PLAN),
    "checkpoints.sizes": lambda uow: uow.checkpoints.sizes(),
    "checkpoints.snapshots": lambda uow: uow.checkpoints.snapshots(PLAN),
    "checkpoints.state_counts": lambda uow: uow.checkpoints.state_counts(PLAN),
    "checkpoints.positions": lambda uow: uow.checkpoints.positions(PLAN),
    "checkpoints.outlines": lambda uow: uow.checkpoints.outlines(PLAN),
    "timelines.of_plan": lambda uow: uow.timelines.of_plan(PLAN),
    "effects.get": lambda uow: uow.effects.get(EFFECT.effect_id),
    "effects.of_plan": lambda uow: uow.effects.of_plan(PLAN),
    "subplans.get": lambda uow: uow.subplans.get(OTHER_PLAN),
    "subplans.of_parent": lambda uow: uow.subplans.of_parent(PLAN),
    "subplans.below": lambda uow: uow.subplans.below(PLAN),
    "corrections.get": lambda uow: uow.corrections.get(FULL_CORRECTION.correction_id),
    "corrections.with_part": lambda uow: uow.corrections.with_part("01"),
    "corrections.of_plan": lambda uow: uow.corrections.of_plan(PLAN),
    "corrections.supersessions": lambda uow: uow.corrections.supersessions(PLAN),
    "corrections.unchecked": lambda uow: uow.corrections.unchecked(PLAN),
    "messages.chain": lambda uow: uow.messages.chain(PLAN, "a"),
}
# A new plan is nobody else's, so that there is nobody to have been overtaken by.
MAKES = {"plans.add", "plans.next_number"}
