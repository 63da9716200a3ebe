"""Small values of the domain, with only what a test is about spelled out."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from msgspec.structs import replace

from cleveragents.domain.action import Action, Step
from cleveragents.domain.checkpoint import (
    PLAN_STATE,
    Checkpoint,
    CheckpointGroup,
    CheckpointReason,
    ResourceState,
)
from cleveragents.domain.decision import Position
from cleveragents.domain.ids import CheckpointId, GroupId, PlanId, ResourceId
from cleveragents.domain.plan import Plan
from cleveragents.domain.resource import PlanResource, SandboxStatus
from cleveragents.domain.resource_kinds import GIT_CHECKOUT

NOW = datetime(2025, 3, 1, 12, 0, tzinfo=UTC)
LATER = NOW + timedelta(minutes=5)
_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


def ulid(number: int, prefix: str = "01") -> str:
    """The number's own id; ids of higher numbers sort later."""
    digits = "".join(_ALPHABET[(number >> shift) & 31] for shift in range(115, -1, -5))
    return prefix + digits[len(prefix) - 2 :]


def ids(start: int = 1000) -> Iterator[str]:
    while True:
        yield ulid(start)
        start += 1


PLAN = PlanId(ulid(1))
OTHER_PLAN = PlanId(ulid(2))
CODE = ResourceId(ulid(11))
DOCS = ResourceId(ulid(12))
ACTION = Action(
    name="demo",
    description="Do it",
    resources=(),
    steps=(Step(name="one", tool="file.write"), Step(name="two", tool="file.write")),
)


def a_plan(**fields: Any) -> Plan:
    return Plan(**{"plan_id": PLAN, "action": ACTION, "created_at": NOW, **fields})


def a_resource(resource_id: ResourceId = CODE, **fields: Any) -> PlanResource:
    values: dict[str, Any] = {
        "resource_id": resource_id,
        "plan_id": PLAN,
        "name": "code" if resource_id == CODE else "docs",
        "type": GIT_CHECKOUT.type,
        "location": "/project",
        "base": "base",
        "sandbox_path": f"/sandboxes/{resource_id}",
        "status": SandboxStatus.READY,
        "boundary": "boundary",
        **fields,
    }
    return PlanResource(**values)


def a_group(number: int, **fields: Any) -> CheckpointGroup:
    """Group `number`, whose head has its id; with `own`, that of a resource's checkpoint in it."""
    group_id = GroupId(fields.pop("group_id", ulid(number)))
    plan_id = fields.get("plan_id", PLAN)
    head = Checkpoint(
        checkpoint_id=CheckpointId(group_id),
        group_id=group_id,
        plan_id=plan_id,
        decision_id=None,
        resource_id=None,
        resource="plan",
        checkpoint_type=PLAN_STATE,
        sandbox_ref="",
        filesystem_path="",
        size_bytes=0,
        created_at=NOW,
        step_index=0,
        state_hash="",
        label="",
        metadata={},
    )
    own = fields.pop("own", None)
    resource = replace(head, checkpoint_id=own, resource="code", checkpoint_type="fs-directory")
    values: dict[str, Any] = {
        "group_id": group_id,
        "plan_id": plan_id,
        "position": Position(timeline=0, seq=number),
        "decision_id": None,
        "step_index": 0,
        "reason": CheckpointReason.DECISION,
        "source": "",
        "phase": "execute",
        "label": f"group {number}",
        "labelled_by_hand": False,
        "state_hash": "",
        "created_at": NOW,
        "last_completed_step": -1,
        "attempt": 1,
        "actor_state": {},
        "superseded": False,
        "checkpoints": (head,) if own is None else (resource, head),
        "resource_states": (),
        **fields,
    }
    return CheckpointGroup(**values)


def stood_at(resource_id: ResourceId, state_hash: str, ref: str = "old ref") -> ResourceState:
    return ResourceState(resource_id=resource_id, snapshot=ref, state_hash=state_hash, boundary=ref)
