"""The unit of work: what is asked for is found, and marking and deleting touch nothing else."""

import sqlite3
from collections.abc import Callable, Collection
from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace
from uow_values import (
    BARE_PLAN,
    CHILD,
    FULL_CALL,
    FULL_DECISION,
    FULL_FORK,
    FULL_GROUP,
    OTHER_PLAN,
    PLAN,
    ROOT,
    WHEN,
    a_group,
    fill,
    ulid,
)

from cleveragents.application.ports.runtime import UnitOfWork, UnitOfWorkFactory
from cleveragents.domain.checkpoint import PrunedCheckpoint
from cleveragents.domain.decision import Fork, Position
from cleveragents.domain.errors import (
    DatabaseUnusableError,
    DecisionNotFoundError,
    PlanNotFoundError,
)
from cleveragents.domain.ids import CheckpointId, DecisionId, GroupId, PlanId, ToolCallId
from cleveragents.domain.retention import GroupOutline, StateCounts
from cleveragents.infrastructure.database.unit_of_work import SqlUnitOfWorkFactory

# --- finding ------------------------------------------------------------------------------------


def test_what_is_unknown_is_refused(factory: UnitOfWorkFactory) -> None:
    unknown = ulid(999)
    asked: list[tuple[type[Exception], Callable[[UnitOfWork], object]]] = [
        (PlanNotFoundError, lambda uow: uow.plans.get(PlanId(unknown))),
        (DecisionNotFoundError, lambda uow: uow.decisions.get(DecisionId(unknown))),
        (DatabaseUnusableError, lambda uow: uow.checkpoints.get(GroupId(unknown))),
        (DatabaseUnusableError, lambda uow: uow.checkpoints.holding(CheckpointId(unknown))),
    ]

    for error, ask in asked:
        with pytest.raises(error), factory.reading() as uow:
            ask(uow)


def test_groups_are_found_by_their_names(factory: UnitOfWorkFactory) -> None:
    fill(factory)

    with factory.reading() as uow:
        for checkpoint in FULL_GROUP.checkpoints:
            assert uow.checkpoints.holding(checkpoint.checkpoint_id) == FULL_GROUP
        for name in FULL_GROUP.names():
            assert uow.checkpoints.owner_of(name) == PLAN
        assert uow.checkpoints.owner_of(ulid(999)) is None
        assert uow.checkpoints.count(PLAN) == 1
        assert uow.checkpoints.count(OTHER_PLAN) == 0
        assert uow.checkpoints.state_counts(PLAN) == StateCounts(states=1, alike=1)
        assert uow.checkpoints.state_counts(OTHER_PLAN) == StateCounts(states=0, alike=0)


def test_groups_are_found_by_what_people_may_call_them(factory: UnitOfWorkFactory) -> None:
    fill(factory)
    other = replace(a_group(110), label="another")
    with factory() as uow:
        uow.checkpoints.add(other)
        uow.commit()

    with factory.reading() as uow:
        for name in FULL_GROUP.names():
            for called in (name, name.lower(), name[:-1]):
                assert FULL_GROUP in uow.checkpoints.called(PLAN, called), called
            assert uow.checkpoints.called(OTHER_PLAN, name) == []
        assert list(uow.checkpoints.called(PLAN, FULL_GROUP.label)) == [FULL_GROUP]
        both = sorted((FULL_GROUP, other), key=lambda group: group.position.seq)
        assert list(uow.checkpoints.called(PLAN, ulid(110)[:8])) == both
        for name in (ulid(110)[:3], "something else", "", "\udcff", "~"):
            assert uow.checkpoints.called(PLAN, name) == []
            assert uow.checkpoints.pruned(PLAN, name) is None
            assert uow.checkpoints.owner_of(name) is None


