"""What a rollback came to, as it is told to people and programs."""

from collections.abc import Sequence

from cleveragents.application.services.rollback.in_place import told_after
from cleveragents.application.services.rollback.rewind import RewindResult
from cleveragents.application.services.rollback.rollback_files import (
    ChangedResource,
    excluded_paths,
    left_of,
    notes_of,
    reverted,
)
from cleveragents.application.services.rollback.target import RollbackTarget
from cleveragents.domain.checkpoint import CheckpointGroup, RollbackResult


def result_of(
    aim: RollbackTarget,
    safety: CheckpointGroup,
    changed: Sequence[ChangedResource],
    rewound: RewindResult,
) -> RollbackResult:
    plan = rewound.plan
    return RollbackResult(
        plan_id=plan.plan_id,
        group=aim.target,
        undo_group=safety,
        reverted=reverted(changed),
        child_plans_invalidated=rewound.children_invalidated,
        decisions_discarded=rewound.decisions_discarded,
        tool_calls_undone=len(rewound.undone),
        phase=plan.phase,
        state=plan.state,
        checkpoints_remaining=rewound.groups_left,
        only=aim.only.names if aim.only else (),
        excluded=excluded_paths(changed),
        notes=(*notes_of(changed), *aim.caveats(plan), *told_after(changed)),
        left=left_of(changed),
    )
