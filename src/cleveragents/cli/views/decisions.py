"""How decisions and what came of them look: one explained, artifacts, errors."""

from collections.abc import Mapping, Sequence
from typing import Any

from cleveragents.application.services.plans.plan_queries import (
    ExplainedDecision,
    PlanRecord,
)
from cleveragents.cli.render.blocks import Block, Cell, Code, CommandResult, Fields, Grid
from cleveragents.cli.views.plans import failure_block, failure_data, next_after_failure
from cleveragents.cli.views.words import clock_time, picked, toned
from cleveragents.domain.actor_protocol import SUMMARY
from cleveragents.domain.correction import Correction
from cleveragents.domain.decision import ToolCall
from cleveragents.domain.ids import DecisionId


def explained(found: ExplainedDecision) -> CommandResult:
    decision, group = found.decision, found.group
    return CommandResult(
        data={
            **picked(
                decision,
                "decision_id plan_id parent_id type phase step_index question chosen "
                "alternatives rationale confidence context attempt superseded",
            ),
            "unchecked": found.unchecked,
            "created_at": decision.created_at,
            "checkpoint": group.head if group else None,
            "group_id": group.group_id if group else None,
            "depends_on": [_used(item.depends_on, item.why) for item in found.depends_on],
            "used_by": [_used(item.decision_id, item.why) for item in found.used_by],
            "corrections": [_correction_data(item) for item in found.corrections],
            "tool_calls": [_call_data(call) for call in found.calls],
        },
        blocks=[
            _decision_fields(found),
            *_dependency_grids(found),
            *_correction_grids(found.corrections),
            _call_grid(found.calls),
        ],
    )


def _used(decision_id: DecisionId, why: str) -> Mapping[str, str]:
    return {"decision_id": decision_id, "why": why}


def _dependency_grids(found: ExplainedDecision) -> Sequence[Grid]:
    """One for each direction in which there is something to tell."""
    sides = (
        ("Depends on", [(item.depends_on, item.why) for item in found.depends_on]),
        ("Used by", [(item.decision_id, item.why) for item in found.used_by]),
    )
    return [
        Grid(
            title,
            ["decision", "what", "why"],
            [[decision_id, found.names.get(decision_id, "-"), why] for decision_id, why in items],
        )
        for title, items in sides
        if items
    ]


def _correction_data(correction: Correction) -> Mapping[str, Any]:
    return {
        **picked(
            correction,
            "correction_id decision_id mode status guidance intervention_id steps",
        ),
        "undo_checkpoint": correction.safety_group,
        "created_at": correction.created_at,
    }


def _correction_grids(corrections: Sequence[Correction]) -> Sequence[Grid]:
    rows = [
        [item.correction_id, item.mode, toned(item.status), item.guidance] for item in corrections
    ]
    return [Grid("Corrections", ["correction", "mode", "status", "guidance"], rows)] if rows else []


def _decision_fields(found: ExplainedDecision) -> Fields:
    decision, group = found.decision, found.group
    sure = "-" if decision.confidence is None else f"{decision.confidence:.0%}"
    return Fields(
        "Decision",
        [
            ("decision", Cell(decision.decision_id, "accent")),
            ("type", decision.type),
            ("question", decision.question),
            ("chosen", decision.chosen),
            ("alternatives", ", ".join(decision.alternatives) or "-"),
            ("rationale", decision.rationale or "-"),
            ("confidence", sure),
            ("told", "; ".join(decision.context.get("guidance", [])) or "-"),
            ("made", clock_time(decision.created_at)),
            ("superseded", "yes" if decision.superseded else "no"),
            ("checkpoint", group.group_id if group else "-"),
        ],
    )


def _call_data(call: ToolCall) -> Mapping[str, Any]:
    return {
        **picked(call, "step_index tool status undone"),
        "output": call.result.output,
        "values": dict(call.result.values),
        "error": call.error,
        "files": [{"path": change.path, "change": change.kind} for change in call.changes],
        "reads": call.reach.reads,
        "started": call.started_at,
        "finished": call.finished_at,
    }


def _call_grid(calls: Sequence[ToolCall]) -> Grid:
    return Grid(
        "Tool calls",
        ["step", "tool", "status", "files", "undone"],
        [
            [
                str(call.step_index),
                call.tool,
                toned(call.status),
                ", ".join(change.path for change in call.changes) or "-",
                "yes" if call.undone else "no",
            ]
            for call in calls
        ],
    )


def artifacts(record: PlanRecord) -> CommandResult:
    blocks: list[Block] = [_call_grid(record.calls)]
    blocks.extend(
        Code(f"Output of step {call.step_index} ({call.tool})", call.result.output)
        for call in record.calls
        if call.result.output and not call.undone
    )
    summary = str(record.plan.actor_state.get(SUMMARY, ""))
    if summary:
        blocks.append(Code("What the actor said at the end", summary))
    return CommandResult(
        data={
            "plan_id": record.plan.plan_id,
            "artifacts": [_call_data(call) for call in record.calls],
            **({"summary": summary} if summary else {}),
        },
        blocks=blocks,
    )


def errors(record: PlanRecord) -> CommandResult:
    plan = record.plan
    blocks: list[Block] = []
    if plan.error:
        blocks.append(failure_block(plan.error))
    blocks.append(
        Grid(
            "Failed calls",
            ["step", "tool", "when", "error"],
            [
                [str(call.step_index), call.tool, clock_time(call.finished_at), call.error or ""]
                for call in record.calls
            ],
            empty="no call has failed",
        )
    )
    next_steps = [*next_after_failure(plan), plan.error.hint] if plan.error else []
    return CommandResult(
        data={
            "plan_id": plan.plan_id,
            "state": plan.state,
            "error": dict(failure_data(plan.error)) if plan.error else None,
            "failures": [_call_data(call) for call in record.calls],
            "next_steps": next_steps,
        },
        blocks=blocks,
        messages=next_steps,
    )
