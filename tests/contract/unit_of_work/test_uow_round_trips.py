"""The unit of work: what is stored comes back, field by field and type by type."""

from datetime import UTC
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace
from uow_values import (
    ACTION,
    BARE_PLAN,
    BARE_RESOURCE,
    CHILD,
    CODE,
    EFFECT,
    FULL_APPLIED,
    FULL_CALL,
    FULL_CORRECTION,
    FULL_DECISION,
    FULL_DEPENDENCY,
    FULL_EFFECT,
    FULL_FORK,
    FULL_GROUP,
    FULL_PLAN,
    FULL_RESOURCE,
    FULL_SUPERSESSION,
    FULL_UNCHECKED,
    OTHER_PLAN,
    PLAN,
    ROOT,
    ROOT_DECISION,
    TRICKY,
    a_group,
    fill,
    ulid,
)

from cleveragents.application.ports.runtime import UnitOfWorkFactory
from cleveragents.domain.action import Step
from cleveragents.domain.actor_protocol import Message
from cleveragents.domain.changes import ChangeKind
from cleveragents.domain.checkpoint import CheckpointReason
from cleveragents.domain.conflicts import Hunk, Loss
from cleveragents.domain.correction import CorrectionStatus
from cleveragents.domain.decision import Decided, DecisionType, Position
from cleveragents.domain.effects import EffectState
from cleveragents.domain.errors import (
    CorrectionNotFoundError,
    DatabaseUnusableError,
    PlanNotFoundError,
)
from cleveragents.domain.ids import CheckpointId, DecisionId, EffectId, GroupId, PlanId, ResourceId
from cleveragents.domain.plan import State
from cleveragents.domain.resource import SandboxStatus
from cleveragents.domain.resource_kinds import ResourceType
from cleveragents.domain.subplan import ChildOf, ChildPlan, Conflict, ConflictKind, MergeOutcome
from cleveragents.infrastructure.database.unit_of_work import SqlUnitOfWorkFactory

EARLIER = Position(timeline=1, seq=4)
CHILD_PLAN = replace(FULL_PLAN, plan_id=PlanId("01J0000000000000000000CH1D"))
FULL_CHILD = ChildPlan(
    plan_id=CHILD_PLAN.plan_id,
    parent_id=PLAN,
    root_id=PLAN,
    decision_id=FULL_DECISION.decision_id,
    name="en",
    index=3,
    position=Position(timeline=2, seq=7),
    outcome=MergeOutcome.CONFLICT,
    invalidated=True,
    retries=1,
    reason="both changed it",
    conflicts=(
        Conflict(
            resource="code",
            path="a",
            kind=ConflictKind.RENAME,
            ours="deleted",
            theirs="a folder",
            ours_by="de",
            hunks=(Hunk(line=3, base=("b",), ours=("o", "\udcff"), theirs=()),),
            more=2,
            editable=True,
            key="k",
        ),
    ),
    merges=(Position(timeline=1, seq=5),),
    losses=(Loss(resource="code", path="a", whose="de", lines=("x",), count=2),),
)


def test_a_child_comes_back_whole_and_its_plan_knows_its_parent(
    database: SqlUnitOfWorkFactory,
) -> None:
    fill(database)
    with database() as uow:
        uow.plans.add(CHILD_PLAN)
        uow.subplans.add(replace(FULL_CHILD, name="other", invalidated=False))
        uow.subplans.save(FULL_CHILD)
        uow.commit()

    with database.reading() as uow:
        assert uow.subplans.get(CHILD_PLAN.plan_id) == FULL_CHILD
        assert uow.subplans.get(PLAN) is None
        assert list(uow.subplans.of_parent(PLAN)) == [FULL_CHILD]
        assert list(uow.subplans.below(PLAN)) == [FULL_CHILD]
        found = uow.plans.get(CHILD_PLAN.plan_id)
        assert found.child_of == ChildOf(
            parent_id=PLAN,
            root_id=PLAN,
            name="en",
            outcome=MergeOutcome.CONFLICT,
            invalidated=True,
            above="demo-7",
        )
        assert found.name == "demo-7/en"
        assert [plan.child_of for plan in uow.plans.list()] in (
            [None, found.child_of],
            [found.child_of, None],
        )
        assert [plan.plan_id for plan in uow.plans.places()] == [PLAN]


