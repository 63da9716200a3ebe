"""How plans look: made, running, cancelled, applied, and what they would change."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from cleveragents.application.services.subplans.queries import counting
from cleveragents.cli.render.blocks import Block, Cell, Code, CommandResult, Fields, Grid
from cleveragents.cli.views import confinement, unchecked
from cleveragents.cli.views.acting import acting_data, acting_rows
from cleveragents.cli.views.children import child_data, child_grid
from cleveragents.cli.views.conflicts import conflict_blocks, conflict_steps, overwritten
from cleveragents.cli.views.failures import failure_block, failure_data
from cleveragents.cli.views.words import clock_time, count, picked, toned
from cleveragents.domain.action import Action
from cleveragents.domain.changes import FileDiff, ResourceDiff
from cleveragents.domain.confinement import Enforcement
from cleveragents.domain.ids import PlanId
from cleveragents.domain.places import place_of
from cleveragents.domain.plan import Phase, Plan

if TYPE_CHECKING:  # the services behind these are slow to import, and `plan status` needs none
    from cleveragents.application.services.apply.apply_service import ApplyQuestion, ApplyResult
    from cleveragents.application.services.plans.plan_queries import PlanStatus
    from cleveragents.application.services.plans.plan_service import CancelledPlan, UsedAction
    from cleveragents.application.services.sandboxes.cleanup import Discarded


def used(result: "UsedAction") -> CommandResult:
    plan = result.plan
    next_steps = [f"agents plan execute {plan.plan_id}"]
    return CommandResult(
        data={
            **picked(plan, "plan_id phase state"),
            "action": plan.action.name,
            "resources": [
                {"name": r.name, "type": r.type, "path": r.location, "base": r.base}
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
                ["resource", "type", "path"],
                [[r.name, r.type, r.location] for r in result.resources],
            ),
        ],
        messages=[f"next: {step}" for step in next_steps],
        warnings=result.notices,
    )


def _steps(action: Action) -> str:
    return f"decided by the actor {action.actor.type}" if action.decides else str(len(action.steps))


def status(found: "PlanStatus", holds: Enforcement | None = None) -> CommandResult:
    """`holds` is what this machine can do of the confinement that the action asks for."""
    asked, data, rows = found.plan.action.confinement, dict(_status_data(found)), []
    if holds is not None:
        data["confinement"] = confinement.data(asked, holds)
        rows = [confinement.row(asked, holds)]
    return CommandResult(
        data=data,
        blocks=_status_blocks(found, rows),
        messages=_next_steps(found),
        warnings=[*_status_warnings(found), *(confinement.warnings(holds) if holds else ())],
    )


def executed(found: "PlanStatus", holds: Enforcement | None = None) -> CommandResult:
    """A plan that has done all its steps; one that failed is an error instead."""
    outcome = status(found, holds)
    done = f"plan {found.plan.plan_id} is {found.plan.state}"
    return replace(outcome, messages=[done, *outcome.messages])


def _status_data(found: "PlanStatus") -> Mapping[str, Any]:
    plan = found.plan
    data: dict[str, Any] = {
        **picked(plan, "plan_id phase state"),
        "action": plan.action.name,
        "attempt": plan.attempt,
        "progress": [{"step": item.step, "status": item.status} for item in found.progress],
        "timing": {
            "started": plan.started_at,
            "elapsed": round(found.elapsed.total_seconds(), 3),
        },
        "execution": {
            "sandbox": ", ".join(sorted({r.status.value for r in found.resources})),
            "tool_calls": found.tool_calls,
            "files_modified": found.files_modified,
            "child_plans": sum(1 for _ in counting(found.children)),
            "checkpoints": found.checkpoints,
        },
        "sandboxes": [
            {
                "resource": r.name,
                "type": r.type,
                "strategy": r.kind.strategy,
                "path": r.sandbox_path,
                "status": r.status,
            }
            for r in found.resources
        ],
        "last_completed_step": plan.last_completed_step,
        "last_checkpoint_id": plan.head,
        **acting_data(found),
        **unchecked.data(found.unchecked),
    }
    if found.children:
        data["children"] = [child_data(item) for item in found.children]
    if plan.error is not None:
        data["error"] = failure_data(plan.error)
    return data


def _status_blocks(
    found: "PlanStatus", further: Sequence[tuple[str, str | Cell]]
) -> Sequence[Block]:
    plan = found.plan
    rows: list[tuple[str, str | Cell]] = [
        ("plan", Cell(plan.plan_id, "accent")),
        ("action", plan.action.name),
        ("project", place_of(found.resources) or "-"),
        ("phase", plan.phase),
        ("state", toned(plan.state)),
        ("started", clock_time(plan.started_at)),
        ("elapsed", f"{found.elapsed.total_seconds():.1f} s"),
        ("checkpoints", str(found.checkpoints)),
        ("stands on", plan.head or "-"),
        *further,
    ]
    rows.extend(acting_rows(found))
    if found.owner:
        rows.append(("in use by", found.owner))
    blocks: list[Block] = [
        Fields("Plan", rows),
        Grid(
            "Steps",
            ["#", "step", "status"],
            _step_rows(found),
        ),
        Grid(
            "Sandboxes",
            ["resource", "type", "status", "path"],
            [[r.name, r.type, toned(r.status), r.sandbox_path] for r in found.resources],
        ),
    ]
    if any(counting(found.children)):
        blocks.insert(2, child_grid(found.children))
        blocks.extend(conflict_blocks(found.children))
    if plan.error:
        blocks.append(failure_block(plan.error))
    return blocks


def _step_rows(found: "PlanStatus") -> Sequence[Sequence[str | Cell]]:
    marked = {u.step_index for u in found.unchecked if u.plan_id == found.plan.plan_id}
    return [
        [
            str(index),
            item.step,
            Cell(f"{item.status}, unchecked", "warn") if index in marked else toned(item.status),
        ]
        for index, item in enumerate(found.progress)
    ]


def _status_warnings(found: "PlanStatus") -> Sequence[str]:
    warnings: list[str] = []
    if found.abandoned:
        command = "apply" if found.plan.phase is Phase.APPLY else "resume"
        warnings.append(
            "the process that worked on this plan is gone; "
            f"go on with `agents plan {command} {found.plan.plan_id}`"
        )
    if found.plan.rollback_target is not None:
        warnings.append("a rollback was interrupted; the next command that runs finishes it")
    lost = overwritten(found.children)
    return [*warnings, *lost, *unchecked.warnings(found.unchecked)]


def _next_steps(found: "PlanStatus") -> Sequence[str]:
    plan = found.plan
    if plan.is_final or found.owner or found.abandoned:
        return []
    if plan.executed:
        return [
            f"look: agents plan diff {plan.plan_id}",
            f"next: agents plan apply {plan.plan_id}",
        ]
    if plan.error is None:
        return [f"next: agents plan execute {plan.plan_id}"]
    return [*conflict_steps(plan.plan_id, found.children), *next_after_failure(plan)]


def next_after_failure(plan: Plan) -> Sequence[str]:
    steps = [f"try again: agents plan resume {plan.plan_id}"]
    if plan.error and plan.error.checkpoint:
        steps.append(f"go back: agents plan rollback {plan.plan_id} {plan.error.checkpoint}")
        steps.append(f"further back: agents plan checkpoint list {plan.plan_id}")
    return steps


def cancelled(result: "CancelledPlan", project: str) -> CommandResult:
    plan = result.plan
    kept = [f"the sandbox of {name} stays at {path}" for name, path in result.kept.items()]
    if kept:
        kept.append(f"remove what stays with `agents plan discard {plan.plan_id}`")
    return CommandResult(
        data={
            **picked(plan, "plan_id phase state"),
            "project": project,
            "sandboxes_kept": dict(result.kept),
        },
        messages=[f"plan {plan.plan_id} of {project} is cancelled", *kept],
    )


def discarded(result: "Discarded", project: str) -> CommandResult:
    plan = result.plan
    gone = [f"the sandbox of {name} at {path} is removed" for name, path in result.removed.items()]
    return CommandResult(
        data={
            **picked(plan, "plan_id phase state"),
            "project": project,
            "sandboxes_removed": dict(result.removed),
        },
        messages=[
            *gone,
            f"plan {plan.plan_id} of {project} has no sandboxes any more",
        ],
    )


def diff(plan_id: PlanId, diffs: Mapping[str, ResourceDiff]) -> CommandResult:
    files = _files(diffs)
    patch = "".join(item.patch for item in diffs.values())
    insertions = sum(file.insertions or 0 for _, file in files)
    deletions = sum(file.deletions or 0 for _, file in files)
    blocks: list[Block] = [_file_grid(diffs)]
    if patch:
        blocks.append(Code("Patch", patch, "diff"))
    return CommandResult(
        data={
            "diff_summary": {
                "plan": plan_id,
                "files_changed": len(files),
                "insertions": insertions,
                "deletions": deletions,
            },
            "files": _file_data(files),
            "patch": patch,
        },
        blocks=blocks,
        messages=[f"{count(len(files), 'file')} changed, +{insertions} -{deletions}"],
        warnings=[*_left_behind(diffs), *_notes(diffs)],
    )


def apply_question(question: "ApplyQuestion", project: str) -> str:
    files = sum(len(diff.files) for diff in question.diffs.values())
    doubts = unchecked.although(question.unchecked)
    return f"Apply {count(files, 'changed file')} to {project}{doubts}"


def applied(result: "ApplyResult", project: str) -> CommandResult:
    plan = result.plan
    files = _files(result.diffs)
    return CommandResult(
        data={
            **picked(plan, "plan_id phase state"),
            "project": project,
            "results": [{"resource": name, "ref": ref} for name, ref in result.refs.items()],
            "files": _file_data(files),
            "sandboxes_kept": dict(result.kept),
            **unchecked.data(result.unchecked),
        },
        blocks=[
            Fields(
                "Applied",
                [
                    ("plan", Cell(plan.plan_id, "accent")),
                    ("project", project),
                    ("state", toned(plan.state)),
                    *((name, ref) for name, ref in result.refs.items()),
                ],
            ),
            _file_grid(result.diffs),
        ],
        messages=[f"Apply complete: {count(len(files), 'file')} changed in {project}"],
        warnings=[
            f"the sandbox of {name} stays at {path}, as it holds files that apply does not take or "
            f"sandbox.cleanup is manual; remove it with `agents plan discard {plan.plan_id}`"
            for name, path in result.kept.items()
        ]
        + [f"applied{unchecked.although(result.unchecked)}" for _ in result.unchecked[:1]]
        + _notes(result.diffs),
    )


def change_of(file: FileDiff) -> str:
    if file.insertions is None or file.deletions is None:
        return "binary"
    return f"+{file.insertions} -{file.deletions}"


def _files(diffs: Mapping[str, ResourceDiff]) -> list[tuple[str, FileDiff]]:
    many = len(diffs) > 1
    return [
        (f"{name}:{file.path}" if many else file.path, file)
        for name, item in diffs.items()
        for file in item.files
    ]


def _file_data(files: Sequence[tuple[str, FileDiff]]) -> Sequence[Mapping[str, str]]:
    return [{"path": path, "change": change_of(file), "status": file.kind} for path, file in files]


def _file_grid(diffs: Mapping[str, ResourceDiff]) -> Grid:
    rows = [[path, toned(file.kind), change_of(file)] for path, file in _files(diffs)]
    return Grid("Files", ["file", "status", "change"], rows, empty="nothing changed")


def _notes(diffs: Mapping[str, ResourceDiff]) -> list[str]:
    return [f"{name}: {note}" for name, item in diffs.items() for note in item.notes]


def _left_behind(diffs: Mapping[str, ResourceDiff]) -> Sequence[str]:
    return [
        f"apply does not take these ignored files of {name}: {', '.join(item.left_behind)}"
        for name, item in diffs.items()
        if item.left_behind
    ]
