"""How outside effects look: the ledger of a plan, and the steps ahead that wait for a word."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from cleveragents.cli.render.blocks import Cell, CommandResult, Grid
from cleveragents.cli.views.words import clock_time, picked, toned
from cleveragents.domain.action import step_number
from cleveragents.domain.effects import Effect, EffectState, EffectVerdict

if TYPE_CHECKING:
    from cleveragents.application.services.execute.tool_runner import EffectGate
    from cleveragents.application.services.plans.plan_queries import PlanEffects

_WORDS = {
    EffectVerdict.RUN: "would be run again",
    EffectVerdict.SKIP: "would be taken as done",
    EffectVerdict.STOP: "would stop there",
}


def ledger(found: "PlanEffects") -> CommandResult:
    return CommandResult(
        data={
            "plan_id": found.plan.plan_id,
            "name": found.plan.name,
            "effects": [_effect_data(effect, found) for effect in found.effects],
        },
        blocks=[
            Grid(
                "Outside effects",
                ["step", "tool", "effect", "state", "when", "note"],
                [
                    [
                        str(step_number(effect.step_index)),
                        effect.tool,
                        "; ".join(effect.effects),
                        toned(effect.state),
                        clock_time(effect.started_at),
                        _note(effect, found),
                    ]
                    for effect in found.effects
                ],
                empty="no step has reached outside its sandboxes",
            )
        ],
        warnings=[
            f"nobody knows whether this happened: {text}"
            for effect in found.effects
            if effect.state is EffectState.UNCERTAIN
            for text in effect.texts
        ],
    )


def _effect_data(effect: Effect, found: "PlanEffects") -> Mapping[str, Any]:
    return {
        **picked(effect, "effect_id step_index tool arguments effects state"),
        "undone": effect.effect_id in found.undone,
        "compensate": effect.compensate,
        "stands_for": effect.stands_for,
        "output": effect.result.output,
        "error": effect.error,
        "started": effect.started_at,
        "finished": effect.finished_at,
    }


def _note(effect: Effect, found: "PlanEffects") -> str | Cell:
    if effect.error:
        return Cell(effect.error, "warn")
    return Cell("its step was rolled back", "dim") if effect.effect_id in found.undone else ""


def ahead(effects: "Sequence[tuple[int, EffectGate]]") -> Sequence[Mapping[str, Any]]:
    return [
        {
            "step": index,
            **picked(crossing.standing, "tool effects state"),
            "would": crossing.passage,
        }
        for index, crossing in effects
        if crossing.standing is not None
    ]


def ahead_words(effects: "Sequence[tuple[int, EffectGate]]") -> Sequence[str]:
    return [
        f"step {step_number(index)} ({crossing.standing.tool}) has reached outside before "
        f"({crossing.standing.state}: {'; '.join(crossing.standing.effects)}): "
        f"it {_WORDS[crossing.passage]}"
        for index, crossing in effects
        if crossing.standing is not None
    ]