@pytest.mark.parametrize(
    "value",
    [
        FULL_PLAN,
        FULL_PLAN.error,
        ACTION.rollback_policy,
        FULL_RESOURCE,
        FULL_DECISION,
        FULL_DECISION.context,
        FULL_CALL,
        FULL_CALL.result,
        FULL_GROUP,
        FULL_GROUP.checkpoints[0],
        FULL_FORK,
        FULL_EFFECT,
        FULL_APPLIED,
        FULL_CHILD,
        FULL_CHILD.conflicts[0],
        FULL_CORRECTION,
        FULL_SUPERSESSION,
        FULL_DEPENDENCY,
    ],
    ids=lambda value: type(value).__name__,
)
def test_the_values_below_have_every_field_set_to_something_else_than_its_default(
    value: Any,
) -> None:
    for field in msgspec.structs.fields(type(value)):
        given = getattr(value, field.name)
        if field.name == "child_of":
            continue  # no column of its own: it is told from the row in `subplans`
        assert given != field.default
        if field.default_factory is not msgspec.NODEFAULT:
            assert given != field.default_factory()
        assert given not in (None, "", ()) or field.name == "enabled", field.name


def test_every_field_of_everything_comes_back(factory: UnitOfWorkFactory) -> None:
    fill(factory)

    with factory.reading() as uow:
        assert uow.plans.get(PLAN) == FULL_PLAN
        assert list(uow.resources.of_plan(PLAN)) == [FULL_RESOURCE, BARE_RESOURCE]
        assert uow.decisions.get(CHILD) == FULL_DECISION
        assert list(uow.decisions.of_plan(PLAN)) == [ROOT_DECISION, FULL_DECISION]
        assert list(uow.tool_calls.of_plan(PLAN)) == [FULL_CALL]
        assert uow.checkpoints.get(FULL_GROUP.group_id) == FULL_GROUP
        assert list(uow.checkpoints.of_plan(PLAN)) == [FULL_GROUP]
        assert list(uow.timelines.of_plan(PLAN)) == [FULL_FORK]
        assert list(uow.effects.of_plan(PLAN)) == [EFFECT, FULL_EFFECT]
        assert list(uow.effects.of_plan(OTHER_PLAN)) == []


def test_an_effect_is_replaced_whole_and_can_be_removed(factory: UnitOfWorkFactory) -> None:
    fill(factory)
    changed = replace(FULL_EFFECT, effect_id=EFFECT.effect_id, stands_for=None, position=EARLIER)

    with factory() as uow:
        uow.effects.remove(FULL_EFFECT)
        uow.effects.put(changed)
        uow.commit()

    with factory.reading() as uow:
        assert list(uow.effects.of_plan(PLAN)) == [changed]
        assert uow.effects.get(EFFECT.effect_id) == changed
        with pytest.raises(DatabaseUnusableError):
            uow.effects.get(FULL_EFFECT.effect_id)
        assert list(uow.effects.of_plan(OTHER_PLAN)) == []
        assert list(uow.decisions.dependencies(PLAN)) == [FULL_DEPENDENCY]
        assert list(uow.decisions.dependents(FULL_DEPENDENCY.depends_on)) == [FULL_DEPENDENCY]
        assert list(uow.decisions.dependents(FULL_DEPENDENCY.decision_id)) == []
        assert uow.corrections.get(FULL_CORRECTION.correction_id) == FULL_CORRECTION
        assert list(uow.corrections.of_plan(PLAN)) == [FULL_CORRECTION]
        assert list(uow.corrections.supersessions(PLAN)) == [FULL_SUPERSESSION]
        assert list(uow.corrections.unchecked(PLAN)) == [FULL_UNCHECKED]
        assert list(uow.corrections.unchecked(OTHER_PLAN)) == []
        assert list(uow.corrections.of_plan(OTHER_PLAN)) == []


