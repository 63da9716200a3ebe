"""How a run looks: what it may do when it begins, and what has changed when it has ended."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from cleveragents.cli.render.blocks import Block, Cell, CommandResult, Fields
from cleveragents.cli.views import left_out
from cleveragents.cli.views.files import file_data, file_grid, files_of, rows_of
from cleveragents.cli.views.plans import applied as applied_plan
from cleveragents.cli.views.words import count, picked
from cleveragents.domain.changes import FileDiff, ResourceDiff
from cleveragents.domain.errors import PlanError
from cleveragents.domain.plan import Plan

if TYPE_CHECKING:  # the services behind these are slow to import
    from cleveragents.application.services.apply.apply_service import ApplyResult
    from cleveragents.application.services.run.run_service import MadeRun


class RunOutcome(Struct, frozen=True, kw_only=True):
    """`ended_with` is the program's exit code; None if a signal ended it. `notes` say what was
    unusual about its last checkpoint."""

    plan: Plan
    project: str
    diffs: Mapping[str, ResourceDiff]
    ended_with: int | None
    notes: Sequence[str] = ()

    @property
    def files(self) -> Sequence[tuple[str, FileDiff]]:
        return files_of(self.diffs)


def beginning(made: "MadeRun", project: str) -> Sequence[str]:
    """One line; what a person has to know of the resources comes first."""
    notices = [f"agents: {notice}" for notice in made.used.notices]
    allowed = made.granted.in_words or "nothing outside of it"
    seen = f"steps told by {made.preset.name}" if made.preset.name else "steps by what changes"
    name = made.used.plan.name
    if made.used.plan.action.in_place:
        return [*notices, f"agents: {name}, in place in {project}; {seen}; allowed: {allowed}"]
    return [*notices, f"agents: {name}, in a sandbox of {project}; {seen}; allowed: {allowed}"]


def kept(outcome: RunOutcome) -> CommandResult:
    next_ = _next(outcome)
    return CommandResult(
        data={**_data(outcome), "applied": False, "next": next_},
        blocks=_blocks(outcome),
        messages=[f"{_sum(outcome)}; it is in the sandbox, and not applied", *_lines(next_)],
        warnings=_warnings(outcome),
    )


def ended_in_place(outcome: RunOutcome, error: PlanError | None) -> CommandResult:
    """`diffs` are of all that happened since the timeline began, whoever did it."""
    next_ = ["agents log", "agents diff", "agents undo", "agents apply"]
    words = ("what happened", "look", "take back its last step", "close the timeline")
    told = [] if error is None else [Fields("Error", [("message", Cell(error.message, "bad"))])]
    lines = [f"{word}: {line}" for word, line in zip(words, next_, strict=True)]
    summary = f"{_sum(outcome)} in {outcome.project} since its timeline began"
    data = {**_data(outcome), "applied": False, "in_place": True, "next": next_}
    if error is not None:
        data["error"] = {"code": error.code, "message": error.message, "hint": error.hint}
    return CommandResult(
        data=data,
        blocks=[*_blocks(outcome), *told],
        messages=[summary, *lines],
        status="ok" if error is None else "error",
        exit_code=0 if error is None else 1,
        warnings=_warnings(outcome),
    )


def failed(outcome: RunOutcome, error: PlanError) -> CommandResult:
    """An answer, and an error all the same: what was done is there."""
    told = {"code": error.code, "message": error.message, "hint": error.hint}
    next_ = _next(outcome)
    return CommandResult(
        data={**_data(outcome), "applied": False, "next": next_, "error": told},
        blocks=[*_blocks(outcome), Fields("Error", [("message", Cell(error.message, "bad"))])],
        messages=[f"{_sum(outcome)}; it is in the sandbox, and not applied", error.hint],
        status="error",
        exit_code=error.exit_code,
        warnings=_warnings(outcome),
    )


def question(outcome: RunOutcome, error: PlanError | None) -> CommandResult:
    """What the question is about."""
    problem: list[Block] = (
        [] if error is None else [Fields("Error", [("message", Cell(error.message, "bad"))])]
    )
    return CommandResult(
        data={},
        blocks=[*_blocks(outcome), *problem],
        messages=[f"{_sum(outcome)}, for {outcome.project}"],
        warnings=_warnings(outcome),
    )


def applied(outcome: RunOutcome, result: "ApplyResult") -> CommandResult:
    shown = applied_plan(result, outcome.project)
    return CommandResult(
        data={
            **_data(outcome),
            "applied": True,
            "results": shown.data["results"],
            "next": [],
        },
        blocks=shown.blocks,
        messages=shown.messages,
        warnings=shown.warnings,
    )


def _data(outcome: RunOutcome) -> dict[str, Any]:
    files = outcome.files
    return {
        **picked(outcome.plan, "plan_id name phase state"),
        "project": outcome.project,
        "exit_code": outcome.ended_with,
        "summary": {
            "files_changed": len(files),
            "insertions": sum(file.insertions or 0 for _, file in files),
            "deletions": sum(file.deletions or 0 for _, file in files),
        },
        "files": file_data(files),
        **left_out.data(outcome.diffs),
    }


def _blocks(outcome: RunOutcome) -> list[Block]:
    rows = rows_of(outcome.diffs)
    return [file_grid("Changed", rows, column="status", empty="nothing changed")]


def _sum(outcome: RunOutcome) -> str:
    return f"{outcome.plan.name}: {count(len(outcome.files), 'file')} changed"


def _next(outcome: RunOutcome) -> list[str]:
    plan_id = outcome.plan.plan_id
    bring = "" if outcome.plan.executed else "--as-it-is "
    return [
        f"agents diff --plan {plan_id}",
        f"agents apply {bring}{plan_id}",
        f"agents undo --plan {plan_id}",
        f"agents discard {plan_id}",
    ]


def _lines(next_: Sequence[str]) -> list[str]:
    words = ("look", "apply", "take back its last step", "discard")
    return [f"{word}: {line}" for word, line in zip(words, next_, strict=True)]


def _warnings(outcome: RunOutcome) -> list[str]:
    diffs = outcome.diffs
    notes = [f"{name}: {note}" for name, item in diffs.items() for note in item.notes]
    return [*left_out.warnings(diffs), *notes, *outcome.notes]
