"""How corrections look: what one would do, what it did, and what a plan was told."""

from collections.abc import Mapping, Sequence
from typing import Any

from cleveragents.application.services.corrections.append_service import Appended
from cleveragents.application.services.corrections.correction_impact import CorrectionImpact
from cleveragents.application.services.corrections.correction_service import (
    CorrectionPreview,
    CorrectionResult,
)
from cleveragents.application.services.plans.plan_queries import PlanStatus
from cleveragents.application.services.plans.prompt_service import Told
from cleveragents.cli.render.blocks import Block, Cell, Code, CommandResult, Fields, Grid
from cleveragents.cli.views.rollbacks import reverted_grid
from cleveragents.cli.views.status import status
from cleveragents.cli.views.words import count, picked, state_word
from cleveragents.domain.action import Step
from cleveragents.domain.checkpoint import RevertedFile
from cleveragents.domain.correction import Correction
from cleveragents.domain.decision import Decision
from cleveragents.domain.plan import Plan


def previewed(preview: CorrectionPreview) -> CommandResult:
    impact = preview.impact
    return CommandResult(
        data={
            "dry_run": True,
            **_impact_data(impact, preview.files),
            "replacement": None if preview.step is None else _step_data(preview.step, "arguments"),
        },
        blocks=[*_impact_blocks(impact, preview.files, foretold=True), *_steps(preview)],
        messages=["Nothing was changed"],
    )


def _steps(preview: CorrectionPreview) -> Sequence[Block]:
    """The step that takes the place of the one that is there, by what differs."""
    if preview.step is None:
        return []
    steps, index = preview.impact.plan.action.steps, preview.impact.decision.step_index
    now = steps[index] if index is not None and index < len(steps) else None
    lines = _lines(preview.step)
    if now is None:
        return [Code("The step that would take its place", "\n".join(lines))]
    from difflib import ndiff  # noqa: PLC0415  only a preview needs it

    differing = [line for line in ndiff(_lines(now), lines) if not line.startswith("?")]
    return [Code("The step that would take its place", "\n".join(differing), "diff")]


def _lines(step: Step) -> list[str]:
    from cleveragents.cli.render.yaml_text import dump  # noqa: PLC0415  slow to import

    return dump(_step_data(step, "with"), ascii_only=False).rstrip().splitlines()


def _step_data(step: Step, called: str) -> dict[str, Any]:
    """`called` is the name for its arguments; action files have another one than answers."""
    data: dict[str, Any] = {"name": step.name, "tool": step.tool, called: dict(step.arguments)}
    if step.subplans is not None:
        data["subplans"] = [child.name for child in step.subplans.plans]
    return {**data, **({"uses": list(step.uses)} if step.uses else {})}


def corrected(result: CorrectionResult, found: PlanStatus) -> CommandResult:
    impact, correction = result.impact, result.done.correction
    after = status(found)
    undo = result.done.safety.group_id
    return CommandResult(
        data={
            "dry_run": False,
            **picked(correction, "correction_id guidance intervention_id"),
            "undo_checkpoint": undo,
            **_impact_data(impact, result.files),
            "attempt": found.plan.attempt,
            "status": after.data,
        },
        blocks=[*_impact_blocks(impact, result.files), *_standing_now(found, after.blocks)],
        messages=[
            f"Corrected: {count(len(impact.steps), 'step')} {_again(found.plan)},"
            f" {len(impact.kept)} later kept{_left_unchecked(impact)};"
            f" plan {found.plan.plan_id} is {state_word(found.plan)}",
            "compare with before: agents plan diff --correction"
            f" {correction.correction_id} {found.plan.plan_id}",
            f"undo it: agents plan rollback {found.plan.plan_id} {undo}",
            *after.messages[-1:],
        ],
        warnings=[
            *_unheard(correction, found.plan),
            *result.done.effects.sentences(),
            *(note for item in result.done.changed for note in item.notes),
            *after.warnings,
        ],
    )


def _standing_now(found: PlanStatus, blocks: Sequence[Block]) -> Sequence[Block]:
    """Only if there is more to say than that it is finished: the screen has the correction on it.
    Where its sandboxes are and how long it took, `plan status` says."""
    if found.plan.executed:
        return []
    return [block for block in blocks if not (isinstance(block, Fields) and not block.title)]