def test_a_step_is_replaced_as_long_as_the_decision_to_do_so_counts(
    factory: UnitOfWorkFactory,
) -> None:
    fill(factory)

    with factory() as uow:
        uow.decisions.mark_superseded(PLAN, [])
        uow.commit()
    with factory.reading() as uow:
        decided = FULL_DECISION.decided.step if FULL_DECISION.decided else None
        assert uow.plans.get(PLAN).action.steps == (FULL_CORRECTION.replacement, decided)
        assert [plan.action.steps[0].name for plan in uow.plans.list()] == ["two"]

    with factory() as uow:
        uow.plans.save(uow.plans.get(PLAN))
        uow.decisions.mark_superseded(PLAN, [CHILD])
        uow.commit()
    with factory.reading() as uow:
        assert uow.plans.get(PLAN) == FULL_PLAN
        assert list(uow.plans.list()) == [FULL_PLAN]


def test_a_dependency_is_known_once_and_stays_as_it_was_first_told(
    factory: UnitOfWorkFactory,
) -> None:
    fill(factory)

    with factory() as uow:
        uow.decisions.depend(PLAN, [replace(FULL_DEPENDENCY, why="another reason")])
        uow.commit()
    with factory.reading() as uow:
        assert list(uow.decisions.dependencies(PLAN)) == [FULL_DEPENDENCY]


def test_decisions_are_found_by_the_beginning_of_their_id(factory: UnitOfWorkFactory) -> None:
    fill(factory)

    with factory.reading() as uow:
        assert list(uow.decisions.starting_with(ROOT[:25])) == [ROOT, CHILD]
        assert list(uow.decisions.starting_with(CHILD)) == [CHILD]
        assert list(uow.decisions.starting_with("7")) == []
        assert list(uow.decisions.ending_with(CHILD[-5:])) == [CHILD]


def test_a_correction_that_is_not_there_is_missed(factory: UnitOfWorkFactory) -> None:
    with factory() as uow:
        with pytest.raises(CorrectionNotFoundError):
            uow.corrections.get(FULL_CORRECTION.correction_id)
        with pytest.raises(DatabaseUnusableError):
            uow.corrections.save(FULL_CORRECTION)


def test_a_correction_is_saved_whole(factory: UnitOfWorkFactory) -> None:
    fill(factory)
    changed = replace(
        FULL_CORRECTION, status=CorrectionStatus.PENDING, intervention_id=None, replacement=None
    )

    with factory() as uow:
        uow.corrections.save(changed)
        uow.commit()
    with factory.reading() as uow:
        assert uow.corrections.get(changed.correction_id) == changed


def test_types_come_back_too(database: SqlUnitOfWorkFactory) -> None:
    fill(database)

    with database.reading() as uow:
        plan, resource = uow.plans.get(PLAN), uow.resources.of_plan(PLAN)[0]
        group, decision = uow.checkpoints.of_plan(PLAN)[0], uow.decisions.get(CHILD)
        call, effect = uow.tool_calls.of_plan(PLAN)[0], uow.effects.of_plan(PLAN)[1]
    for value, kind in (
        (plan.plan_id, PlanId),
        (plan.head, CheckpointId),
        (plan.rollback_target, GroupId),
        (plan.state, State),
        (resource.type, ResourceType),
        (resource.status, SandboxStatus),
        (resource.checkpointable, bool),
        (decision.superseded, bool),
        (decision.type, DecisionType),
        (call.undone, bool),
        (call.changes[0].kind, ChangeKind),
        (effect.state, EffectState),
        (effect.stands_for, EffectId),
        (group.reason, CheckpointReason),
        (group.labelled_by_hand, bool),
        (group.checkpoints[0].resource_id, ResourceId),
    ):
        assert type(value) is kind
    assert plan.created_at.tzinfo == UTC


