"""How the store as a whole looks."""

from cleveragents.application.services.maintenance.store_service import (
    PlanShare,
    StoreCheck,
    StoreStatus,
)
from cleveragents.cli.render.blocks import Block, Cell, CommandResult, Fields, Grid
from cleveragents.cli.views.failures import damaged
from cleveragents.cli.views.words import count, picked, size, state_word, toned

_SANDBOXES = "the plans' copies of projects, with what the disk shares between the two"

_KEPT = "files that applies have replaced, in the projects' repositories, for `agents undo`"

_TRASH = "sandboxes of plans that are over, being deleted"


def status(found: StoreStatus) -> CommandResult:
    return CommandResult(
        data={
            "location": found.location,
            "size_bytes": found.disk_bytes,
            "limit_bytes": found.limit_bytes,
            "dedup": round(found.dedup, 2),
            **picked(found, "sandbox_bytes database_bytes trash_bytes kept_bytes total_bytes"),
            "plans": [
                {
                    "plan_id": item.share.plan_id,
                    "name": item.plan.name if item.plan else None,
                    "state": item.plan.state if item.plan else "unknown",
                    "size_bytes": item.share.disk_bytes,
                    **picked(item.share, "content_bytes stored_bytes snapshots"),
                    "checkpoints": item.checkpoints,
                    "sandbox_bytes": item.sandbox_bytes,
                    "kept_bytes": item.kept_bytes,
                }
                for item in found.shares
            ],
            "next_steps": _get_room(found),
        },
        blocks=_blocks(found),
        messages=[f"get room back: {command}" for command in _get_room(found)],
    )


def _blocks(found: StoreStatus) -> list[Block]:
    limit = size(found.limit_bytes) if found.limit_bytes else "none"
    return [
        Fields(
            "Store",
            [
                ("location", found.location),
                ("limit (store.max-size)", f"{limit}, for snapshots"),
                ("dedup", f"{found.dedup:.1f} bytes of content per stored byte"),
            ],
        ),
        Grid(
            "Room",
            ["what", "size", "what it is"],
            [
                ["snapshots", size(found.disk_bytes), "what checkpoints hold, once each"],
                ["sandboxes", size(found.sandbox_bytes), _SANDBOXES],
                ["records", size(found.database_bytes), "plans, decisions, output of steps"],
                *([["kept", size(found.kept_bytes), _KEPT]] if found.kept_bytes else []),
                *([["trash", size(found.trash_bytes), _TRASH]] if found.trash_bytes else []),
                ["together", size(found.total_bytes), ""],
            ],
        ),
        Grid(
            "Plans",
            ["plan", "state", "checkpoints", "snapshots", "sandboxes"],
            [_row(item) for item in found.shares],
            empty="nothing is stored",
        ),
    ]


def _get_room(found: StoreStatus) -> list[str]:
    """What helps here; of plans that are not over, the one that takes most."""
    known = [item for item in found.shares if item.plan]
    over = [item for item in known if item.plan and item.plan.is_final]
    open_ = [item for item in known if item not in over]
    commands = ["agents prune --older-than 14d"] if over else []
    if open_:
        largest = max(open_, key=lambda item: item.share.disk_bytes + item.sandbox_bytes)
        wanted = f"--any {_called(largest)}"
        commands += [f"agents plan checkpoint prune {wanted}", f"agents plan discard {wanted}"]
    return commands


def _called(item: PlanShare) -> str:
    return item.plan.name if item.plan else item.share.plan_id


def _row(item: PlanShare) -> list[str | Cell]:
    state = toned(state_word(item.plan)) if item.plan else Cell("unknown", "warn")
    return [
        Cell(_called(item), "accent"),
        state,
        str(item.checkpoints),
        size(item.share.disk_bytes),
        size(item.sandbox_bytes),
    ]


def verified(check: StoreCheck) -> CommandResult:
    data = {
        "plans": check.plans,
        "checkpoints": check.checkpoints,
        "damaged": [
            {"plan_id": plan_id, "problems": list(problems)}
            for plan_id, problems in check.damages.items()
        ],
    }
    checked = f"{count(check.checkpoints, 'checkpoint')} of {count(check.plans, 'plan')}"
    if not check.damages:
        return CommandResult(data=data, messages=[f"{checked} verified: all of it can be restored"])
    rows = [[plan_id, text] for plan_id, texts in check.damages.items() for text in texts]
    return damaged(
        data,
        f"{count(len(check.damages), 'plan')} with damaged snapshots",
        "see which checkpoints with `agents plan checkpoint verify <PLAN_ID>`",
        Grid("Damaged", ["plan", "problem"], rows),
    )
