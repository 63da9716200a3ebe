"""The unit of work: what is stored comes back, only a commit keeps it, and errors are ours."""

import dataclasses
import os
import sqlite3
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Collection, Generator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from cleveragents.application.ports import UnitOfWork, UnitOfWorkFactory
from cleveragents.domain.acting import Message
from cleveragents.domain.action import (
    Action,
    Parameter,
    ResourceSpec,
    ResourceType,
    RollbackPolicy,
    Step,
    ToolSpec,
)
from cleveragents.domain.changes import ChangeKind, FileChange
from cleveragents.domain.checkpoint import (
    PLAN_STATE,
    Checkpoint,
    CheckpointGroup,
    CheckpointReason,
    PrunedCheckpoint,
    ResourceState,
)
from cleveragents.domain.correction import (
    Correction,
    CorrectionMode,
    CorrectionStatus,
    Supersession,
)
from cleveragents.domain.decision import (
    Decided,
    Decision,
    DecisionType,
    Dependency,
    Fork,
    Position,
    ToolCall,
    ToolCallStatus,
    ToolResult,
)
from cleveragents.domain.effects import Effect, EffectState
from cleveragents.domain.errors import (
    CorrectionNotFoundError,
    DatabaseBusyError,
    DatabaseTooNewError,
    DatabaseUnusableError,
    DataDirError,
    DecisionNotFoundError,
    PlanNotFoundError,
)
from cleveragents.domain.footprint import Footprint
from cleveragents.domain.ids import (
    CheckpointId,
    CorrectionId,
    DecisionId,
    EffectId,
    GroupId,
    PlanId,
    ResourceId,
    ToolCallId,
)
from cleveragents.domain.plan import Phase, Plan, PlanFailure, State
from cleveragents.domain.retention import GroupOutline
from cleveragents.domain.sandbox import PlanResource, SandboxStatus
from cleveragents.domain.subplan import (
    ChildOf,
    ChildPlan,
    Conflict,
    ConflictKind,
    MergeOutcome,
)
from cleveragents.infrastructure.database import engine
from cleveragents.infrastructure.database.engine import Database
from cleveragents.infrastructure.database.unit_of_work import SqlUnitOfWorkFactory

# The fakes that the services are tested over must keep the same promises.
sys.path.append(str(Path(__file__).parents[1] / "unit" / "application"))
from fakes import Faults, MemoryDatabase  # pyright: ignore[reportMissingImports]

ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
# Microseconds, and another zone: what comes back is the same moment.
WHEN = datetime(2025, 3, 1, 12, 30, 15, 123456, tzinfo=timezone(timedelta(hours=2)))
TRICKY = 'ü "quoted" \\ \n\0 \u2028 😀 %s ? :x'


def ulid(number: int) -> str:
    return "01" + "".join(ALPHABET[(number >> shift) & 31] for shift in range(115, -1, -5))


PLAN, OTHER_PLAN = PlanId(ulid(1)), PlanId(ulid(2))
CODE, DOCS = ResourceId(ulid(11)), ResourceId(ulid(12))
ROOT, CHILD = DecisionId(ulid(21)), DecisionId(ulid(22))

