"""Values with every field set, and a database full of them, to try the unit of work with."""

from datetime import datetime, timedelta, timezone
from typing import Any

from msgspec.structs import replace

from cleveragents.application.ports.runtime import UnitOfWorkFactory
from cleveragents.domain.action import (
    Action,
    Parameter,
    ResourceSpec,
    RollbackPolicy,
    Step,
    ToolSpec,
)
from cleveragents.domain.applied import AppliedChange, ApplySide
from cleveragents.domain.changes import ChangeKind, FileChange
from cleveragents.domain.checkpoint import (
    PLAN_STATE,
    Checkpoint,
    CheckpointGroup,
    CheckpointReason,
    ResourceState,
)
from cleveragents.domain.confinement import Confinement, ConfinementMode
from cleveragents.domain.correction import (
    Correction,
    CorrectionMode,
    CorrectionStatus,
    Supersession,
    Unchecked,
)
from cleveragents.domain.decision import (
    Decided,
    Decision,
    DecisionContext,
    DecisionType,
    Dependency,
    Fork,
    Position,
    ToolCall,
    ToolCallStatus,
    ToolResult,
)
from cleveragents.domain.effects import Effect, EffectState
from cleveragents.domain.footprint import Footprint, Reach
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
from cleveragents.domain.resource import PlanResource, Rebuilding, SandboxStatus
from cleveragents.domain.resource_kinds import FS_DIRECTORY, GIT_CHECKOUT

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
            type=GIT_CHECKOUT.type,
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
    number=7,
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
    cancel_reason="the wrong branch",
    created_at=WHEN,
    started_at=WHEN + timedelta(seconds=1),
    finished_at=WHEN + timedelta(seconds=2),
)
BARE_PLAN = Plan(plan_id=PLAN, action=ACTION, created_at=WHEN)
FULL_RESOURCE = PlanResource(
    resource_id=CODE,
    plan_id=PLAN,
    name="code",
    type=FS_DIRECTORY.type,
    location="/p ü",
    base="abc",
    sandbox_path="/s",
    status=SandboxStatus.READY,
    include=(".env",),
    exclude=("target/", "*.o"),
    checkpointable=False,
    base_snapshot="first",
    boundary="latest",
    kept_with=PlanId("01J0000000000000000000TPPP"),
    confinement=Confinement(mode=ConfinementMode.REQUIRED, network=True, write=("/x",)),
    cut_out={"inner\udcff": "other"},
    branched_at="7",
    origin="5",
    intent={"commit": "abc", "n": 1},
    intent_needs=("3", "4"),
    uncounted=12,
    rebuilding=Rebuilding(snapshot="9", keeps_files=True),
    in_place=True,
    details={"git_dir": "/p/.git", "n": 1},
)
FULL_APPLIED = AppliedChange(
    plan_id=PLAN,
    side=ApplySide.AFTER,
    until=WHEN + timedelta(days=7),
    changed_at=WHEN,
    ways={"code": {"commit": "abc", "n": 1}},
    heading=ApplySide.BEFORE,
    under_way={"code": {"commit": "def"}},
    freed=True,
)
BARE_RESOURCE = PlanResource(
    resource_id=DOCS,
    plan_id=PLAN,
    name="docs",
    type=GIT_CHECKOUT.type,
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
    context=DecisionContext(
        tool="shell",
        actor_state={"n": 1},
        guidance=(TRICKY,),
        correction=CorrectionId(ulid(51)),
        corrected=ROOT,
        steps=(2, 3),
        first_step=4,
        notes={"usage": {"tokens": 7}},
    ),
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
    reach=Reach(
        reads={"code": ("a", "b\udcff")},
        targets={"code": ("c",), "db": (".",)},
        reads_hidden=False,
        writes_hidden=False,
    ),
    side_effects=("sent a mail",),
    started_at=WHEN,
    finished_at=WHEN + timedelta(seconds=3),
    undone=True,
)
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
        checkpoint_id=CheckpointId(group_id),
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
    kept=(ROOT, CHILD),
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
FULL_UNCHECKED = Unchecked(decision_id=CHILD, position=Position(timeline=2, seq=13), why=TRICKY)
FULL_DEPENDENCY = Dependency(decision_id=CHILD, depends_on=ROOT, why=TRICKY)


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
        uow.corrections.let_stand(PLAN, [FULL_UNCHECKED])
        uow.commit()