def test_a_label_is_a_persons_own_only_if_a_person_gave_it(factory: UnitOfWorkFactory) -> None:
    fill(factory)
    made = replace(a_group(110), label="made by us", labelled_by_hand=False)
    given = replace(a_group(120), label="given", labelled_by_hand=True)
    with factory() as uow:
        uow.checkpoints.add(made)
        uow.checkpoints.add(given)
        uow.commit()

    with factory.reading() as uow:
        assert uow.checkpoints.has_own_label(PLAN, "given")
        assert not uow.checkpoints.has_own_label(PLAN, "made by us")
        assert not uow.checkpoints.has_own_label(OTHER_PLAN, "given")


def test_one_plan_does_not_see_what_belongs_to_another(factory: UnitOfWorkFactory) -> None:
    fill(factory)
    with factory() as uow:
        uow.plans.add(replace(BARE_PLAN, plan_id=OTHER_PLAN))
        uow.timelines.add(OTHER_PLAN, Fork(timeline=1, start=Position(timeline=0, seq=1)))
        uow.commit()

    with factory.reading() as uow:
        assert [plan.plan_id for plan in uow.plans.list()] == [OTHER_PLAN, PLAN]
        assert list(uow.resources.of_plan(OTHER_PLAN)) == []
        assert list(uow.decisions.of_plan(OTHER_PLAN)) == []
        assert list(uow.tool_calls.of_plan(OTHER_PLAN)) == []
        assert list(uow.checkpoints.of_plan(OTHER_PLAN)) == []
        assert list(uow.timelines.of_plan(PLAN)) == [FULL_FORK]


def test_the_last_plan_made_comes_first_whatever_its_id_and_its_time_say(
    factory: UnitOfWorkFactory,
) -> None:
    fill(factory)
    early = replace(BARE_PLAN, plan_id=PlanId(ulid(0)), created_at=WHEN - timedelta(days=9))
    with factory() as uow:
        uow.plans.add(early)
        uow.commit()

    with factory.reading() as uow:
        assert [plan.plan_id for plan in uow.plans.list()] == [early.plan_id, PLAN]
        # The first resource says the place of a plan.
        assert [(p.plan_id, p.action, p.place) for p in uow.plans.places()] == [
            (early.plan_id, "demo", None),
            (PLAN, "demo", "/p ü"),
        ]


def test_everything_comes_in_the_order_in_which_it_happened(factory: UnitOfWorkFactory) -> None:
    """Also where ids, timelines and the order of insertion say otherwise."""
    decisions = [
        replace(FULL_DECISION, decision_id=DecisionId(ulid(60 - n)), position=position)
        for n, position in enumerate(Position(timeline=3 - s, seq=s) for s in (2, 3, 4))
    ]
    groups = [
        replace(
            a_group(200 - 10 * n, decision_id=None, resource_states=(), checkpoints=()),
            position=Position(timeline=3 - n, seq=20 + n),
        )
        for n in range(3)
    ]
    fill(factory)
    with factory() as uow:
        for decision in reversed(decisions):
            uow.decisions.add(decision)
        for group in reversed(groups):
            uow.checkpoints.add(group)
        for number in (9, 8):
            uow.timelines.add(PLAN, replace(FULL_FORK, timeline=number))
        uow.commit()

    with factory.reading() as uow:
        assert [d.position.seq for d in uow.decisions.of_plan(PLAN)] == [1, 2, 3, 4, 9]
        assert [g.position.seq for g in uow.checkpoints.of_plan(PLAN)] == [20, 21, 22, 100]
        assert [fork.timeline for fork in uow.timelines.of_plan(PLAN)] == [3, 8, 9]