ACTION = Action(
    name="demo",
    description="Do it",
    resources=(
        ResourceSpec(
            name="code",
            type=ResourceType.GIT_CHECKOUT,
            location="/p",
            include=(".env",),
            exclude=("target/",),
            checkpointable=False,
        ),
    ),
    steps=(Step(name="one", tool="own", arguments={"x": [1, None, {"y": True}]}, uses=("none",)),),
    tools=(ToolSpec(name="own", parameters=(Parameter(name="x"),), command=("echo", "{x}")),),
    rollback_policy=RollbackPolicy(enabled=False, require_checkpoints=False, max_checkpoints=7),
    max_retries_per_step=3,
)
FULL_PLAN = Plan(
    plan_id=PLAN,
    action=ACTION,
    phase=Phase.APPLY,
    state=State.CONSTRAINED,
    attempt=3,
    last_completed_step=4,
    head=CheckpointId(ulid(31)),
    rollback_target=GroupId(ulid(32)),
    safety_group=GroupId(ulid(33)),
    rollback_only=("code:src/a.py", "code:odd\udcff"),
    timeline=5,
    seq=6,
    actor_state={"next_step": 2, "deep": [1.5, None, {"a": False}]},
    error=PlanFailure(
        message=TRICKY,
        hint="hint",
        code="tool-failed",
        tool="shell",
        step=0,
        checkpoint=CheckpointId(ulid(34)),
        recoverable=False,
    ),
    applied={"code": "abc", "docs": "def"},
    created_at=WHEN,
    started_at=WHEN + timedelta(seconds=1),
    finished_at=WHEN + timedelta(seconds=2),
)
BARE_PLAN = Plan(plan_id=PLAN, action=ACTION, created_at=WHEN)
FULL_RESOURCE = PlanResource(
    resource_id=CODE,
    plan_id=PLAN,
    name="code",
    type=ResourceType.FS_DIRECTORY,
    location="/p ü",
    base="abc",
    sandbox_path="/s",
    status=SandboxStatus.READY,
    include=(".env",),
    exclude=("target/", "*.o"),
    checkpointable=False,
    base_snapshot="first",
    boundary="latest",
    details={"apply": {"commit": "abc", "n": 1}},
)
BARE_RESOURCE = PlanResource(
    resource_id=DOCS,
    plan_id=PLAN,
    name="docs",
    type=ResourceType.GIT_CHECKOUT,
    location="/d",
    base="",
    sandbox_path="",
)
ROOT_DECISION = Decision(
    decision_id=ROOT,
    plan_id=PLAN,
    parent_id=None,
    position=Position(timeline=0, seq=1),
    type=DecisionType.PROMPT_DEFINITION,
    question="",
    chosen="",
    phase="strategize",
    step_index=None,
    attempt=1,
    created_at=WHEN,
)
FULL_DECISION = Decision(
    decision_id=CHILD,
    plan_id=PLAN,
    parent_id=ROOT,
    position=Position(timeline=2, seq=9),
    type=DecisionType.TOOL_INVOCATION,
    question="What?",
    chosen=TRICKY,
    alternatives=("this", "that"),
    rationale="because",
    confidence=0.75,
    context={"tool": "shell", "actor_state": {"n": 1}},
    phase="execute",
    step_index=1,
    attempt=2,
    superseded=True,
    decided=Decided(
        step=Step(name="s", tool="shell", arguments={"command": TRICKY}, uses=("a",)),
        state={"head": "k"},
    ),
    created_at=WHEN,
)
FULL_CALL = ToolCall(
    call_id=ToolCallId(ulid(41)),
    plan_id=PLAN,
    decision_id=CHILD,
    position=Position(timeline=2, seq=10),
    step_index=3,
    tool="shell",
    arguments={"command": TRICKY + "\ud800", "timeout": 1.5},
    status=ToolCallStatus.FAILED,
    result=ToolResult(output=TRICKY, values={"exit_code": 1}),
    error="it failed",
    changes=(
        FileChange(path="a", kind=ChangeKind.ADDED),
        FileChange(path="b", kind=ChangeKind.DELETED),
    ),
    touched={
        "code": Footprint(paths=frozenset({"a", "b\udcff"}), folders=frozenset({"d"}), whole=True)
    },
    side_effects=("sent a mail",),
    started_at=WHEN,
    finished_at=WHEN + timedelta(seconds=3),
    undone=True,
)
EARLIER = Position(timeline=1, seq=4)
EFFECT = Effect(
    effect_id=EffectId(ulid(51)),
    plan_id=PLAN,
    decision_id=CHILD,
    position=Position(timeline=2, seq=9),
    step_index=3,
    tool="shell",
    arguments={"to": TRICKY, "n": 1},
    arguments_hash="sha256:9",
    effects=("a mail", TRICKY),
    state=EffectState.DONE,
    result=ToolResult(output=TRICKY, values={"exit_code": 0}),
    compensate="unmail",
    started_at=WHEN,
)
FULL_EFFECT = replace(
    EFFECT,
    effect_id=EffectId(ulid(52)),
    position=Position(timeline=2, seq=11),
    stands_for=EFFECT.effect_id,
    error="it failed",
    finished_at=WHEN + timedelta(seconds=3),
)


