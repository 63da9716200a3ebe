"""The words in which a model is told its task, and what came of its steps."""

import json

from cleveragents.domain.action import Action
from cleveragents.domain.actor_protocol import StepOutcome

MOST_OUTPUT = 30_000
"""Characters of one output that a model is shown; the record has all of it."""

OVERRULED = "not carried out: a person said something first"
ABANDONED = "not carried out: an earlier call failed; decide anew"
EMPTY = "Your answer was empty. Call a tool, or say in a few words that the work is done."
CUT_OFF = "Your answer was cut off because it was too long. Take a smaller step."
WITHHELD = "Your answer was withheld, all or part of it, by those who run you. Say it differently."
OUTLINE = "Do nothing yet. Say in at most ten lines how you mean to go about it."

_RULES = """You carry out a piece of work by calling tools, one call at a time.

- You work in sandboxes, which are copies. Nothing reaches the real project before a person has
  accepted it.
- Paths are relative to the top of the resource.
- Each call is a step. It is recorded, and a person can take you back to before it.
- A call that fails has changed nothing: whatever it had done in the sandboxes was undone. Read
  why, and try something else.
- Say in a sentence before each call why you make it.
- When the work is done, answer without calling a tool: what you did, in a few lines.
"""


def rules_for(action: Action) -> str:
    resources = "\n".join(f"- {spec.name}: {spec.type}" for spec in action.resources)
    parts = [_RULES, f"The resources:\n{resources}\n"]
    if action.invariants:
        kept = "\n".join(f"- {sentence}" for sentence in action.invariants)
        parts.append(f"Whatever you do, this must stay true:\n{kept}\n")
    instructions = action.actor.options.get("instructions")
    if instructions:
        parts.append(f"{instructions}\n")
    return "\n".join(parts)


def result_of(outcome: StepOutcome) -> str:
    if outcome.error is not None:
        return f"failed: {_shortened(outcome.error)}\nWhat it had changed was undone."
    text = _shortened(outcome.result.output)
    values = {k: v for k, v in outcome.result.values.items() if k != "output"}
    if values:
        told = json.dumps(values, ensure_ascii=False, default=str)
        text += f"\n{told}" if len(told) <= MOST_OUTPUT else ""
    return text.strip() or "done"


def news_of(outcome: StepOutcome) -> str:
    """Of a step that the model did not ask for."""
    if outcome.error is not None:
        return f"The check `{outcome.step.name}` does not pass. {result_of(outcome)}"
    return f"A person had this step carried out: {outcome.step.name}\n{result_of(outcome)}"


def _shortened(text: str) -> str:
    if len(text) <= MOST_OUTPUT:
        return text
    half = MOST_OUTPUT // 2
    left_out = len(text) - 2 * half
    return f"{text[:half]}\n[... {left_out} characters left out ...]\n{text[-half:]}"