def test_what_belongs_to_one_decision_comes_alone_and_in_order(factory: UnitOfWorkFactory) -> None:
    fill(factory)
    later = replace(a_group(200), position=Position(timeline=3, seq=200))
    earlier = replace(a_group(210), position=Position(timeline=3, seq=199))
    call = replace(FULL_CALL, call_id=ToolCallId(ulid(400)), decision_id=ROOT)
    with factory() as uow:
        for group in (later, earlier, a_group(220, decision_id=ROOT)):
            uow.checkpoints.add(group)
        uow.tool_calls.add(call)
        uow.commit()

    with factory.reading() as uow:
        assert list(uow.checkpoints.of_decision(PLAN, CHILD)) == [FULL_GROUP, earlier, later]
        assert list(uow.tool_calls.of_decision(PLAN, CHILD)) == [FULL_CALL]
        assert list(uow.tool_calls.of_decision(PLAN, ROOT)) == [call]
        assert list(uow.checkpoints.of_decision(OTHER_PLAN, CHILD)) == []


def test_the_snapshots_that_groups_need_are_those_of_their_states_and_boundaries(
    factory: UnitOfWorkFactory,
) -> None:
    fill(factory)
    with factory() as uow:
        uow.checkpoints.add(a_group(200, resource_states=()))
        uow.commit()

    with factory.reading() as uow:
        needed = uow.checkpoints.snapshots(PLAN)
        assert needed == {
            state.resource_id: {state.snapshot, state.boundary}
            for state in FULL_GROUP.resource_states
        }
        assert needed
        assert uow.checkpoints.snapshots(OTHER_PLAN) == {}


# --- flags and deleting -------------------------------------------------------------------------


Mark = Callable[[UnitOfWork, Collection[Any]], None]
Marked = Callable[[UnitOfWork], set[Any]]
MARKS: dict[str, tuple[list[Any], Mark, Marked]] = {
    "decisions": (
        [ROOT, CHILD, DecisionId(ulid(23))],
        lambda uow, keys: uow.decisions.mark_superseded(PLAN, keys),
        lambda uow: {d.decision_id for d in uow.decisions.of_plan(PLAN) if d.superseded},
    ),
    "groups": (
        [GroupId(ulid(n)) for n in (100, 110, 120)],
        lambda uow, keys: uow.checkpoints.mark_superseded(PLAN, keys),
        lambda uow: {g.group_id for g in uow.checkpoints.of_plan(PLAN) if g.superseded},
    ),
    "tool calls": (
        [ToolCallId(ulid(n)) for n in (41, 42, 43)],
        lambda uow, keys: uow.tool_calls.mark_undone(PLAN, keys),
        lambda uow: {c.call_id for c in uow.tool_calls.of_plan(PLAN) if c.undone},
    ),
}


@pytest.mark.parametrize("what", MARKS)
def test_marking_is_exact_in_both_directions(factory: UnitOfWorkFactory, what: str) -> None:
    keys, mark, marked = MARKS[what]
    fill(factory)
    with factory() as uow:
        uow.decisions.add(replace(FULL_DECISION, decision_id=DecisionId(ulid(23))))
        for number in (42, 43):
            uow.tool_calls.add(replace(FULL_CALL, call_id=ToolCallId(ulid(number))))
        for number in (110, 120):
            uow.checkpoints.add(a_group(number))
        uow.commit()

    for wanted in ([keys[0], keys[1]], [keys[1], keys[2]], keys, [], [keys[0], ulid(999)]):
        with factory() as uow:
            mark(uow, wanted)
            uow.commit()
        with factory.reading() as uow:
            assert marked(uow) == set(wanted) & set(keys)


def test_marking_leaves_other_plans_alone(factory: UnitOfWorkFactory) -> None:
    fill(factory)
    with factory() as uow:
        uow.plans.add(replace(BARE_PLAN, plan_id=OTHER_PLAN))
        for mark in (
            uow.decisions.mark_superseded,
            uow.checkpoints.mark_superseded,
            uow.tool_calls.mark_undone,
        ):
            mark(OTHER_PLAN, [])
        uow.commit()

    with factory.reading() as uow:
        assert uow.decisions.get(CHILD).superseded
        assert uow.checkpoints.of_plan(PLAN)[0].superseded
        assert uow.tool_calls.of_plan(PLAN)[0].undone