def _again(plan: Plan) -> str:
    return "done again" if plan.executed else "to do again"


def _left_unchecked(impact: CorrectionImpact) -> str:
    return f" ({len(impact.unchecked)} unchecked)" if impact.unchecked else ""


def _unheard(correction: Correction, plan: Plan) -> list[str]:
    """Steps of a file are what they are; without another one, advice is only on record."""
    if correction.replacement is not None or plan.action.decides:
        return []
    return [
        "the plan's steps come from its action file, so the same step ran again and the guidance"
        " is only on record: give the step that shall take its place with --step-file"
    ]


def appended(done: Appended, found: PlanStatus) -> CommandResult:
    correction, after = done.correction, status(found)
    return CommandResult(
        data={
            **picked(
                correction,
                "correction_id plan_id decision_id mode guidance intervention_id steps",
            ),
            "status": after.data,
        },
        blocks=after.blocks,
        messages=[
            f"Added as step {(correction.step_index or 0) + 1}; plan {found.plan.plan_id} is"
            f" {state_word(found.plan)}",
            *after.messages,
        ],
        warnings=after.warnings,
    )


def prompted(told: Told, found: PlanStatus) -> CommandResult:
    after = status(found)
    return CommandResult(
        data={
            "decision_id": told.decision.decision_id,
            "guidance": told.decision.chosen,
            "status": after.data,
        },
        blocks=after.blocks,
        messages=[
            f"Told; plan {found.plan.plan_id} is {state_word(found.plan)}",
            *after.messages,
        ],
        warnings=after.warnings,
    )


def _impact_data(impact: CorrectionImpact, files: Sequence[RevertedFile]) -> Mapping[str, Any]:
    return {
        **picked(impact.plan, "plan_id name"),
        "decision_id": impact.decision.decision_id,
        "mode": "revert",
        "checkpoint": impact.target.head,
        "affected": [_decision_data(decision, impact) for decision in impact.affected],
        "kept": [_decision_data(decision, impact) for decision in impact.kept],
        "unchecked": [d.decision_id for d in impact.kept if d.decision_id in impact.unchecked],
        "steps": list(impact.steps),
        "child_plans": impact.child_plans,
        "whole_resources": [name for name, paths in impact.restored.items() if paths is None],
        "changes_reverted": [picked(item, "file action") for item in files],
    }


def _decision_data(decision: Decision, impact: CorrectionImpact) -> Mapping[str, Any]:
    reason = impact.reasons.get(decision.decision_id)
    return {
        "id": decision.decision_id,
        "decision_id": decision.decision_id,
        "type": decision.type,
        "step_index": decision.step_index,
        "description": decision.chosen,
        "why": reason.why if reason else None,
        "because_of": reason.source if reason else None,
        "proven": reason.proven if reason else True,
    }


def _impact_blocks(
    impact: CorrectionImpact, files: Sequence[RevertedFile], *, foretold: bool = False
) -> Sequence[Block]:
    gone = [_row(decision, "done again", impact) for decision in impact.affected]
    kept = [_row(decision, _standing(decision, impact), impact) for decision in impact.kept]
    return [
        Fields(
            "Preview: what a correction would do" if foretold else "Correction",
            [
                ("plan", Cell(impact.plan.plan_id, "accent")),
                ("was", impact.decision.chosen),
                ("back to", impact.target.label),
                *([("child plans", str(impact.child_plans))] if impact.child_plans else ()),
            ],
        ),
        Grid("Decisions", ["step", "decision", "becomes", "why"], [*gone, *kept]),
        reverted_grid(files, "no file differed", foretold=foretold, framed=False),
    ]


def _row(decision: Decision, becomes: str, impact: CorrectionImpact) -> Sequence[str]:
    step = "-" if decision.step_index is None else str(decision.step_index + 1)
    return [step, decision.chosen, becomes, _why(decision, impact)]


def _standing(decision: Decision, impact: CorrectionImpact) -> str:
    return "stays, unchecked" if decision.decision_id in impact.unchecked else "stays"


def _why(decision: Decision, impact: CorrectionImpact) -> str:
    reason = impact.reasons.get(decision.decision_id)
    if reason is None:
        return "does not depend on it"
    steps = {item.decision_id: item.step_index for item in impact.affected}
    source = steps.get(reason.source) if reason.source else None
    return reason.why if source is None else f"{reason.why} (step {source + 1})"
