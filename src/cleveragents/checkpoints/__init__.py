"""Checkpoints from Python: list, get, create, go back to and prune them, as the commands do.

    from cleveragents import checkpoints, errors

    for row in checkpoints.list_checkpoints("latest").checkpoints:
        print(row.group_id, row.label)

A plan is named as at the command line: by its id, by a name, or as `latest` of the folder that the
process stands in. A path (a `pathlib.Path`, or text that begins with `.` or `/`) means the latest
plan of that place. What goes wrong is a class of `cleveragents.errors`. Each call stands alone: it
holds the plan's lock while it works, and has closed and let go of everything when it is over.

Three options are the same everywhere: `data_dir` is where plans are kept, `config_path` is used
instead of the global config file, and `anywhere` lets `latest` and names be of any place.
"""

# Who only imports this pays for the records alone: whatever works is imported by the first call.
# ruff: noqa: PLC0415

import os
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from cleveragents.checkpoints.records import (
    CheckpointDetails,
    CheckpointList,
    CheckpointRow,
    PruneReport,
    ResourceCheckpoint,
    RestoredFile,
    RetentionRow,
    RollbackReport,
)

if TYPE_CHECKING:
    from cleveragents.checkpoints.session import PlanSession

__all__ = [
    "CheckpointDetails",
    "CheckpointList",
    "CheckpointRow",
    "PruneReport",
    "ResourceCheckpoint",
    "RestoredFile",
    "RetentionRow",
    "RollbackReport",
    "create_checkpoint",
    "get_checkpoint",
    "list_checkpoints",
    "prune_checkpoints",
    "rollback_to_checkpoint",
]

AnyPath = str | os.PathLike[str]


def list_checkpoints(
    plan: AnyPath,
    *,
    data_dir: AnyPath | None = None,
    config_path: AnyPath | None = None,
    anywhere: bool = False,
) -> CheckpointList:
    """All checkpoints of a plan, the oldest first: `agents plan checkpoint list`."""
    with _opened(plan, data_dir, config_path, anywhere=anywhere) as session:
        from cleveragents.checkpoints.conversion import listed

        groups = session.services.checkpoint_service.list_checkpoints(session.plan_id)
        return listed(session.services.plan_finder.get(session.plan_id), groups)


def get_checkpoint(
    plan: AnyPath,
    checkpoint: str,
    *,
    data_dir: AnyPath | None = None,
    config_path: AnyPath | None = None,
    anywhere: bool = False,
) -> CheckpointDetails:
    """One of them, named as at the command line: `agents plan checkpoint show`.

    Raises CheckpointNotFoundError, CheckpointAmbiguousError or CheckpointMismatchError.
    """
    with _opened(plan, data_dir, config_path, anywhere=anywhere) as session:
        from cleveragents.checkpoints.conversion import detailed

        service = session.services.checkpoint_service
        return detailed(service.get_checkpoint(session.plan_id, checkpoint))


def create_checkpoint(
    plan: AnyPath,
    label: str,
    *,
    data_dir: AnyPath | None = None,
    config_path: AnyPath | None = None,
    anywhere: bool = False,
) -> CheckpointDetails:
    """Make one by hand, which retention never prunes: `agents plan checkpoint create`.

    Raises LabelTakenError; PlanLockedError while somebody else works on the plan.
    """
    with _opened(plan, data_dir, config_path, anywhere=anywhere) as session:
        from cleveragents.checkpoints.conversion import detailed

        return detailed(session.services.manual_checkpoints.create(session.plan_id, label))


def rollback_to_checkpoint(
    plan: AnyPath,
    checkpoint: str,
    *,
    only: Sequence[str] = (),
    rebuild: bool = False,
    data_dir: AnyPath | None = None,
    config_path: AnyPath | None = None,
    anywhere: bool = False,
) -> RollbackReport:
    """Take the plan and all its sandboxes back: `agents plan rollback --yes`.

    `only` names single files or folders, and discards no decision; `rebuild` makes sandboxes that
    are gone again first. The user's project is not touched. What is there now becomes a checkpoint
    first, `undo_checkpoint_id` of the answer. If it fails, everything is as it was.
    """
    with _opened(plan, data_dir, config_path, anywhere=anywhere) as session:
        from cleveragents.checkpoints.conversion import rolled_back

        # Whoever writes the call has decided: there is nobody to ask.
        result = session.services.rollback_service.rollback(
            session.plan_id, checkpoint, lambda _: True, only, rebuild=rebuild
        )
        return rolled_back(result)


def prune_checkpoints(
    plan: AnyPath,
    *,
    dry_run: bool = False,
    data_dir: AnyPath | None = None,
    config_path: AnyPath | None = None,
    anywhere: bool = False,
) -> PruneReport:
    """Delete those beyond the limits, and free their room: `agents plan checkpoint prune --yes`.

    With `dry_run` the answer only says which would go, and why.
    """
    with _opened(plan, data_dir, config_path, anywhere=anywhere) as session:
        from cleveragents.checkpoints.conversion import pruned

        service, plan_id = session.services.manual_checkpoints, session.plan_id
        if dry_run:
            return pruned(plan_id, service.explain_retention(plan_id), None)
        return pruned(plan_id, *service.prune(plan_id))


def _opened(
    plan: AnyPath, data_dir: AnyPath | None, config_path: AnyPath | None, *, anywhere: bool
) -> "AbstractContextManager[PlanSession]":
    from cleveragents.checkpoints.session import CallOptions, opened

    return opened(plan, CallOptions(data_dir=data_dir, config_path=config_path, anywhere=anywhere))
