"""The moving list of steps on a terminal; the last state of it stays on the screen."""

import os
from collections.abc import Mapping, Sequence
from typing import TextIO

from rich.console import Group, RenderableType
from rich.live import Live
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from cleveragents.cli.progress.lines import line_of
from cleveragents.cli.progress.view import ChildView, PlanView, StepState, StepView
from cleveragents.cli.progress.waiting import Waiting
from cleveragents.cli.render.blocks import Tone
from cleveragents.cli.render.palette import style
from cleveragents.cli.render.screen import Screen
from cleveragents.cli.render.text import many_lines, one_line
from cleveragents.domain.action import step_number
from cleveragents.domain.events import (
    ChildReported,
    Event,
    PlanFinished,
    PlanStarted,
    Recovered,
    SandboxCreating,
    Working,
)

_MOST_STEPS = 12
_MOST_CHILDREN = 12
_FEWEST_STEPS = 3
_OTHER_LINES = 5  # the title, the two "more" lines, the sum, and the line the cursor is on
_REFRESHES_PER_SECOND = 10

_MARKS: Mapping[StepState, tuple[str, str]] = {
    StepState.EARLIER: ("✓", style("dim")),
    StepState.WAITING: ("·", style("dim")),
    StepState.DONE: ("✓", style("good")),
    StepState.FAILED: ("✗", style("bad", bold=True)),
    StepState.INTERRUPTED: ("✗", style("warn")),
}
_QUIET = (StepState.EARLIER, StepState.WAITING)


class LiveProgress:
    """Events only replace a value; a thread of rich draws it, at most ten times a second."""

    def __init__(self, stderr: TextIO) -> None:
        forbidden = bool(os.environ.get("NO_COLOR"))
        self._console = Screen(stderr, force_terminal=True, no_color=forbidden)
        self._spinner = Spinner("dots", style=style("accent"))
        self._view = PlanView()
        self._live: Live | None = None
        self._waiting = Waiting(stderr, moving=os.environ.get("TERM") != "dumb")
        self._lists_all_steps = False

    @property
    def lists_all_steps(self) -> bool:
        return self._lists_all_steps

    def emit(self, event: Event) -> None:
        told = event.event if isinstance(event, ChildReported) else event
        if isinstance(told, Working):
            if self._live is None:
                self._waiting.at(told)
            return
        self._waiting.stop()
        if isinstance(told, Recovered):
            self._console.print(Text(line_of(event), style=style("warn")))
            return
        self._view = self._view.after(event)
        if self._live is None and isinstance(event, PlanStarted | SandboxCreating):
            self._start()
        if isinstance(event, PlanFinished) and self._view.state:
            self.close()

    def close(self) -> None:
        self._waiting.stop()
        if self._live is None:
            return
        self._view = self._view.interrupted()
        self._lists_all_steps = 0 < len(self._view.steps) <= self._room()
        self._live.stop()
        self._live = None
        self._view = PlanView()

    def _start(self) -> None:
        self._live = Live(
            console=self._console,
            get_renderable=self._frame,
            refresh_per_second=_REFRESHES_PER_SECOND,
            transient=False,
            # Results may be piped elsewhere; they must not be drawn into the list.
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._live.start(refresh=True)

    def _frame(self) -> RenderableType:
        view = self._view  # the drawing thread sees one moment, whatever is emitted meanwhile
        parts: list[RenderableType] = []
        if view.plan:
            parts.append(Text(f"Plan {one_line(view.plan)}", style="bold"))
        if view.steps:
            parts.append(self._steps(view))
        if any(child.running for child in view.children) or not view.state:
            parts.extend(self._child(child) for child in _shown(view.children))
        if view.preparing:
            parts.append(
                Text(f"creating the sandbox of {one_line(view.preparing)}", style=style("dim"))
            )
        if view.plan:
            parts.append(Text(_sum(view), style=style("dim")))
        return Group(*parts)

    def _child(self, child: ChildView) -> Table:
        """One line: whose it is, how far it is, and what it is at."""
        table = Table.grid(padding=(0, 1))
        indent = "  " * len(child.names)
        steps = child.view.steps
        mark: RenderableType = self._spinner
        if not child.running:
            failed = any(step.state is StepState.FAILED for step in steps)
            mark = Text(*_MARKS[StepState.FAILED if failed else StepState.DONE])
        far = f"{child.view.finished_steps}/{len(steps)}" if steps else ""
        table.add_row(
            Text(indent),
            mark,
            _one(child.names[-1], ""),
            Text(far, style=style("dim")),
            _one(child.doing, style("accent" if child.running else "dim")),
        )
        return table

    def _steps(self, view: PlanView) -> Table:
        shown = view.window(self._room())
        rows = [self._row(index, view.steps[index]) for index in range(shown.first, shown.end)]
        if shown.first:
            rows.insert(0, _left_out(f"{shown.first} before"))
        if shown.end < len(view.steps):
            rows.append(_left_out(f"{len(view.steps) - shown.end} more"))
        widest_name = max(row[2].cell_len for row in rows)
        # Only the last column gives way, so that a long error cannot push the names out.
        table = Table.grid(padding=(0, 1), expand=True)
        table.add_column(width=1)
        table.add_column(width=len(str(len(view.steps))), justify="right")
        table.add_column(width=min(widest_name, self._console.width // 2), no_wrap=True)
        table.add_column(ratio=1, no_wrap=True)
        for row in rows:
            table.add_row(*row)
        return table

    def _room(self) -> int:
        return max(_FEWEST_STEPS, min(_MOST_STEPS, self._console.height - _OTHER_LINES))

    def _row(self, index: int, step: StepView) -> "_Row":
        name = _one(step.name, style("dim") if step.state in _QUIET else "")
        mark: RenderableType = self._spinner
        if step.state is not StepState.RUNNING:
            mark = Text(*_MARKS[step.state])
        number = Text(str(step_number(index)), style=style("dim"))
        return mark, number, name, _one(many_lines(step.detail)[0], _detail_style(step.state))


def _shown(children: Sequence[ChildView]) -> Sequence[ChildView]:
    """Running ones first to stay, then those that ended last; a screen holds only so many."""
    if len(children) <= _MOST_CHILDREN:
        return children
    ended = [child for child in children if not child.running]
    room = max(0, _MOST_CHILDREN - (len(children) - len(ended)))
    left_out = {child.names for child in ended[: len(ended) - room]}
    return [child for child in children if child.names not in left_out][:_MOST_CHILDREN]


_Row = tuple[RenderableType, Text, Text, Text]


def _left_out(what: str) -> _Row:
    return Text(), Text("…", style=style("dim")), Text(what, style=style("dim")), Text()


def _one(text: str, style: str) -> Text:
    return Text(one_line(text), style=style, no_wrap=True, overflow="ellipsis")


def _detail_style(state: StepState) -> str:
    tones: Mapping[StepState, Tone] = {StepState.RUNNING: "accent", StepState.FAILED: "bad"}
    return style(tones.get(state, "dim"))


def _sum(view: PlanView) -> str:
    done = f"{view.finished_steps} of {_count(len(view.steps), 'step')}"
    parts = [done, _count(view.checkpoints, "checkpoint")]
    running = sum(child.running for child in view.children)
    if running:
        parts.append(_count(running, "child plan") + " running")
    if view.state:
        parts.append(one_line(view.state))
    return " · ".join(parts)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