def a_group(number: int, **fields: Any) -> CheckpointGroup:
    group_id = GroupId(ulid(number))
    resource = Checkpoint(
        checkpoint_id=CheckpointId(ulid(number + 1)),
        group_id=group_id,
        plan_id=PLAN,
        decision_id=CHILD,
        resource_id=CODE,
        resource="code",
        checkpoint_type="fs-directory",
        sandbox_ref="abc",
        filesystem_path="/s",
        size_bytes=1 << 40,
        created_at=WHEN,
        step_index=3,
        state_hash="sha256:1",
        label="before",
        metadata={"reason": "manual", "skipped": ["x"]},
    )
    plan_state = replace(
        resource,
        checkpoint_id=CheckpointId(ulid(number + 2)),
        resource_id=None,
        resource="plan",
        checkpoint_type=PLAN_STATE,
    )
    values: dict[str, Any] = {
        "group_id": group_id,
        "plan_id": PLAN,
        "position": Position(timeline=2, seq=number),
        "decision_id": CHILD,
        "step_index": 3,
        "reason": CheckpointReason.MANUAL,
        "source": "user",
        "phase": "execute",
        "label": "before ü",
        "labelled_by_hand": True,
        "state_hash": "sha256:3",
        "created_at": WHEN,
        "last_completed_step": 2,
        "attempt": 4,
        "actor_state": {"next_step": 3},
        "superseded": True,
        "checkpoints": (resource, plan_state),
        "resource_states": (
            ResourceState(resource_id=CODE, snapshot="s1", state_hash="h1", boundary="b1"),
            ResourceState(resource_id=DOCS, snapshot="s2", state_hash="h2", boundary="b2"),
        ),
        **fields,
    }
    return CheckpointGroup(**values)


FULL_GROUP = a_group(100)
FULL_FORK = Fork(timeline=3, start=Position(timeline=2, seq=7))
FULL_CORRECTION = Correction(
    correction_id=CorrectionId(ulid(51)),
    plan_id=PLAN,
    decision_id=CHILD,
    mode=CorrectionMode.APPEND,
    guidance=TRICKY,
    status=CorrectionStatus.DONE,
    target_group=GroupId(ulid(100)),
    safety_group=GroupId(ulid(101)),
    intervention_id=CHILD,
    affected=(CHILD, ROOT),
    steps=(0, 3),
    restored={"code": ("a", "b\udcff"), "db": None},
    step_index=0,
    replacement=Step(name="two", tool="shell", arguments={"command": "x"}, uses=("one",)),
    created_at=WHEN,
)
FULL_SUPERSESSION = Supersession(
    decision_id=CHILD,
    correction_id=FULL_CORRECTION.correction_id,
    position=Position(timeline=2, seq=12),
)
FULL_DEPENDENCY = Dependency(decision_id=CHILD, depends_on=ROOT, why=TRICKY)


