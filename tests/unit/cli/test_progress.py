"""Progress: each event becomes what a person sees, live or line by line, and never a command."""

import io
import os
import re
import subprocess
import sys
import time
from contextlib import closing

import pytest

from cleveragents.cli.progress.lines import LineProgress, make_progress
from cleveragents.cli.progress.view import PlanView, StepState
from cleveragents.domain.events import (
    CheckpointRecorded,
    ChildReported,
    Event,
    PlanFinished,
    PlanStarted,
    Recovered,
    Resumed,
    SandboxCreating,
    StepFinished,
    StepStarted,
    Working,
)

HOSTILE = "ev\x1b[2Jil\n[red]"


def started(count: int = 3, first: int = 0, plan: str = "P") -> PlanStarted:
    return PlanStarted(plan=plan, steps=tuple(f"step-{n}" for n in range(count)), first_step=first)


def begin(index: int, name: str = "") -> StepStarted:
    return StepStarted(step_index=index, name=name or f"step-{index}", tool="file.write")


def end(index: int, files: int = 1, error: str | None = None) -> StepFinished:
    return StepFinished(step_index=index, name=f"step-{index}", files_changed=files, error=error)


CHECKPOINT = CheckpointRecorded(group_id="G", reason="on_tool_write", label="before it")
FINISHED = PlanFinished(plan="P", state="complete")
RECOVERED = Recovered(message="undid a half-done step")
RUN: list[Event] = [
    RECOVERED,
    SandboxCreating(resource="app"),
    started(),
    begin(0),
    CHECKPOINT,
    end(0, files=2),
    begin(1),
    end(1, error="boom\nbang"),
    PlanFinished(plan="P", state="errored"),
]


class Terminal(io.StringIO):
    encoding = "utf-8"


@pytest.fixture(autouse=True)
def _eighty_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("LINES", "24")


def shown(events: list[Event], *, interactive: bool, verbose: int = 0) -> str:
    stderr = Terminal()
    with closing(make_progress(stderr, interactive=interactive, verbose=verbose)) as progress:
        for event in events:
            progress.emit(event)
    return stderr.getvalue()


