"""How a diagnosis looks."""

from collections.abc import Sequence
from typing import Any

from cleveragents.application.services.maintenance.doctor_service import Diagnosis, Treated
from cleveragents.cli.render.blocks import Cell, CommandResult, Grid, Tone
from cleveragents.cli.views.words import count, picked
from cleveragents.domain.doctor import Finding, Leftover, removing

_TONES: dict[str, Tone] = {"mended": "good", "can be mended": "warn", "left": "bad"}


def examined(found: Diagnosis) -> CommandResult:
    states = {
        finding: "can be mended" if finding.mendable else "left" for finding in found.findings
    }
    return _outcome(found, states, {})


def mended(found: Diagnosis, treated: Sequence[Treated]) -> CommandResult:
    errors = {item.finding: item.error for item in treated if item.error is not None}
    done = {item.finding for item in treated} - errors.keys()
    states = {finding: "mended" if finding in done else "left" for finding in found.findings}
    return _outcome(found, states, errors)


def _outcome(
    found: Diagnosis, states: dict[Finding, str], errors: dict[Finding, str]
) -> CommandResult:
    left = [finding for finding, state in states.items() if state != "mended"]
    looked = f"{count(found.plans, 'plan')} and {count(found.checkpoints, 'checkpoint')}"
    return CommandResult(
        data={
            "healthy": not left,
            "plans": found.plans,
            "checkpoints": found.checkpoints,
            "findings": [_row(finding, states[finding], errors) for finding in found.findings],
            "others": [_stranger(item) for item in found.others],
        },
        blocks=[
            Grid(
                "Findings",
                ["check", "plan or file", "problem", "remedy", "state"],
                [_cells(finding, states[finding], errors) for finding in found.findings],
                empty=f"nothing is wrong with {looked}",
            )
        ],
        messages=[*_messages(states, left), *map(_about, found.others)],
        status="warn" if left else "ok",
        exit_code=1 if left else 0,
    )


def _row(finding: Finding, state: str, errors: dict[Finding, str]) -> dict[str, Any]:
    return {
        **picked(finding, "check subject problem"),
        "remedy": errors.get(finding, finding.remedy),
        "state": state,
    }


def _stranger(item: Leftover) -> dict[str, Any]:
    return {
        **picked(item, "name repository plan_id"),
        "remedy": removing(item),
    }


def _about(item: Leftover) -> str:
    return (
        f"{item.name} in {item.repository} was made from another data folder, and may be needed"
        f" there; if not: {removing(item)}"
    )


def _cells(finding: Finding, state: str, errors: dict[Finding, str]) -> Sequence[str | Cell]:
    remedy = errors.get(finding, finding.remedy)
    tone = _TONES[state]
    return [finding.check, finding.subject, finding.problem, remedy, Cell(state, tone)]


def _messages(states: dict[Finding, str], left: Sequence[Finding]) -> Sequence[str]:
    mended = sum(1 for state in states.values() if state == "mended")
    waiting = sum(1 for finding in left if states[finding] == "can be mended")
    messages: list[str] = []
    if mended:
        messages.append(f"{count(mended, 'finding')} mended")
    if waiting:
        messages.append(f"mend {count(waiting, 'finding')}: agents doctor --fix")
    if len(left) > waiting:
        messages.append(f"{count(len(left) - waiting, 'finding')} for a person: do as it says")
    return messages or ["everything is in order"]