@pytest.fixture(scope="session")
def migrated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A new database, made once; the tests work on copies."""
    path = tmp_path_factory.mktemp("migrated") / "c.db"
    with SqlUnitOfWorkFactory(Database(str(path))).reading():
        pass
    return path


@pytest.fixture
def path(tmp_path: Path, migrated: Path) -> Path:
    copied = tmp_path / "c.db"
    with closing(sqlite3.connect(migrated)) as old, closing(sqlite3.connect(copied)) as new:
        old.backup(new)
    return copied


@pytest.fixture
def database(path: Path) -> SqlUnitOfWorkFactory:
    return SqlUnitOfWorkFactory(Database(str(path)))


@pytest.fixture(params=["sqlite", "memory"])
def factory(request: pytest.FixtureRequest) -> UnitOfWorkFactory:
    if request.param == "memory":
        return MemoryDatabase(Faults())
    return request.getfixturevalue("database")


@pytest.fixture
def other(path: Path) -> Generator[sqlite3.Connection]:
    """Another process, as far as the database can tell."""
    with closing(sqlite3.connect(path, isolation_level=None, timeout=0.05)) as connection:
        yield connection


CHILD_PLAN = dataclasses.replace(FULL_PLAN, plan_id=PlanId("01J0000000000000000000CH1D"))
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
    conflicts=(Conflict(resource="code", path="a", kind=ConflictKind.RENAME),),
    merges=(Position(timeline=1, seq=5),),
)


def test_a_child_comes_back_whole_and_its_plan_knows_its_parent(
    database: SqlUnitOfWorkFactory,
) -> None:
    fill(database)
    with database() as uow:
        uow.plans.add(CHILD_PLAN)
        uow.subplans.add(dataclasses.replace(FULL_CHILD, name="other", invalidated=False))
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
        )
        assert [plan.child_of for plan in uow.plans.list()] in (
            [None, found.child_of],
            [found.child_of, None],
        )


def fill(factory: UnitOfWorkFactory) -> None:
    with factory() as uow:
        uow.plans.add(FULL_PLAN)
        uow.resources.add(FULL_RESOURCE)
        uow.resources.add(BARE_RESOURCE)
        uow.decisions.add(ROOT_DECISION)
        uow.decisions.add(FULL_DECISION)
        uow.tool_calls.add(FULL_CALL)
        uow.checkpoints.add(FULL_GROUP)
        uow.timelines.add(PLAN, FULL_FORK)
        uow.effects.put(EFFECT)
        uow.effects.put(FULL_EFFECT)
        uow.decisions.depend(PLAN, [FULL_DEPENDENCY])
        uow.corrections.add(FULL_CORRECTION)
        uow.corrections.supersede(PLAN, [FULL_SUPERSESSION])
        uow.commit()


# --- what is stored comes back ------------------------------------------------------------------


@pytest.mark.parametrize(
    "value",
    [
        FULL_PLAN,
        FULL_PLAN.error,
        ACTION.rollback_policy,
        FULL_RESOURCE,
        FULL_DECISION,
        FULL_CALL,
        FULL_CALL.result,
        FULL_GROUP,
        FULL_GROUP.checkpoints[0],
        FULL_FORK,
        FULL_EFFECT,
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
    for field in dataclasses.fields(value):
        given = getattr(value, field.name)
        if field.name == "child_of":
            continue  # no column of its own: it is told from the row in `subplans`
        assert given != field.default
        if field.default_factory is not dataclasses.MISSING:
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


def test_an_effect_is_replaced_whole_and_can_be_removed(factory: UnitOfWorkFactory) -> None:
    fill(factory)
    changed = replace(FULL_EFFECT, effect_id=EFFECT.effect_id, stands_for=None, position=EARLIER)

    with factory() as uow:
        uow.effects.remove(FULL_EFFECT.effect_id)
        uow.effects.put(changed)
        uow.commit()

    with factory.reading() as uow:
        assert list(uow.effects.of_plan(PLAN)) == [changed]
        assert uow.effects.get(EFFECT.effect_id) == changed
        with pytest.raises(DatabaseUnusableError):
            uow.effects.get(FULL_EFFECT.effect_id)
        assert list(uow.effects.of_plan(OTHER_PLAN)) == []
        assert list(uow.decisions.dependencies(PLAN)) == [FULL_DEPENDENCY]
        assert uow.corrections.get(FULL_CORRECTION.correction_id) == FULL_CORRECTION
        assert list(uow.corrections.of_plan(PLAN)) == [FULL_CORRECTION]
        assert list(uow.corrections.supersessions(PLAN)) == [FULL_SUPERSESSION]
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
        uow.checkpoints.delete(gone, WHEN)
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
        uow.checkpoints.delete({FULL_GROUP.group_id: "too old"}, WHEN)
        uow.commit()

    expected = PrunedCheckpoint(group_id=FULL_GROUP.group_id, reason="too old", pruned_at=WHEN)
    with factory.reading() as uow:
        for name in (*FULL_GROUP.names(), FULL_GROUP.label):
            assert uow.checkpoints.pruned(PLAN, name) == expected
            assert uow.checkpoints.pruned(OTHER_PLAN, name) is None
        assert uow.checkpoints.pruned(PLAN, "something else") is None


def test_the_outline_of_a_group_says_what_the_group_says(factory: UnitOfWorkFactory) -> None:
    fill(factory)
    with factory.reading() as uow:
        (found,) = uow.checkpoints.outlines(PLAN)

    assert found == GroupOutline(
        group_id=FULL_GROUP.group_id,
        label=FULL_GROUP.label,
        labelled_by_hand=FULL_GROUP.labelled_by_hand,
        created_at=FULL_GROUP.created_at,
        size_bytes=FULL_GROUP.size_bytes,
    )


# --- transactions -------------------------------------------------------------------------------


def test_leaving_without_a_commit_undoes_everything(factory: UnitOfWorkFactory) -> None:
    fill(factory)
    with factory() as uow:
        uow.plans.save(replace(BARE_PLAN, attempt=99))
        uow.plans.add(replace(BARE_PLAN, plan_id=OTHER_PLAN))
        uow.checkpoints.delete({FULL_GROUP.group_id: "too old"}, WHEN)

    with factory.reading() as uow:
        assert list(uow.plans.list()) == [FULL_PLAN]
        assert list(uow.checkpoints.of_plan(PLAN)) == [FULL_GROUP]


class KilledError(BaseException):
    pass


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, KilledError])
def test_leaving_by_an_error_undoes_everything_and_the_next_one_works(
    factory: UnitOfWorkFactory, error: type[BaseException]
) -> None:
    with pytest.raises(error), factory() as uow:
        uow.plans.add(BARE_PLAN)
        raise error

    fill(factory)
    with factory.reading() as uow:
        assert uow.plans.get(PLAN) == FULL_PLAN


def test_a_statement_that_fails_takes_the_ones_before_it_along(
    database: SqlUnitOfWorkFactory,
) -> None:
    with pytest.raises(DatabaseUnusableError), database() as uow:
        uow.plans.add(BARE_PLAN)
        uow.plans.add(BARE_PLAN)

    with database.reading() as uow:
        assert list(uow.plans.list()) == []


def test_what_one_process_commits_another_one_finds(
    database: SqlUnitOfWorkFactory, path: Path
) -> None:
    fill(database)

    with SqlUnitOfWorkFactory(Database(str(path))).reading() as uow:
        assert uow.plans.get(PLAN) == FULL_PLAN


def test_what_is_written_after_the_commit_is_not_kept(database: SqlUnitOfWorkFactory) -> None:
    try:
        with database() as uow:
            uow.plans.add(BARE_PLAN)
            uow.commit()
            uow.plans.save(FULL_PLAN)
    except sqlite3.Error:
        pass

    with database.reading() as uow:
        assert uow.plans.get(PLAN) == BARE_PLAN


def test_a_view_stays_the_same_while_others_write(
    database: SqlUnitOfWorkFactory, other: sqlite3.Connection
) -> None:
    fill(database)

    with database.reading() as uow:
        assert uow.plans.get(PLAN).attempt == 3
        other.execute("UPDATE plans SET attempt = 77")
        other.execute("UPDATE decisions SET attempt = 77")
        assert uow.plans.get(PLAN).attempt == 3
        assert uow.decisions.get(CHILD).attempt == 2

    with database.reading() as uow:
        assert uow.plans.get(PLAN).attempt == 77


def test_reading_never_waits_for_a_writer(
    path: Path, other: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(SqlUnitOfWorkFactory(Database(str(path))))
    other.execute("BEGIN IMMEDIATE")
    other.execute("UPDATE plans SET attempt = 77")
    monkeypatch.setattr(engine, "BUSY_SECONDS", 0.0)

    # A new process, which must get past opening the file as well.
    with SqlUnitOfWorkFactory(Database(str(path))).reading() as uow:
        assert uow.plans.get(PLAN).attempt == 3


def test_whoever_reads_does_not_keep_a_writer_waiting(
    database: SqlUnitOfWorkFactory, other: sqlite3.Connection
) -> None:
    fill(database)

    with database.reading() as uow:
        uow.plans.get(PLAN)
        other.execute("BEGIN IMMEDIATE")
        other.execute("UPDATE plans SET attempt = 77")
        other.execute("COMMIT")


def test_a_writer_is_alone_from_its_first_line_on(
    database: SqlUnitOfWorkFactory, other: sqlite3.Connection
) -> None:
    with database(), pytest.raises(sqlite3.OperationalError, match="locked"):
        other.execute("BEGIN IMMEDIATE")
    other.execute("BEGIN IMMEDIATE")


def test_a_database_in_use_is_told_as_such_after_the_waiting_time(
    path: Path, other: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "BUSY_SECONDS", 0.05)
    database = SqlUnitOfWorkFactory(Database(str(path)))
    other.execute("BEGIN IMMEDIATE")

    with pytest.raises(DatabaseBusyError) as caught, database():
        pass
    assert str(path) in caught.value.message

    other.execute("COMMIT")
    fill(database)


def test_threads_do_not_get_into_each_others_way(database: SqlUnitOfWorkFactory) -> None:
    fill(database)
    problems: list[BaseException] = []

    def add_timelines(first: int) -> None:
        try:
            for number in range(first, first + 20):
                with database() as uow:
                    uow.timelines.add(PLAN, replace(FULL_FORK, timeline=number))
                    uow.commit()
        except BaseException as error:  # noqa: BLE001 - it is asserted on below
            problems.append(error)

    threads = [threading.Thread(target=add_timelines, args=(first,)) for first in (100, 200)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert problems == []
    with database.reading() as uow:
        assert len(uow.timelines.of_plan(PLAN)) == 41


# --- the file -----------------------------------------------------------------------------------


def pragma(database: Database, name: str) -> Any:
    return database.connection().execute(f"PRAGMA {name}").fetchone()[0]


def test_durability_and_foreign_keys_are_really_on(path: Path) -> None:
    database = Database(str(path))

    assert pragma(database, "journal_mode") == "wal"
    assert pragma(database, "synchronous") == 2
    assert pragma(database, "foreign_keys") == 1


ORPHANS: list[Callable[[UnitOfWork], None]] = [
    lambda uow: uow.resources.add(FULL_RESOURCE),
    lambda uow: uow.decisions.add(ROOT_DECISION),
    lambda uow: uow.tool_calls.add(FULL_CALL),
    lambda uow: uow.checkpoints.add(FULL_GROUP),
    lambda uow: uow.timelines.add(PLAN, FULL_FORK),
]


@pytest.mark.parametrize("add", ORPHANS)
def test_nothing_can_be_stored_without_what_it_belongs_to(
    database: SqlUnitOfWorkFactory, add: Callable[[UnitOfWork], None]
) -> None:
    with pytest.raises(DatabaseUnusableError, match="FOREIGN KEY"), database() as uow:
        add(uow)


def test_a_new_database_is_for_its_owner_only(tmp_path: Path) -> None:
    path = tmp_path / "new" / "folder" / "c.db"

    fill(SqlUnitOfWorkFactory(Database(str(path))))

    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


@pytest.mark.parametrize("content", [b"this is not a database " * 300, os.urandom(5000)])
def test_a_file_that_is_no_database_is_refused_and_left_alone(
    tmp_path: Path, content: bytes
) -> None:
    path = tmp_path / "c.db"
    path.write_bytes(content)

    with pytest.raises(DatabaseUnusableError) as caught:
        Database(str(path)).connection()

    assert str(path) in caught.value.message
    assert path.read_bytes() == content


def test_an_empty_file_is_a_database_that_has_not_begun(tmp_path: Path) -> None:
    path = tmp_path / "c.db"
    path.touch()

    fill(SqlUnitOfWorkFactory(Database(str(path))))


def test_a_damaged_database_is_told_as_such(
    database: SqlUnitOfWorkFactory, path: Path, other: sqlite3.Connection
) -> None:
    fill(database)
    other.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * (size - 4096))

    new_process = SqlUnitOfWorkFactory(Database(str(path)))
    with pytest.raises(DatabaseUnusableError) as caught, new_process.reading() as uow:
        uow.plans.list()
    assert str(path) in caught.value.message


def test_text_that_was_damaged_is_told_as_such(
    database: SqlUnitOfWorkFactory, other: sqlite3.Connection
) -> None:
    fill(database)
    other.execute("UPDATE plans SET applied_json = CAST(X'FF' AS TEXT)")

    with pytest.raises(DatabaseUnusableError), database.reading() as uow:
        uow.plans.get(PLAN)


def test_a_database_of_a_newer_version_is_refused_and_left_alone(
    path: Path, other: sqlite3.Connection
) -> None:
    other.execute("UPDATE alembic_version SET version_num = '9999'")
    before = list(other.iterdump())

    with pytest.raises(DatabaseTooNewError, match="9999"):
        Database(str(path)).connection()

    assert list(other.iterdump()) == before


def test_a_folder_that_cannot_be_made_is_told_as_such(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(DataDirError) as caught:
        Database(str(tmp_path / "file" / "c.db")).connection()
    assert str(tmp_path / "file") in caught.value.message


def test_a_folder_where_the_database_should_be_is_told_as_such(tmp_path: Path) -> None:
    (tmp_path / "c.db").mkdir()

    with pytest.raises(DatabaseUnusableError):
        Database(str(tmp_path / "c.db")).connection()


FIRST_COMMAND = """
import sys
from cleveragents.infrastructure.database import migrate
from cleveragents.infrastructure.database.engine import Database
print("ready", flush=True)
sys.stdin.readline()
connection = Database(sys.argv[1]).connection()
connection.execute("BEGIN IMMEDIATE")
columns = len(connection.execute("SELECT * FROM plans").description)
marks = ",".join("?" * columns)
connection.execute(f"INSERT INTO plans VALUES ({marks})", [sys.argv[2]] * columns)
connection.execute("COMMIT")
"""


def test_two_processes_that_begin_at_once_both_find_the_database_made(tmp_path: Path) -> None:
    path = tmp_path / "data" / "c.db"
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", FIRST_COMMAND, str(path), str(number)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for number in range(2)
    ]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"

    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    ended = [(*process.communicate(timeout=60), process.returncode) for process in processes]

    assert ended == [("", "", 0)] * 2
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT COUNT(*) FROM plans").fetchone() == (2,)
        assert connection.execute("SELECT version_num FROM alembic_version").fetchall() == [
            (engine.REVISIONS[-1],)
        ]


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
                dataclasses.replace(
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
