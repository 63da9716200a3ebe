"""Effects outside the sandboxes: what each move says about one, and how people are told."""

from typing import Any

import pytest
from domain_builders import LATER, NOW, OTHER_PLAN, PLAN, ulid
from msgspec.structs import replace

from cleveragents.domain.apply import PreparedApply, intended
from cleveragents.domain.changes import ResourceDiff
from cleveragents.domain.decision import Position, ToolResult
from cleveragents.domain.effects import (
    Effect,
    EffectReport,
    EffectState,
    EffectsTurn,
    Reach,
    report,
    turned,
)
from cleveragents.domain.ids import DecisionId, EffectId, ResourceId


def effect(**fields: Any) -> Effect:
    values: dict[str, Any] = {
        "effect_id": EffectId(ulid(1)),
        "plan_id": PLAN,
        "decision_id": DecisionId(ulid(2)),
        "position": Position(timeline=0, seq=1),
        "step_index": 3,
        "tool": "mail",
        "arguments": {},
        "arguments_hash": "hash",
        "effects": ("sends a mail",),
        "started_at": NOW,
    }
    return Effect(**{**values, **fields})


def test_each_move_says_what_is_known_now_and_nothing_of_before() -> None:
    began = effect(state=EffectState.UNCERTAIN, error="it was cut off")
    result = ToolResult(output="sent")

    assert began.done(result, LATER) == replace(
        began, state=EffectState.DONE, result=result, error=None, finished_at=LATER
    )
    assert began.uncertain("no answer", LATER) == replace(
        began, state=EffectState.UNCERTAIN, error="no answer", finished_at=LATER
    )
    assert began.still_there("no such tool") == replace(
        began, state=EffectState.DONE, error="no such tool"
    )
    assert began.compensating() == replace(began, state=EffectState.COMPENSATING, error=None)
    assert began.compensated(LATER) == replace(
        began, state=EffectState.COMPENSATED, error=None, finished_at=LATER
    )


# --- what going back means for them --------------------------------------------------------------

FIRST_LINE: Reach = {0: None}
BACK_AT_3: Reach = {0: 3, 1: None}


def run(seq: int, state: EffectState = EffectState.DONE, step: int | None = None) -> Effect:
    return effect(
        position=Position(timeline=0, seq=seq),
        state=state,
        step_index=seq if step is None else step,
    )


def test_what_came_later_is_undone_the_newest_first() -> None:
    effects = [run(2), run(5), run(4), run(3)]

    assert turned(effects, FIRST_LINE, BACK_AT_3) == EffectsTurn(
        undone=(run(5), run(4)), revived=()
    )


def test_what_counts_again_is_told_the_newest_first() -> None:
    effects = [run(2), run(5), run(4)]

    assert turned(effects, BACK_AT_3, FIRST_LINE) == EffectsTurn(
        undone=(), revived=(run(5), run(4))
    )


def test_a_doubt_is_settled_once_the_same_step_ran_again() -> None:
    cut_off = run(4, EffectState.UNCERTAIN, step=1)
    again = run(5, EffectState.DONE, step=1)

    assert turned([cut_off], FIRST_LINE, BACK_AT_3).undone == (cut_off,)
    assert turned([again, cut_off], FIRST_LINE, BACK_AT_3).undone == (again,)
    assert turned([cut_off, run(6)], FIRST_LINE, BACK_AT_3).undone == (run(6), cut_off)


# --- what people are told ------------------------------------------------------------------------

MAIL = "step 4 (mail): sends a mail"


@pytest.mark.parametrize(
    ("state", "error", "expected"),
    [
        (EffectState.COMPENSATED, None, {"compensated": (MAIL,)}),
        (EffectState.DONE, None, {"lasting": (MAIL,)}),
        (EffectState.SKIPPED, None, {"lasting": (MAIL,)}),
        (EffectState.DONE, "no", {"failed": (f"{MAIL}: no",)}),
        (EffectState.STARTED, "cut off", {"uncertain": (f"{MAIL}: cut off",)}),
        (EffectState.UNCERTAIN, "cut off", {"uncertain": (f"{MAIL}: cut off",)}),
        (EffectState.COMPENSATING, "cut off", {"uncertain": (f"{MAIL}: cut off",)}),
    ],
)
def test_what_became_of_an_effect_that_no_longer_counts_is_told(
    state: EffectState, error: str | None, expected: dict[str, tuple[str, ...]]
) -> None:
    assert report([effect(state=state, error=error)], [], {}) == EffectReport(**expected)


@pytest.mark.parametrize("state", EffectState)
def test_an_effect_that_counts_again_is_told_if_it_was_compensated(state: EffectState) -> None:
    told = report([], [effect(state=state)], {})

    again = (MAIL,) if state is EffectState.COMPENSATED else ()
    assert told == EffectReport(not_redone=again)


def test_an_effect_of_a_child_is_told_with_its_name() -> None:
    both = [effect(state=EffectState.DONE), effect(state=EffectState.DONE, plan_id=OTHER_PLAN)]

    assert report(both, [], {OTHER_PLAN: "en"}).lasting == (MAIL, f"child en, {MAIL}")


def test_the_sentences_say_what_is_done_or_will_be() -> None:
    told = EffectReport(
        compensated=("a",), lasting=("b",), failed=("c",), uncertain=("d",), not_redone=("e",)
    )
    others = (
        "cannot be undone: b",
        "not undone: c",
        "may have happened: d",
        "compensated earlier, and not done again: e",
    )

    assert told.sentences() == ("compensated: a", *others)
    assert told.sentences(foretold=True) == ("will be compensated: a", *others)


def test_an_apply_is_told_again_from_what_was_stored_of_it() -> None:
    resource_id = ResourceId(ulid(4))

    assert intended(resource_id, {"commit": "abc"}) == PreparedApply(
        resource_id=resource_id, token={"commit": "abc"}, diff=ResourceDiff()
    )
