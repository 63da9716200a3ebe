"""Effects outside the sandboxes: what is known of each, and whether it may happen again."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from cleveragents.domain.action import step_number
from cleveragents.domain.decision import Position, ToolResult, is_live
from cleveragents.domain.ids import DecisionId, EffectId, PlanId

RESULT_NAMES = ("output", "exit_code")
"""What a compensating tool can ask for beside the arguments of the call that it undoes."""

CUT_OFF = "it was cut off before its end was recorded"


class EffectState(StrEnum):
    STARTED = "started"
    DONE = "done"
    UNCERTAIN = "uncertain"
    SKIPPED = "skipped"
    COMPENSATING = "compensating"
    COMPENSATED = "compensated"


class EffectChoice(StrEnum):
    """What a person said about steps whose effect has happened, or may have."""

    STOP = "stop"
    REPEAT = "repeat"
    SKIP = "skip"


class Effect(Struct, frozen=True, kw_only=True):
    """One run of a tool that reaches outside: stored before the tool starts (ADR 0020).

    A `skipped` one did not run: `stands_for` names the earlier run whose result was taken.
    """

    effect_id: EffectId
    plan_id: PlanId
    decision_id: DecisionId
    position: Position
    step_index: int
    tool: str
    arguments: Mapping[str, Any]
    arguments_hash: str
    effects: tuple[str, ...]
    state: EffectState = EffectState.STARTED
    result: ToolResult = field(default_factory=ToolResult)
    compensate: str | None = None
    stands_for: EffectId | None = None
    error: str | None = None
    started_at: datetime
    finished_at: datetime | None = None

    @property
    def key(self) -> tuple[int, str, str]:
        """The same step doing the same thing has the same key, on whichever timeline."""
        return (self.step_index, self.tool, self.arguments_hash)

    @property
    def texts(self) -> tuple[str, ...]:
        return tuple(
            f"step {step_number(self.step_index)} ({self.tool}): {text}" for text in self.effects
        )

    def done(self, result: ToolResult, now: datetime) -> "Effect":
        return replace(self, state=EffectState.DONE, result=result, error=None, finished_at=now)

    def uncertain(self, error: str, now: datetime) -> "Effect":
        return replace(self, state=EffectState.UNCERTAIN, error=error, finished_at=now)

    def still_there(self, error: str) -> "Effect":
        """What should have undone it did not even start."""
        return replace(self, state=EffectState.DONE, error=error)

    def compensating(self) -> "Effect":
        return replace(self, state=EffectState.COMPENSATING, error=None)

    def compensated(self, now: datetime) -> "Effect":
        return replace(self, state=EffectState.COMPENSATED, error=None, finished_at=now)


_HAPPENED = (EffectState.DONE, EffectState.SKIPPED)
_MAYBE = (EffectState.STARTED, EffectState.UNCERTAIN, EffectState.COMPENSATING)


def earlier_effect(effects: Sequence[Effect], key: tuple[int, str, str]) -> Effect | None:
    """The run of this very step that must not be repeated unasked.

    `effects` may be of several plans: of a child, and of those that had its place before. Only the
    newest counts: whoever let a step run again has settled what was there before.
    """
    runs = [e for e in effects if e.key == key and e.state is not EffectState.SKIPPED]
    newest = max(runs, key=lambda effect: (effect.plan_id, effect.position.seq), default=None)
    if newest is None or newest.state is EffectState.COMPENSATED:
        return None
    return newest


class EffectVerdict(StrEnum):
    """What happens to a step whose effect may be there already."""

    RUN = "run"
    SKIP = "skip"
    STOP = "stop"


def passage(standing: Effect | None, choice: EffectChoice, *, idempotent: bool) -> EffectVerdict:
    """An idempotent tool may always run again; for others a person decides."""
    if standing is None or choice is EffectChoice.REPEAT:
        return EffectVerdict.RUN
    if choice is EffectChoice.SKIP:
        return EffectVerdict.SKIP
    return EffectVerdict.RUN if idempotent else EffectVerdict.STOP


Reach = Mapping[int, int | None]


class EffectsTurn(Struct, frozen=True, kw_only=True):
    """What going back means for effects: those that no longer count, newest first, and those
    that count again."""

    undone: tuple[Effect, ...]
    revived: tuple[Effect, ...]


def turned(effects: Sequence[Effect], before: Reach, after: Reach) -> EffectsTurn:
    newest = {effect.key: effect for effect in sorted(effects, key=lambda e: e.position.seq)}
    ordered = sorted(effects, key=lambda effect: effect.position.seq, reverse=True)
    undone = [
        effect
        for effect in ordered
        if is_live(effect.position, before)
        and not is_live(effect.position, after)
        # A doubt about a run is settled once the same step has run, or was skipped, after it.
        and (effect.state not in _MAYBE or newest[effect.key] is effect)
    ]
    revived = [
        effect
        for effect in ordered
        if is_live(effect.position, after) and not is_live(effect.position, before)
    ]
    return EffectsTurn(undone=tuple(undone), revived=tuple(revived))


class EffectReport(Struct, frozen=True, kw_only=True):
    """What became of outside effects at a rollback, in words.

    `lasting`: nothing undoes them. `failed`: their compensation did not work. `uncertain`: they may
    or may not have happened. `not_redone`: they count again, but were compensated.
    """

    compensated: tuple[str, ...] = ()
    lasting: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()
    uncertain: tuple[str, ...] = ()
    not_redone: tuple[str, ...] = ()

    def sentences(self, *, foretold: bool = False) -> tuple[str, ...]:
        compensated = "will be compensated" if foretold else "compensated"
        return (
            *(f"{compensated}: {text}" for text in self.compensated),
            *(f"cannot be undone: {text}" for text in self.lasting),
            *(f"not undone: {text}" for text in self.failed),
            *(f"may have happened: {text}" for text in self.uncertain),
            *(f"compensated earlier, and not done again: {text}" for text in self.not_redone),
        )


def report(
    undone: Sequence[Effect], revived: Sequence[Effect], children: Mapping[PlanId, str]
) -> EffectReport:
    """`undone` as they are once their compensations have run; `children` are names by plan."""

    def told(effects: Iterable[Effect]) -> tuple[str, ...]:
        return tuple(
            _of_child(effect, children) + text for effect in effects for text in effect.texts
        )

    def reasons(effects: Iterable[Effect]) -> tuple[str, ...]:
        return tuple(f"{text}: {effect.error}" for effect in effects for text in told([effect]))

    stays = [e for e in undone if e.state in _HAPPENED]
    return EffectReport(
        compensated=told(e for e in undone if e.state is EffectState.COMPENSATED),
        lasting=told(e for e in stays if e.error is None),
        failed=reasons(e for e in stays if e.error is not None),
        uncertain=reasons(e for e in undone if e.state in _MAYBE),
        not_redone=told(e for e in revived if e.state is EffectState.COMPENSATED),
    )


def _of_child(effect: Effect, children: Mapping[PlanId, str]) -> str:
    name = children.get(effect.plan_id)
    return f"child {name}, " if name else ""
