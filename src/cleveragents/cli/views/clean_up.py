"""How it looks what plans hold, what goes with them, and that it is gone."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from cleveragents.cli.render.blocks import Block, Cell, CommandResult, Fields, Grid
from cleveragents.cli.views.words import clock_time, count, picked, size, state_word, toned
from cleveragents.domain.holdings import PlanHoldings

if TYPE_CHECKING:  # the service behind it is slow to import
    from cleveragents.application.services.maintenance.prune_service import Pruned, PruneOffer
    from cleveragents.application.services.sandboxes.discarding import Discarded

_SHOWN = 20
_NOWHERE = "no place on this machine"


def discard_question(held: PlanHoldings) -> str:
    running = " (it is running, and is stopped first)" if held.owner else ""
    if held.plan.action.in_place:
        return (
            f"Close the timeline {held.plan.name} of {_project(held)}{running}: its checkpoints"
            " go, and your files stay as they are"
        )
    return f"Discard plan {held.plan.name} of {_project(held)}{running}: {loss(held)}"


def loss(held: PlanHoldings) -> str:
    """What exists nowhere else, in a few words."""
    parts: list[str] = []
    if held.lost_files:
        parts.append(count(held.lost_files, "unapplied file"))
    if held.unknown:
        parts.append(f"all of {', '.join(held.unknown)}")
    return f"{' and '.join(parts)} would be lost" if parts else "nothing would be lost"


def holdings(held: PlanHoldings) -> CommandResult:
    """The preview that a question stands under: not the look of something that was done."""
    return CommandResult(
        data=_data(held),
        blocks=[
            Fields(
                "Would be removed",
                [
                    ("plan", Cell(held.plan.name, "accent")),
                    ("project", _project(held)),
                    ("state", toned(state_word(held.plan))),
                    *([("in use by", held.owner)] if held.owner else []),
                    *((f"sandbox of {name}", path) for name, path in held.sandboxes.items()),
                ],
            ),
            *_lost_blocks(held),
        ],
        warnings=_warnings(held),
    )


def discarded(result: "Discarded") -> CommandResult:
    plan, held = result.plan, result.held
    project = _project(held)
    if plan.action.in_place:
        return CommandResult(data=_discarded_data(result), messages=[_closed(plan.name, project)])
    gone = [f"the sandbox of {name} at {path} is removed" for name, path in held.sandboxes.items()]
    return CommandResult(
        data=_discarded_data(result),
        messages=[
            *gone,
            f"plan {plan.name} of {project} is {state_word(plan)}, and has no sandboxes and no"
            " snapshots any more",
        ],
        warnings=_warnings(held),
    )


def _discarded_data(result: "Discarded") -> dict[str, Any]:
    plan, held = result.plan, result.held
    return {
        **picked(plan, "plan_id name phase state"),
        "project": _project(held),
        "sandboxes_removed": {} if plan.action.in_place else dict(held.sandboxes),
        "files_lost": {name: list(paths) for name, paths in held.lost.items()},
        "stopped": held.owner,
    }


def _closed(name: str, project: str) -> str:
    return f"the timeline {name} of {project} is closed; all files are as they were"


def prune_question(offer: "PruneOffer") -> str:
    lost = sum(held.lost_files for held in offer.due)
    files = f" and {count(lost, 'unapplied file')}" if lost else ""
    return f"Remove {count(len(offer.due), 'plan')}{files} for good"


def offered(offer: "PruneOffer") -> CommandResult:
    """What a clean-up would take; also the preview that its question stands under."""
    return CommandResult(
        data={"dry_run": True, **_prune_data(offer, offer.due), "size_bytes": offer.bytes},
        blocks=[_due_grid(offer), *lost_grids(offer.due)],
        messages=[
            f"nothing was changed; {size(offer.bytes)} would come back at most",
            *_left(offer),
        ],
        warnings=_prune_warnings(offer),
    )


def pruned(done: "Pruned") -> CommandResult:
    offer, names = done.offer, {held.plan.plan_id: held.plan.name for held in done.offer.due}
    failed = [f"plan {names[key]} stays: {why}" for key, why in done.failed.items()]
    told = f"{count(len(done.removed), 'plan')} removed, {size(done.bytes)}"
    return CommandResult(
        data={
            **_prune_data(offer, done.removed),
            "size_bytes": done.bytes,
            "failed": [{"plan_id": key, "reason": why} for key, why in done.failed.items()],
        },
        messages=[told if done.removed or failed else "there was nothing to remove", *_left(offer)],
        warnings=[*_prune_warnings(offer), *failed],
        status="error" if failed else "ok",
        exit_code=1 if failed else 0,
    )


def lost_grids(plans: Sequence[PlanHoldings]) -> Sequence[Block]:
    """What goes with these plans and exists nowhere else."""
    rows = [[held.plan.name, *row] for held in plans for row in _lost_rows(held)]
    return _limited(["plan", "resource", "file"], rows)


def _due_grid(offer: "PruneOffer") -> Grid:
    return Grid(
        "Would be removed",
        ["plan", "state", "since", "size", "project", "lost"],
        [
            [
                Cell(held.plan.name, "accent"),
                toned(state_word(held.plan)),
                clock_time(offer.touched[held.plan.plan_id]),
                size(offer.sizes.get(held.plan.plan_id, 0)),
                _project(held),
                Cell(str(held.lost_files), "bad") if held.lost_files else "-",
            ]
            for held in offer.due
        ],
        empty="nothing is that old",
        cut=("plan", "project"),
    )


def _prune_data(offer: "PruneOffer", plans: Sequence[PlanHoldings]) -> dict[str, Any]:
    return {
        "removed": [
            {
                **_data(held),
                "touched_at": offer.touched[held.plan.plan_id],
                "size_bytes": offer.sizes.get(held.plan.plan_id, 0),
            }
            for held in plans
        ],
        "in_use": [held.plan.plan_id for held in offer.in_use],
        "unapplied": offer.unapplied,
    }


def _left(offer: "PruneOffer") -> list[str]:
    if not offer.unapplied:
        return []
    are = "is" if offer.unapplied == 1 else "are"
    return [f"{count(offer.unapplied, 'plan')} of that age {are} not over: add --unapplied"]


def _prune_warnings(offer: "PruneOffer") -> list[str]:
    busy = [f"plan {held.plan.name} stays, in use by {held.owner}" for held in offer.in_use]
    return [*busy, *(text for held in offer.due for text in _warnings(held))]


def _data(held: PlanHoldings) -> dict[str, Any]:
    return {
        **picked(held.plan, "plan_id name phase state"),
        "action": held.plan.action.name,
        "project": held.project,
        "sandboxes_removed": dict(held.sandboxes),
        "files_lost": {name: list(paths) for name, paths in held.lost.items()},
    }


def _lost_blocks(held: PlanHoldings) -> Sequence[Block]:
    return _limited(["resource", "file"], list(_lost_rows(held)))


def _limited(columns: list[str], rows: list[list[str | Cell]]) -> Sequence[Block]:
    shown = rows[:_SHOWN]
    if len(rows) > _SHOWN:
        shown.append([*("" for _ in columns[1:]), f"and {len(rows) - _SHOWN} more"])
    return [Grid("Would be lost", columns, shown)] if rows else []


def _lost_rows(held: PlanHoldings) -> Iterator[list[str | Cell]]:
    for name, paths in held.lost.items():
        for path in paths:
            yield [name, path]


def _warnings(held: PlanHoldings) -> list[str]:
    return [
        f"the sandbox of {name} cannot be compared with the project: {why}"
        for name, why in held.unknown.items()
    ]


def _project(held: PlanHoldings) -> str:
    return held.project or _NOWHERE
