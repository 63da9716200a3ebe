"""How plans look: made, running, cancelled, applied, and what they would change."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from cleveragents.cli.render.blocks import Block, Cell, Code, CommandResult, Fields, Grid
from cleveragents.cli.views import left_out, unchecked
from cleveragents.cli.views.applied_changes import moment
from cleveragents.cli.views.files import file_data, file_grid, files_of, rows_of
from cleveragents.cli.views.words import count, picked, short_hash, toned
from cleveragents.domain.action import Action
from cleveragents.domain.changes import ResourceDiff
from cleveragents.domain.ids import PlanId
from cleveragents.domain.in_place import DONE
from cleveragents.domain.resource import PlanResource
from cleveragents.domain.timeline_use import IN_PLACE

if TYPE_CHECKING:  # the services behind these are slow to import, and `plan status` needs none
    from cleveragents.application.services.apply.apply_service import ApplyQuestion, ApplyResult
    from cleveragents.application.services.plans.plan_service import CancelledPlan, UsedAction


def used(result: "UsedAction") -> CommandResult:
    plan = result.plan
    next_steps = [f"agents plan execute {plan.plan_id}"]
    return CommandResult(
        data={
            **picked(plan, "plan_id name phase state"),
            "action": plan.action.name,
            "resources": [
                {
                    "name": r.name,
                    "type": r.type,
                    "path": r.location,
                    "base": r.base,
                    "strategy": strategy_of(r),
                }
                for r in result.resources
            ],
            "next_steps": next_steps,
        },
        blocks=[
            Fields(
                "Plan",
                [
                    ("plan", Cell(plan.plan_id, "accent")),
                    ("action", plan.action.name),
                    ("description", plan.action.description),
                    ("steps", _steps(plan.action)),
                ],
            ),
            Grid(
                "Resources",
                ["resource", "type", "strategy", "path"],
                [[r.name, r.type, strategy_of(r), r.location] for r in result.resources],
            ),
        ],
        messages=[f"next: {step}" for step in next_steps],
        warnings=result.notices,
    )


def _steps(action: Action) -> str:
    if not action.is_scripted:
        return f"decided by the actor {action.actor.type}"
    return str(len(action.steps if action.use is None else action.use.script))


def strategy_of(resource: PlanResource) -> str:
    """How its sandbox is made, or that there is none."""
    return IN_PLACE if resource.in_place else resource.kind.strategy


def cancelled(result: "CancelledPlan", project: str) -> CommandResult:
    plan = result.plan
    kept = [f"the sandbox of {name} stays at {path}" for name, path in result.kept.items()]
    if kept:
        kept.append(f"remove what stays with `agents plan discard {plan.plan_id}`")
    return CommandResult(
        data={
            **picked(plan, "plan_id name phase state cancel_reason"),
            "project": project,
            "sandboxes_kept": dict(result.kept),
        },
        messages=[f"plan {plan.plan_id} of {project} is cancelled", *kept],
    )


def diff(plan_id: PlanId, diffs: Mapping[str, ResourceDiff]) -> CommandResult:
    files = files_of(diffs)
    patch = "".join(item.patch for item in diffs.values())
    insertions = sum(file.insertions or 0 for _, file in files)
    deletions = sum(file.deletions or 0 for _, file in files)
    blocks: list[Block] = [_file_grid(diffs)]
    if patch:
        blocks.append(Code("Patch", patch, "diff"))
    return CommandResult(
        data={
            "plan_id": plan_id,
            "diff_summary": {
                "plan": plan_id,
                "files_changed": len(files),
                "insertions": insertions,
                "deletions": deletions,
            },
            "files": file_data(files),
            **left_out.data(diffs),
            "patch": patch,
        },
        blocks=blocks,
        messages=[f"{count(len(files), 'file')} changed, +{insertions} -{deletions}"],
        warnings=[*left_out.warnings(diffs), *_notes(diffs)],
    )


def apply_question(question: "ApplyQuestion", project: str) -> str:
    if DONE in question.targets.values():
        return f"Close the timeline of {project}, whose checkpoints go while all files stay"
    files = sum(len(diff.files) for diff in question.diffs.values())
    doubts = unchecked.although(question.unchecked)
    return f"Apply {count(files, 'changed file')} to {project}{doubts}"


def apply_preview(question: "ApplyQuestion", project: str) -> CommandResult:
    """What the question is about; nothing has happened yet, and so nothing looks done."""
    return CommandResult(
        data={**left_out.data(question.diffs), **left_out.brought_data(question.diffs)},
        blocks=[
            Fields(
                "Preview: what an apply would do",
                [("project", project), *question.targets.items()],
            ),
            _file_grid(question.diffs, "Would change"),
        ],
        messages=[*left_out.brought(question.diffs), "the patch: agents plan diff"],
        warnings=[
            *left_out.warnings(question.diffs),
            *_notes(question.diffs),
            *unchecked.warnings(question.unchecked),
        ],
    )


def applied(result: "ApplyResult", project: str) -> CommandResult:
    plan = result.plan
    files = files_of(result.diffs)
    return CommandResult(
        data={
            **picked(plan, "plan_id name phase state"),
            "project": project,
            "results": [{"resource": name, "ref": ref} for name, ref in result.refs.items()],
            "files": file_data(files),
            **left_out.data(result.diffs),
            **left_out.brought_data(result.diffs),
            "sandboxes_kept": dict(result.kept),
            **unchecked.data(result.unchecked),
            "undo_until": result.undo_until,
        },
        blocks=[
            Fields(
                "Applied",
                [
                    ("plan", Cell(plan.plan_id, "accent")),
                    ("project", project),
                    ("state", toned(plan.state)),
                    *((name, short_hash(ref)) for name, ref in result.refs.items()),
                ],
            ),
            _file_grid(result.diffs),
        ],
        messages=[
            _applied_words(result, project),
            *left_out.brought(result.diffs),
            *_undo_hint(result),
        ],
        warnings=[
            f"the sandbox of {name} stays at {path}, as it holds files that apply does not take or "
            f"sandbox.cleanup is manual; remove it with `agents plan discard {plan.plan_id}`"
            for name, path in result.kept.items()
        ]
        + left_out.warnings(result.diffs)
        + [f"applied{unchecked.although(result.unchecked)}" for _ in result.unchecked[:1]]
        + _notes(result.diffs),
    )


def _undo_hint(result: "ApplyResult") -> list[str]:
    if result.undo_until is None:
        return []
    when = moment(result.undo_until)
    return [f"take it back until {when}: agents undo --plan {result.plan.plan_id}"]


def _applied_words(result: "ApplyResult", project: str) -> str:
    if result.plan.action.in_place:
        return f"the timeline of {project} is closed; all files are as they were"
    return f"Apply complete: {count(len(files_of(result.diffs)), 'file')} changed in {project}"


def _file_grid(diffs: Mapping[str, ResourceDiff], title: str = "Files") -> Grid:
    return file_grid(title, rows_of(diffs), column="status", empty="nothing changed")


def _notes(diffs: Mapping[str, ResourceDiff]) -> list[str]:
    return [f"{name}: {note}" for name, item in diffs.items() for note in item.notes]
