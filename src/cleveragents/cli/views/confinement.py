"""How it is told what holds the commands of a plan inside, and what does not."""

from collections.abc import Mapping, Sequence
from typing import Any

from cleveragents.cli.render.blocks import Cell
from cleveragents.cli.views.words import picked
from cleveragents.domain.confinement import (
    MEANING,
    Confinement,
    ConfinementMeans,
    ConfinementMode,
    Enforcement,
)

_REFUSED = (
    "this machine refuses layers: ignored folders such as node_modules are copied into a sandbox"
    " where that takes less than a second, and else are not in it (`include` brings them)"
)


def data(asked: Confinement, holds: Enforcement) -> Mapping[str, Any]:
    return {
        **picked(holds, "mode by network"),
        "environment": list(asked.environment),
        "write": list(asked.write),
        "enforced": list(holds.enforced),
        "not_enforced": [{"what": what, "why": why} for what, why in holds.missing],
        "at_project_path": holds.at_home,
        "layers": holds.layers,
    }


def row(asked: Confinement, holds: Enforcement) -> tuple[str, str | Cell]:
    if holds.mode is ConfinementMode.OFF:
        return "confinement", Cell("off", "warn")
    more = [f"and write to {path}" for path in asked.write]
    allowed = ["use the network", *more] if holds.network else more
    may = f"; commands may {', '.join(allowed).removeprefix('and ')}" if allowed else ""
    text = f"{holds.mode}, by {holds.by}: {', '.join(holds.enforced)}{may}"
    return "confinement", Cell(text, "warn") if holds.missing else text


def warnings(holds: Enforcement) -> Sequence[str]:
    if holds.mode is ConfinementMode.OFF:
        return ["confinement is off: commands of this plan run with all your rights"]
    lacking = [
        f"not enforced on this machine: a command {MEANING[what]} ({why})"
        for what, why in holds.missing
    ]
    return (
        lacking if holds.layers or holds.by is not ConfinementMeans.KERNEL else [*lacking, _REFUSED]
    )
