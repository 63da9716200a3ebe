"""The rule that a tool writes only where its work can be taken back."""

from collections.abc import Mapping, Sequence
from typing import Any

from cleveragents.domain.action import RollbackPolicy, ToolSpec


def refusals(
    policy: RollbackPolicy,
    spec: ToolSpec,
    arguments: Mapping[str, Any],
    checkpointable: Mapping[str, bool],
) -> Sequence[str]:
    """Why this call may not run under the policy; `checkpointable` is by resource name."""
    if not (spec.writes and policy.enabled and policy.require_checkpoints):
        return []
    found: list[str] = []
    if not spec.checkpointable:
        found.append(f"{spec.name} writes, but says that its effects cannot be checkpointed")
    target = spec.resource or arguments.get("resource")
    only = len(checkpointable) == 1  # then a step need not name it
    for name, captured in checkpointable.items():
        if not captured and (only or name in (target, *spec.write_scope)):
            found.append(f"{spec.name} writes to `{name}`, of which no checkpoint can be made")
    return found
