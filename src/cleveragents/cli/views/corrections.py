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
from cleveragents.cli.render.blocks import Block, Cell, CommandResult, Fields, Grid
from cleveragents.cli.views.plans import status
from cleveragents.cli.views.rollbacks import reverted_grid
from cleveragents.cli.views.words import count, picked
from cleveragents.domain.checkpoint import RevertedFile
from cleveragents.domain.correction import Correction
from cleveragents.domain.decision import Decision
from cleveragents.domain.plan import Plan


def previewed(preview: CorrectionPreview) -> CommandResult:
    impact = preview.impact
    return CommandResult(
        data={"dry_run": True, **_impact_data(impact, preview.files)},
        blocks=_impact_blocks(impact, preview.files),
        messages=["Nothing was changed"],
    )


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
        blocks=[*_impact_blocks(impact, result.files), *after.blocks],
        messages=[
            f"Corrected: {count(len(impact.steps), 'step')} to do again,"
            f" {len(impact.kept)} later kept{_left_unchecked(impact)};"
            f" plan {found.plan.plan_id} is {found.plan.state}",
            "compare with before: agents plan diff --correction"
            f" {correction.correction_id} {found.plan.plan_id}",
            f"undo it: agents plan rollback {found.plan.plan_id} {undo}",
        ],
        warnings=[
            *_unheard(correction, found.plan),
            *result.done.effects.sentences(),
            *(note for item in result.done.changed for note in item.notes),
            *after.warnings,
        ],
    )


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
            f"Added as step {correction.step_index}; plan {found.plan.plan_id} is"
            f" {found.plan.state}",
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
            f"Told; plan {found.plan.plan_id} is {found.plan.state}",
            *after.messages,
        ],
        warnings=after.warnings,
    )


def _impact_data(impact: CorrectionImpact, files: Sequence[RevertedFile]) -> Mapping[str, Any]:
    return {
        "plan_id": impact.plan.plan_id,
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
        "type": decision.type,
        "step_index": decision.step_index,
        "description": decision.chosen,
        "why": reason.why if reason else None,
        "because_of": reason.source if reason else None,
        "proven": reason.proven if reason else True,
    }


def _impact_blocks(impact: CorrectionImpact, files: Sequence[RevertedFile]) -> Sequence[Block]:
    gone = [_row(decision, "done again", impact) for decision in impact.affected]
    kept = [_row(decision, _standing(decision, impact), impact) for decision in impact.kept]
    return [
        Fields(
            "Correction",
            [
                ("plan", Cell(impact.plan.plan_id, "accent")),
                ("decision", impact.decision.decision_id),
                ("was", impact.decision.chosen),
                ("back to", impact.target.label),
                ("child plans", str(impact.child_plans)),
            ],
        ),
        Grid("Decisions", ["step", "decision", "what", "becomes", "why"], [*gone, *kept]),
        reverted_grid(files, "no file differed"),
    ]


def _row(decision: Decision, becomes: str, impact: CorrectionImpact) -> Sequence[str]:
    step = "-" if decision.step_index is None else str(decision.step_index)
    return [step, decision.decision_id, decision.chosen, becomes, _why(decision, impact)]


def _standing(decision: Decision, impact: CorrectionImpact) -> str:
    return "stays, unchecked" if decision.decision_id in impact.unchecked else "stays"


def _why(decision: Decision, impact: CorrectionImpact) -> str:
    reason = impact.reasons.get(decision.decision_id)
    if reason is None:
        return "does not depend on it"
    steps = {item.decision_id: item.step_index for item in impact.affected}
    source = steps.get(reason.source) if reason.source else None
    return reason.why if source is None else f"{reason.why} (step {source})"
