"""Which steps a person wants to stay as they are, although nothing proves that they hold."""

from collections.abc import Mapping, Sequence

from msgspec import Struct, field

from cleveragents.application.ports.runtime import UnitOfWork
from cleveragents.application.services.corrections.correction_impact import CorrectionImpact
from cleveragents.application.services.execute.run_state import done_steps, unchecked_of
from cleveragents.domain.errors import CorrectionRefusedError, UsageError
from cleveragents.domain.ids import DecisionId
from cleveragents.domain.plan import Plan

ALL = "all"
"""As a step to keep: every one that is not proven to depend on what is corrected."""


class Keeping(Struct, frozen=True, kw_only=True):
    """`asked` has the steps that were named one by one: if one of them cannot stay, that is told
    before anything changes."""

    decisions: frozenset[DecisionId] = frozenset()
    asked: Mapping[DecisionId, str] = field(default_factory=dict[DecisionId, str])

    @classmethod
    def wanted(cls, uow: UnitOfWork, plan: Plan, texts: Sequence[str]) -> "Keeping":
        """Each a step's number or name, or `all`. Raises UsageError."""
        if not texts:
            return cls()  # nearly always; the rest would make long plans slow
        done = done_steps(uow, plan, uow.tool_calls.of_plan(plan.plan_id))
        asked = {done[i]: text for text in texts if text != ALL for i in [_step(plan, done, text)]}
        every = done.values() if ALL in texts else ()
        return cls(decisions=frozenset({*asked, *every}), asked=asked)

    @classmethod
    def as_before(cls, uow: UnitOfWork, plan: Plan) -> "Keeping":
        """What a person has let stand already."""
        return cls(decisions=frozenset(unchecked_of(uow, plan)))

    def refuse_if_one_goes(self, impact: CorrectionImpact) -> None:
        for decision in impact.affected:
            text = self.asked.get(decision.decision_id)
            if text is not None:
                reason = impact.reasons[decision.decision_id]
                raise CorrectionRefusedError(
                    f"step {decision.step_index} ({decision.chosen}) cannot be kept: it"
                    f" {reason.why}",
                    f"leave --keep {text} out; it is done again then",
                )


def _step(plan: Plan, done: Mapping[int, DecisionId], text: str) -> int:
    steps = plan.action.steps
    found = [index for index, step in enumerate(steps) if step.name == text]
    if not found and text.isascii() and text.isdecimal():
        found = [index for index in [int(text)] if index < len(steps)]
    if len(found) > 1:
        numbers = ", ".join(map(str, found))
        raise UsageError(
            f"several steps are called {text!r}", f"say it by number with --keep: {numbers}"
        )
    if not found or found[0] not in done:
        numbers = ", ".join(f"{i} ({steps[i].name})" for i in sorted(done) if i < len(steps))
        raise UsageError(
            f"no step that has run is called {text!r}", f"--keep takes one of these: {numbers}"
        )
    return found[0]
