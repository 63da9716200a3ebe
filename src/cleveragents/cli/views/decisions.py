"""How decisions and what came of them look: one explained, artifacts, errors."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec.structs import asdict

from cleveragents.application.services.plans.plan_queries import (
    ExplainedDecision,
    PlanRecord,
)
from cleveragents.application.services.subplans.queries import ChildStatus
from cleveragents.cli.render.blocks import Block, Cell, Code, CommandResult, Fields, Grid
from cleveragents.cli.views.children import standing
from cleveragents.cli.views.failures import failure_block, failure_data, next_after_failure
from cleveragents.cli.views.status import cancel_data
from cleveragents.cli.views.words import clock_time, picked, toned
from cleveragents.domain.actor_protocol import SUMMARY
from cleveragents.domain.changes import in_words
from cleveragents.domain.correction import Correction
from cleveragents.domain.decision import Decision, DecisionContext, ToolCall
from cleveragents.domain.ids import DecisionId


def explained(
    found: ExplainedDecision, *, context: bool = False, reasoning: bool = False
) -> CommandResult:
    """What is there to read; the data has everything."""
    decision, group = found.decision, found.group
    return CommandResult(
        data={
            **picked(
                decision,
                "decision_id plan_id parent_id type phase step_index question chosen "
                "alternatives rationale confidence context attempt superseded",
            ),
            "context": _known(decision.context),
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
            *([_reasoning(decision)] if reasoning else []),
            *([_context(decision)] if context else []),
            *_dependency_grids(found),
            *_correction_grids(found.corrections),
            _call_grid(found.calls),
        ],
    )


def _reasoning(decision: Decision) -> Code:
    weighed = [f"- {option}" for option in (decision.chosen, *decision.alternatives)]
    lines = [decision.question, *weighed, "", decision.rationale or "no reason was given"]
    return Code("Reasoning", "\n".join(lines))


def _context(decision: Decision) -> Code:
    known = _known(decision.context)
    text = json.dumps(known, indent=2, ensure_ascii=False) if known else "-"
    return Code("Context", text)


def _known(context: DecisionContext) -> Mapping[str, Any]:
    """What it has, the actor's own notes among the rest."""
    told = {**asdict(context), **context.notes}
    return {name: told[name] for name in told if name != "notes" and told[name] is not None}


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
            ("type", decision.type.replace("_", " ")),
            ("question", decision.question),
            ("chosen", decision.chosen),
            ("alternatives", ", ".join(decision.alternatives) or "-"),
            ("rationale", decision.rationale or "-"),
            ("confidence", sure),
            ("told", "; ".join(decision.context.guidance or ()) or "-"),
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
                str(call.step_index + 1),
                call.tool,
                toned(call.status),
                in_words(call.changes) if call.changes else "-",
                "yes" if call.undone else "no",
            ]
            for call in calls
        ],
    )


def artifacts(record: PlanRecord) -> CommandResult:
    blocks: list[Block] = [_call_grid(record.calls)]
    blocks.extend(
        Code(f"Output of step {call.step_index + 1} ({call.tool})", call.result.output)
        for call in record.calls
        if call.result.output and not call.undone
    )
    summary = str(record.plan.actor_state.get(SUMMARY, ""))
    if summary:
        blocks.append(Code("What the actor said at the end", summary))
    return CommandResult(
        data={
            **picked(record.plan, "plan_id name"),
            "artifacts": [_call_data(call) for call in record.calls],
            **({"summary": summary} if summary else {}),
        },
        blocks=blocks,
    )


def errors(record: PlanRecord) -> CommandResult:
    """Each thing once: the failure, the calls that failed besides, and the children that did."""
    plan = record.plan
    next_steps = [*next_after_failure(plan)] if plan.error else []
    children = list(_failed_children(record.children))
    blocks: list[Block] = [failure_block(plan.error)] if plan.error else []
    if plan.cancel_reason:
        blocks.append(Fields("Cancelled", [("because", plan.cancel_reason)]))
    blocks += _other_failures(record)
    if children:
        rows = [[name, standing(item.child), reason] for name, item, reason in children]
        blocks.append(Grid("Failed children", ["child", "result", "why"], rows))
    if not blocks:
        blocks.append(Grid("", ["error"], [], empty="nothing has failed"))
    return CommandResult(
        data={
            **picked(plan, "plan_id name state"),
            **cancel_data(plan),
            "error": dict(failure_data(plan.error)) if plan.error else None,
            "failures": [_call_data(call) for call in record.calls],
            "failed_children": [
                {"plan_id": item.plan.plan_id, "name": item.plan.name, "reason": reason}
                for _, item, reason in children
            ],
            "next_steps": next_steps,
        },
        blocks=blocks,
        messages=next_steps,
    )


def _other_failures(record: PlanRecord) -> list[Block]:
    """Those that the failure itself does not tell: tried again, undone, or answered."""
    failure = record.plan.error
    others = [
        call
        for call in record.calls
        if failure is None
        or call.step_index != failure.step
        or (call.error or "") not in failure.message
    ]
    rows = [
        [str(call.step_index + 1), call.tool, clock_time(call.finished_at), call.error or ""]
        for call in others
    ]
    title = "Failed before" if failure else "Failed calls"
    return [Grid(title, ["step", "tool", "when", "error"], rows)] if rows else []


def _failed_children(
    children: Sequence[ChildStatus], above: str = ""
) -> Iterator[tuple[str, ChildStatus, str]]:
    """By the names that lead to them."""
    for item in children:
        if not item.child.counts:
            continue
        name = f"{above}{item.child.name}"
        failed = item.plan.error.message if item.plan.error else ""
        reason = failed or item.child.reason or ""
        if reason or item.child.conflicts:
            yield name, item, reason or "; ".join(map(str, item.child.conflicts))
        yield from _failed_children(item.children, f"{name}/")