def test_what_is_empty_stays_empty(factory: UnitOfWorkFactory) -> None:
    group = a_group(100, decision_id=None, checkpoints=FULL_GROUP.checkpoints[1:])
    bare = replace(
        group,
        checkpoints=(replace(group.checkpoints[0], decision_id=None),),
        resource_states=(),
        actor_state={},
        superseded=False,
        labelled_by_hand=False,
        label="",
    )
    with factory() as uow:
        uow.plans.add(BARE_PLAN)
        uow.resources.add(BARE_RESOURCE)
        uow.decisions.add(ROOT_DECISION)
        uow.checkpoints.add(bare)
        uow.commit()

    with factory.reading() as uow:
        assert uow.plans.get(PLAN) == BARE_PLAN
        assert list(uow.resources.of_plan(PLAN)) == [BARE_RESOURCE]
        assert uow.decisions.get(ROOT) == ROOT_DECISION
        assert uow.checkpoints.get(bare.group_id) == bare


def test_saving_replaces_every_field(factory: UnitOfWorkFactory) -> None:
    with factory() as uow:
        uow.plans.add(BARE_PLAN)
        uow.resources.add(replace(BARE_RESOURCE, resource_id=CODE))
        uow.commit()

    with factory() as uow:
        uow.plans.save(FULL_PLAN)
        uow.resources.save(FULL_RESOURCE)
        uow.commit()

    with factory.reading() as uow:
        assert uow.plans.get(PLAN) == FULL_PLAN
        assert list(uow.resources.of_plan(PLAN)) == [FULL_RESOURCE]


def test_saving_what_is_not_there_is_refused(database: SqlUnitOfWorkFactory) -> None:
    with pytest.raises(PlanNotFoundError), database() as uow:
        uow.plans.save(FULL_PLAN)


def test_saving_a_resource_that_is_not_there_is_refused(database: SqlUnitOfWorkFactory) -> None:
    with pytest.raises(DatabaseUnusableError), database() as uow:
        uow.resources.save(FULL_RESOURCE)


def test_a_chain_of_messages_comes_back_oldest_first(database: SqlUnitOfWorkFactory) -> None:
    fill(database)
    first = Message.after(None, TRICKY)
    second = Message.after(first.key, "two")
    other = Message.after(first.key, "another two")
    with database() as uow:
        uow.messages.add(PLAN, [first, second])
        uow.messages.add(PLAN, [first, other])
        uow.commit()

    with database.reading() as uow:
        assert list(uow.messages.chain(PLAN, second.key)) == [first, second]
        assert list(uow.messages.chain(PLAN, other.key)) == [first, other]
        assert list(uow.messages.chain(PLAN, "unknown")) == []
    with database() as uow:
        assert uow.messages.keep_only(PLAN, [other.key]) == 1
        assert list(uow.messages.chain(PLAN, second.key)) == []
        assert list(uow.messages.chain(PLAN, other.key)) == [first, other]


def test_steps_that_were_decided_become_steps_of_the_action(
    database: SqlUnitOfWorkFactory,
) -> None:
    fill(database)
    written = len(FULL_PLAN.action.steps)
    judging = {"type": DecisionType.VALIDATION_RESPONSE, "step_index": written + 1}
    later = (
        {"step_index": written},
        judging,
        {"step_index": written + 2},
        {**judging, "step_index": written + 3},
    )
    with database() as uow:
        for number, fields in enumerate(later):
            step = Step(name=f"step {number}", tool="shell")
            uow.decisions.add(
                replace(
                    FULL_DECISION,
                    decision_id=DecisionId(ulid(900 + number)),
                    position=Position(timeline=2, seq=900 + number),
                    superseded=False,
                    decided=Decided(step=step, state={}),
                    **fields,
                )
            )
        uow.commit()

    with database.reading() as uow:
        listed = next(plan for plan in uow.plans.list() if plan.plan_id == PLAN)
        for plan in (uow.plans.get(PLAN), listed):
            added = [step.name for step in plan.action.steps[written:]]
            # A validation after which the work went on keeps its place; the last is none.
            assert added == ["step 0", "step 1", "step 2"]
