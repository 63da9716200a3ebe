"""How the store as a whole looks."""

from cleveragents.application.services.maintenance.store_service import (
    PlanShare,
    StoreCheck,
    StoreStatus,
)
from cleveragents.cli.render.blocks import Cell, CommandResult, Fields, Grid
from cleveragents.cli.views.failures import damaged
from cleveragents.cli.views.words import count, picked, size, toned


def status(found: StoreStatus) -> CommandResult:
    limit = size(found.limit_bytes) if found.limit_bytes else "none"
    return CommandResult(
        data={
            "location": found.location,
            "size_bytes": found.disk_bytes,
            "limit_bytes": found.limit_bytes,
            "dedup": round(found.dedup, 2),
            "plans": [
                {
                    "plan_id": item.share.plan_id,
                    "state": item.plan.state if item.plan else "unknown",
                    "size_bytes": item.share.disk_bytes,
                    **picked(item.share, "content_bytes stored_bytes snapshots"),
                    "checkpoints": item.checkpoints,
                }
                for item in found.shares
            ],
        },
        blocks=[
            Fields(
                "Store",
                [
                    ("location", found.location),
                    ("size", size(found.disk_bytes)),
                    ("limit (store.max-size)", limit),
                    ("dedup", f"{found.dedup:.1f} bytes of content per stored byte"),
                ],
            ),
            Grid(
                "Plans",
                ["plan", "state", "checkpoints", "size"],
                [_row(item) for item in found.shares],
                empty="nothing is stored",
            ),
        ],
    )


def _row(item: PlanShare) -> list[str | Cell]:
    state = toned(item.plan.state) if item.plan else Cell("unknown", "warn")
    return [
        Cell(item.share.plan_id, "accent"),
        state,
        str(item.checkpoints),
        size(item.share.disk_bytes),
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
