"""How it looks what an uninstalling would remove, and has removed."""

from typing import TYPE_CHECKING, Any

from cleveragents.cli.render.blocks import Cell, CommandResult, Fields, Grid
from cleveragents.cli.views.clean_up import loss, lost_grids
from cleveragents.cli.views.words import count, size, state_word, toned

if TYPE_CHECKING:  # the service behind it is slow to import
    from cleveragents.application.services.maintenance.uninstall_service import (
        Uninstalled,
        UninstallOffer,
    )

_PROGRAM = (
    "the program itself goes the way it came: pipx uninstall cleveragents, uv tool uninstall"
    " cleveragents, or pip uninstall cleveragents",
    "if your shell completes it, take the line with `agents completion` out of its start-up file",
)


def question(offer: "UninstallOffer") -> str:
    lost = sum(held.lost_files for held in offer.plans)
    files = f", and with them {count(lost, 'unapplied file')}" if lost else ""
    return (
        f"Remove all {count(len(offer.plans), 'plan')}{files}, and everything of ours in"
        f" {count(len(offer.projects), 'repository', 'repositories')} and {offer.folder.location}"
    )


def offered(offer: "UninstallOffer", *, keep_config: bool) -> CommandResult:
    return CommandResult(
        data={"dry_run": True, **_data(offer), "config_kept": keep_config},
        blocks=[
            Fields(
                "Would be removed",
                [
                    ("data folder", f"{offer.folder.location}, {size(offer.folder.bytes)}"),
                    ("plans", str(len(offer.plans))),
                    *((("names in", path)) for path in offer.projects),
                    *((("settings", path)) for path in offer.folder.settings if not keep_config),
                ],
            ),
            Grid(
                "Plans",
                ["plan", "state", "project", "lost"],
                [
                    [
                        Cell(held.plan.name, "accent"),
                        toned(state_word(held.plan)),
                        held.project or "-",
                        loss(held),
                    ]
                    for held in offer.plans
                ],
                empty="there is no plan",
            ),
            *lost_grids(offer.plans),
        ],
        messages=["nothing was changed"],
        warnings=_warnings(offer),
    )


def uninstalled(done: "Uninstalled") -> CommandResult:
    offer = done.offer
    failed = [f"{what} could not be removed: {why}" for what, why in done.failed.items()]
    if failed:
        failed.append("repeat `agents uninstall` when that is mended; what is gone stays gone")
    kept = [f"{path} stays" for path in offer.folder.settings if done.settings_kept]
    return CommandResult(
        data={
            **_data(offer),
            "config_kept": done.settings_kept,
            "failed": [{"what": what, "reason": why} for what, why in done.failed.items()],
        },
        messages=failed
        or [
            f"{count(len(offer.plans), 'plan')} and {offer.folder.location} are removed,"
            f" {size(offer.folder.bytes)}",
            *kept,
            *_PROGRAM,
        ],
        warnings=_warnings(offer),
        status="error" if failed else "ok",
        exit_code=1 if failed else 0,
    )


def _data(offer: "UninstallOffer") -> dict[str, Any]:
    return {
        "location": offer.folder.location,
        "size_bytes": offer.folder.bytes,
        "plans": [
            {
                "plan_id": held.plan.plan_id,
                "name": held.plan.name,
                "state": held.plan.state,
                "project": held.project,
                "files_lost": {name: list(paths) for name, paths in held.lost.items()},
            }
            for held in offer.plans
        ],
        "repositories": list(offer.projects),
        "unreachable": list(offer.unreachable),
        "left": [f"{offer.folder.location}/{name}" for name in offer.folder.strange],
    }


def _warnings(offer: "UninstallOffer") -> list[str]:
    gone = [
        f"the repository {path} is not there any more; if it was moved, type in it: git"
        " for-each-ref --format='delete %(refname)' refs/cleveragents | git update-ref --stdin"
        for path in offer.unreachable
    ]
    others = [
        f"{path} has {count(number, 'name')} of another data folder, which stay: uninstall there"
        for path, number in offer.others.items()
    ]
    strange = [
        f"{offer.folder.location}/{name} is not one of ours, and stays"
        for name in offer.folder.strange
    ]
    unknown = [
        f"{path} is of a plan that this database does not know; it goes with the data folder"
        for path in offer.strangers
    ]
    return [*gone, *others, *unknown, *strange]
