"""A required validation must have passed after the last change; others are only told."""

from datetime import timedelta
from typing import Any

import pytest
from domain_builders import ACTION, NOW, PLAN, ids

from cleveragents.domain.action import Action, Step, ToolSpec, Validation
from cleveragents.domain.decision import Position, ToolCall, ToolCallStatus, ToolResult
from cleveragents.domain.ids import DecisionId, ToolCallId
from cleveragents.domain.validations import required, unmet

_IDS = ids()
JUDGE = Step(name="judge", tool="judge", arguments={"level": 1})
ADVISE = Step(name="advise", tool="advise")


def judged(*validations: Step) -> Action:
    return Action(
        name="a",
        description="d",
        resources=(),
        steps=ACTION.steps,
        tools=(
            ToolSpec(name="judge", validation=Validation.REQUIRED),
            ToolSpec(name="advise", validation=Validation.INFORMATIONAL),
        ),
        validations=validations,
    )


def call(seq: int, tool: str, *, error: str | None = None, **fields: Any) -> ToolCall:
    values: dict[str, Any] = {
        "arguments": JUDGE.arguments if tool == "judge" else {},
        "finished_at": NOW + timedelta(seconds=seq),
        **fields,
    }
    return ToolCall(
        call_id=ToolCallId(next(_IDS)),
        plan_id=PLAN,
        decision_id=DecisionId(next(_IDS)),
        position=Position(timeline=0, seq=seq),
        step_index=0,
        tool=tool,
        status=ToolCallStatus.SUCCEEDED if error is None else ToolCallStatus.FAILED,
        result=ToolResult(),
        error=error,
        changes=(),
        side_effects=(),
        started_at=NOW,
        **values,
    )


NOT_RUN = ("judge has not run since the last change",)


@pytest.mark.parametrize(
    ("validations", "expected"),
    [((), False), ((ADVISE,), False), ((JUDGE,), True), ((ADVISE, JUDGE), True)],
)
def test_only_a_required_validation_stands_in_the_way(
    validations: tuple[Step, ...], *, expected: bool
) -> None:
    action = judged(*validations)

    assert required(action) == expected
    assert bool(unmet(action, [])) == expected


@pytest.mark.parametrize(
    ("calls", "expected"),
    [
        ([], NOT_RUN),
        ([call(1, "file.write"), call(2, "judge")], ()),
        ([call(0, "judge")], ()),
        ([call(1, "judge"), call(2, "file.write")], NOT_RUN),
        ([call(1, "judge"), call(2, "advise")], ()),
        ([call(1, "judge"), call(2, "file.write"), call(3, "judge")], ()),
        ([call(3, "judge"), call(2, "file.write"), call(1, "file.write")], ()),
        # Of several changes and validations of one step, their numbers tell which came first.
        ([call(2, "file.write"), call(2, "judge")], NOT_RUN),
        ([call(2, "judge", error="too long")], ("judge has failed: too long",)),
        ([call(1, "judge", error="too long"), call(2, "judge")], ()),
        ([call(1, "judge"), call(2, "judge", error="no")], ("judge has failed: no",)),
        ([call(2, "judge"), call(1, "judge", error="no")], ()),
        ([call(2, "judge", arguments={"level": 2})], NOT_RUN),
        ([call(2, "advise", arguments=JUDGE.arguments)], NOT_RUN),
    ],
)
def test_what_counts_is_the_last_run_since_the_last_change(
    calls: list[ToolCall], expected: tuple[str, ...]
) -> None:
    assert unmet(judged(JUDGE), calls) == expected


def test_each_validation_is_judged_by_itself() -> None:
    strict = Step(name="strictly", tool="judge", arguments={"level": 2})
    calls = [call(2, "judge", error="too long"), call(3, "advise", error="never mind")]

    assert unmet(judged(ADVISE, JUDGE, strict), calls) == (
        "judge has failed: too long",
        "strictly has not run since the last change",
    )