def final_list(events: list[Event]) -> list[str]:
    """The frame that stays: what was drawn after the last time the cursor went up."""
    text = shown(events, interactive=True)
    last = re.split(r"\x1b\[2K(?:\x1b\[1A\x1b\[2K)*|\x1b\[\?25l", text)[-1]
    return [line.rstrip() for line in re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", last).splitlines()]


def view_of(*events: Event) -> PlanView:
    view = PlanView()
    for event in events:
        view = view.after(event)
    return view


def test_without_a_terminal_only_a_recovery_is_told() -> None:
    assert shown(RUN, interactive=False) == "recovered: undid a half-done step\n"


@pytest.mark.parametrize(
    ("event", "said"),
    [
        (
            Resumed(step_index=2, steps=3, name="move"),
            "going on with step 3 of 3 (move); what came before is kept",
        ),
        (Resumed(step_index=0, steps=3, name="make"), "going on with step 1 of 3 (make)"),
        (Resumed(step_index=3, steps=3, name=""), "every step so far is done; going on after it"),
    ],
)
def test_where_a_plan_goes_on_is_always_told(event: Resumed, said: str) -> None:
    assert shown([event], interactive=False) == f"resumed: {said}\n"


def test_verbose_is_one_plain_line_per_event() -> None:
    assert shown(RUN, interactive=False, verbose=1) == (
        "recovered: undid a half-done step\n"
        "sandbox: creating app\n"
        "plan P: 3 steps, from step 1\n"
        "step 1: step-0 (file.write)\n"
        "checkpoint: before it, on_tool_write\n"
        "step 1: done, 2 files\n"
        "step 2: step-1 (file.write)\n"
        "step 2: failed: boom\\nbang\n"
        "plan P: failed\n"
    )


def test_a_checkpoint_line_says_what_it_displaced() -> None:
    event = CheckpointRecorded(group_id="G", reason="manual", label="mine", pruned=2)
    assert shown([event], interactive=False, verbose=1) == (
        "checkpoint: mine, manual, 2 old removed\n"
    )


def test_the_list_that_stays_shows_what_became_of_each_step() -> None:
    assert final_list(RUN) == [
        "Plan P",
        "✓ 1 step-0 2 files",
        "✗ 2 step-1 boom",
        "· 3 step-2",
        "1 of 3 steps · 1 checkpoint · failed",
    ]


def test_steps_of_an_earlier_run_count_as_done() -> None:
    lines = final_list([started(first=2), begin(2), end(2, files=0), FINISHED])
    assert lines[1:] == [
        "✓ 1 step-0",
        "✓ 2 step-1",
        "✓ 3 step-2 no changes",
        "3 of 3 steps · 0 checkpoints · finished",
    ]


def test_a_step_that_never_ended_is_shown_as_interrupted() -> None:
    assert "✗ 1 step-0 interrupted" in final_list([started(), begin(0)])


def test_a_long_plan_shows_twelve_steps_around_the_last_one() -> None:
    events: list[Event] = [started(100)]
    for index in range(51):
        events += [begin(index), end(index)]
    lines = final_list(events)
    assert lines[1].split() == ["…", "42", "before"]
    assert lines[-2].split() == ["…", "46", "more"]
    assert sum("step-" in line for line in lines) == 12
    assert any("step-50" in line for line in lines)


def test_a_long_error_does_not_push_the_names_out() -> None:
    lines = final_list([started(), begin(0), end(0, error="x" * 500)])
    assert lines[1].startswith("✗ 1 step-0 xxxx")
    assert lines[1].endswith("…")
    assert len(lines[1]) <= 80


def test_names_cannot_move_the_cursor_nor_style_the_list() -> None:
    text = shown([started(), begin(0, name=HOSTILE)], interactive=True)
    assert "\x1b[2Jil" not in text
    assert "ev\\x1b[2Jil\\n[red]" in text


def test_a_thousand_quick_steps_are_not_drawn_a_thousand_times() -> None:
    events: list[Event] = [started(1000)]
    for index in range(1000):
        events += [begin(index), end(index)]
    before = time.perf_counter()
    text = shown(events, interactive=True)
    elapsed = time.perf_counter() - before
    assert text.count("Plan P") <= elapsed * 10 + 3


def test_a_recovery_is_printed_above_a_running_list() -> None:
    text = shown([started(), RECOVERED, FINISHED], interactive=True)
    assert text.count("recovered: undid a half-done step") == 1


def test_events_of_commands_that_run_no_plan_draw_nothing() -> None:
    assert shown([CHECKPOINT], interactive=True) == ""


def test_a_sandbox_being_made_is_shown_before_there_are_steps() -> None:
    assert view_of(SandboxCreating(resource="app")).preparing == "app"
    assert view_of(SandboxCreating(resource="app"), started()).preparing == ""
    text = shown([SandboxCreating(resource="app")], interactive=True)
    assert "creating the sandbox of app" in text


def child(*names: str, event: Event) -> ChildReported:
    return ChildReported(child=names, event=event)


def test_the_steps_of_a_child_plan_are_not_taken_for_the_parents() -> None:
    events = [child("a", event=started(9, plan="CHILD")), child("a", event=begin(5))]
    running = view_of(started(), begin(0), *events)
    assert len(running.steps) == 3
    assert [(c.names, c.running, c.doing) for c in running.children] == [(("a",), True, "step-5")]
    ended = child("a", event=PlanFinished(plan="CHILD", state="complete"))
    after = running.after(ended).after(end(0))
    assert [(c.running, c.doing) for c in after.children] == [(False, "finished")]
    assert after.steps[0].state is StepState.DONE


def test_children_stand_below_their_parents_whenever_they_report() -> None:
    begun = started(1, plan="CHILD")
    names = [("a",), ("b",), ("a", "x"), ("b", "y"), ("a", "z")]
    view = view_of(started(), *(child(*name, event=begun) for name in names))
    shown = [found.names for found in view.children]
    assert shown == [("a",), ("a", "x"), ("a", "z"), ("b",), ("b", "y")]


def test_running_child_plans_are_shown_with_what_they_are_at() -> None:
    events = [child("a", event=started(2, plan="CHILD")), child("a", event=begin(1))]
    lines = final_list([started(), begin(0), *events])
    assert any("a" in line and "0/2" in line and "step-1" in line for line in lines)
    assert "1 child plan running" in lines[-1]


def test_of_very_many_children_the_running_ones_are_shown() -> None:
    done = [child(f"c{i}", event=FINISHED) for i in range(30)]
    lines = final_list([started(), begin(0), *done, child("late", event=started(1, plan="L"))])
    assert any("late" in line for line in lines)
    assert len(lines) < 25


def test_lines_of_a_child_begin_with_its_names() -> None:
    stderr = io.StringIO()
    progress = LineProgress(stderr, every_event=True)
    progress.emit(child("a", "b", event=begin(0)))
    assert stderr.getvalue().startswith("[a/b] step 1: ")


def test_what_was_mended_in_a_child_is_told_without_being_asked_for() -> None:
    stderr = io.StringIO()
    LineProgress(stderr, every_event=False).emit(child("a", event=Recovered(message="mended")))
    assert stderr.getvalue() == "[a] recovered: mended\n"


def test_a_step_beyond_the_announced_ones_is_added() -> None:
    view = view_of(started(1), begin(2))
    assert [step.name for step in view.steps] == ["step-0", "", "step-2"]


def test_a_terminal_without_the_characters_gets_lines() -> None:
    raw = io.BytesIO()
    stderr = io.TextIOWrapper(raw, encoding="ascii")
    with closing(make_progress(stderr, interactive=True, verbose=0)) as progress:
        progress.emit(Recovered(message="naïve"))
        progress.emit(FINISHED)
    assert raw.getvalue() == b"recovered: na?ve\nplan P: finished\n"


def test_lines_do_not_import_rich() -> None:
    program = (
        "import sys; from cleveragents.cli.progress.lines import make_progress;"
        "make_progress(sys.stderr, interactive=False, verbose=1); print('rich' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ},
    )
    assert done.stdout == "False\n"


def waited(events: list[Event], seconds: float, *, interactive: bool, **more: bool) -> str:
    stderr = Terminal()
    progress = make_progress(stderr, interactive=interactive, verbose=0, **more)
    with closing(progress):
        for event in events:
            progress.emit(event)
        time.sleep(seconds)
    return stderr.getvalue()


COMPARING = Working(what="comparing `code`", part=2, parts=3)


def test_on_a_terminal_what_takes_more_than_a_second_has_a_line_that_moves_and_goes() -> None:
    drawn = waited([Working(what="first"), COMPARING], 1.4, interactive=True)
    assert "⠋ comparing `code` (2 of 3) … 1 s" in drawn
    assert "⠙ comparing `code` (2 of 3) … 1 s" in drawn
    assert "first" not in drawn
    assert "\n" not in drawn
    assert drawn.endswith("\r\x1b[K")


def test_what_is_over_within_a_second_leaves_nothing() -> None:
    assert waited([COMPARING], 0.3, interactive=True) == ""
    assert waited([COMPARING], 1.5, interactive=False) == ""


def test_where_nobody_watches_there_is_a_line_now_and_then() -> None:
    said = waited([COMPARING], 3.3, interactive=False)
    assert said == "working: comparing `code` (2 of 3), 3 s\n"


def test_programs_hear_nothing_of_it() -> None:
    assert waited([COMPARING], 3.3, interactive=False, for_people=False) == ""


def test_while_a_plan_runs_its_steps_are_what_is_told() -> None:
    assert waited([started(), COMPARING], 3.3, interactive=False) == ""
    drawn = waited([started(), COMPARING], 1.3, interactive=True)
    assert "comparing" not in drawn


def test_it_can_be_still_for_a_question_and_go_on() -> None:
    stderr = Terminal()
    with closing(make_progress(stderr, interactive=True, verbose=0)) as progress:
        progress.emit(COMPARING)
        time.sleep(1.3)
        progress.close()
        asked = stderr.getvalue()
        time.sleep(0.3)
        assert stderr.getvalue() == asked
        progress.emit(Working(what="bringing it"))
        time.sleep(1.3)
    assert "bringing it … 1 s" in stderr.getvalue()


def test_a_line_that_moves_is_not_wider_than_the_terminal() -> None:
    drawn = waited([Working(what=HOSTILE + "x" * 200)], 1.2, interactive=True)
    frames = re.sub(r"\x1b\[K", "", drawn).split("\r")
    assert max(map(len, frames)) == 79
    assert "\x1b[2J" not in drawn