def test_deleting_a_group_takes_everything_of_it_and_nothing_else(
    database: SqlUnitOfWorkFactory, other: sqlite3.Connection
) -> None:
    fill(database)
    with database() as uow:
        uow.checkpoints.add(a_group(110))
        uow.commit()

    with database() as uow:
        gone = {FULL_GROUP.group_id: "too old", GroupId(ulid(999)): "never was"}
        uow.checkpoints.delete(PLAN, gone, WHEN)
        uow.commit()

    for table in ("checkpoint_groups", "checkpoints", "checkpoint_resource_states"):
        rows = other.execute(f"SELECT DISTINCT group_id FROM {table}").fetchall()
        assert rows == [(ulid(110),)]
    with database.reading() as uow:
        assert list(uow.checkpoints.of_plan(PLAN)) == [a_group(110)]
        assert uow.decisions.get(CHILD) == FULL_DECISION


def test_a_deleted_group_is_remembered_by_every_name_it_had(factory: UnitOfWorkFactory) -> None:
    fill(factory)
    with factory() as uow:
        uow.checkpoints.delete(PLAN, {FULL_GROUP.group_id: "too old"}, WHEN)
        uow.commit()

    expected = PrunedCheckpoint(group_id=FULL_GROUP.group_id, reason="too old", pruned_at=WHEN)
    with factory.reading() as uow:
        for name in (*FULL_GROUP.names(), FULL_GROUP.label):
            assert uow.checkpoints.pruned(PLAN, name) == expected
            assert uow.checkpoints.pruned(OTHER_PLAN, name) is None
        assert uow.checkpoints.pruned(PLAN, "something else") is None


def test_positions_are_those_of_the_groups_of_the_plan(factory: UnitOfWorkFactory) -> None:
    fill(factory)
    with factory.reading() as uow:
        assert uow.checkpoints.positions(PLAN) == {FULL_GROUP.group_id: FULL_GROUP.position}
        assert uow.checkpoints.positions(OTHER_PLAN) == {}


def test_the_outline_of_a_group_says_what_the_group_says(factory: UnitOfWorkFactory) -> None:
    fill(factory)
    with factory.reading() as uow:
        (found,) = uow.checkpoints.outlines(PLAN)

    assert found == GroupOutline(
        group_id=FULL_GROUP.group_id,
        label=FULL_GROUP.label,
        state_hash=FULL_GROUP.state_hash,
        labelled_by_hand=FULL_GROUP.labelled_by_hand,
        created_at=FULL_GROUP.created_at,
        size_bytes=FULL_GROUP.size_bytes,
    )


def test_a_number_is_given_once_and_counted_by_the_name_of_the_action(
    factory: UnitOfWorkFactory,
) -> None:
    other = replace(BARE_PLAN, action=replace(BARE_PLAN.action, name="other"))
    with factory() as uow:
        assert [uow.plans.next_number(plan) for plan in (BARE_PLAN, BARE_PLAN, other)] == [1, 2, 1]
        uow.commit()
    with factory() as uow:
        assert uow.plans.next_number(BARE_PLAN) == 3  # and is not kept: nothing is committed
    with factory() as uow:
        assert uow.plans.next_number(BARE_PLAN) == 3


def test_plans_are_found_by_their_action_and_by_the_end_of_their_id(
    factory: UnitOfWorkFactory,
) -> None:
    fill(factory)
    with factory() as uow:
        uow.plans.add(replace(BARE_PLAN, plan_id=OTHER_PLAN, number=8))
        uow.commit()

    with factory.reading() as uow:
        assert [plan.name for plan in uow.plans.of_action("demo")] == ["demo-8", "demo-7"]
        assert [plan.plan_id for plan in uow.plans.of_action("demo", 7)] == [PLAN]
        assert list(uow.plans.of_action("dem")) == list(uow.plans.of_action("demo", 9)) == []
        assert list(uow.plans.ending_with(OTHER_PLAN[-6:])) == [OTHER_PLAN]
