"""Live progress on stderr: nothing, lines, or a moving list of steps, chosen once.

Whatever is not a step, and takes long, has one line of its own (`waiting`).
"""

from contextlib import suppress
from typing import TYPE_CHECKING, Protocol, TextIO

from cleveragents.cli.render.text import fits, one_line, write
from cleveragents.cli.views.words import step_word
from cleveragents.domain.action import step_number
from cleveragents.domain.events import (
    ActorThinking,
    ActorWaiting,
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

if TYPE_CHECKING:
    from cleveragents.cli.progress.waiting import Waiting

NEEDED_CHARACTERS = "✓✗…·⠋"


class Progress(Protocol):
    """An event sink that must be closed, also when the command fails."""

    @property
    def lists_all_steps(self) -> bool:
        """Whether each step of the plan that ended last, and how it ended, stays on the screen."""
        ...

    def emit(self, event: Event) -> None: ...

    def close(self) -> None: ...


def make_progress(
    stderr: TextIO, *, interactive: bool, verbose: int, for_people: bool = True
) -> Progress:
    """A moving list for a terminal, a line per event for `-v`, else what was mended or resumed, and
    for people what takes long."""
    if interactive and fits(NEEDED_CHARACTERS, stderr):
        from cleveragents.cli.progress.live import LiveProgress  # noqa: PLC0415  imports rich

        return LiveProgress(stderr)
    return LineProgress(stderr, every_event=interactive or verbose > 0, waits=for_people)


class LineProgress:
    def __init__(self, stderr: TextIO, *, every_event: bool, waits: bool = True) -> None:
        self._stderr = stderr
        self._every_event = every_event
        self._waits = waits
        self._runs = False  # then its steps are what there is to tell
        self._waiting: Waiting | None = None

    @property
    def lists_all_steps(self) -> bool:
        return False  # a line for each event is no list

    def emit(self, event: Event) -> None:
        told = event.event if isinstance(event, ChildReported) else event
        if isinstance(told, ActorThinking) and told.said:
            return  # word by word is for a list that moves
        if isinstance(told, Working):
            self._wait(told)
            return
        if isinstance(event, PlanStarted | PlanFinished):
            self.close()
            self._runs = isinstance(event, PlanStarted)
        if self._every_event or isinstance(told, Recovered | Resumed):
            # Whoever watched may have gone; the plan goes on without them.
            with suppress(BrokenPipeError):
                write(self._stderr, line_of(event) + "\n")

    def close(self) -> None:
        if self._waiting is not None:
            self._waiting.stop()

    def _wait(self, event: Working) -> None:
        if self._runs or not self._waits:
            return
        if self._waiting is None:
            from cleveragents.cli.progress.waiting import Waiting  # noqa: PLC0415 - few are slow

            self._waiting = Waiting(self._stderr, moving=False)
        self._waiting.at(event)


def line_of(event: Event) -> str:
    return one_line(_sentence(event))


def files_changed(count: int) -> str:
    return {0: "no changes", 1: "1 file"}.get(count, f"{count} files")


def _sentence(event: Event) -> str:
    match event:
        case PlanStarted() | PlanFinished():
            return f"plan {event.plan}: {_of_plan(event)}"
        case SandboxCreating() | Working():
            return _of_work(event)
        case StepStarted() | StepFinished():
            return f"step {step_number(event.step_index)}: {_of_step(event)}"
        case CheckpointRecorded():
            return f"checkpoint: {event.label}, {event.reason}{_pruned(event)}"
        case Recovered() | Resumed():
            return _of_recovery(event)
        case ActorThinking() | ActorWaiting():
            return _of_actor(event)
        case ChildReported():
            return f"[{'/'.join(event.child)}] {_sentence(event.event)}"


def _of_plan(event: PlanStarted | PlanFinished) -> str:
    if isinstance(event, PlanFinished):
        return step_word(event.state)
    steps = "1 step" if len(event.steps) == 1 else f"{len(event.steps)} steps"
    return f"{steps}, from step {step_number(event.first_step)}"


def _of_work(event: SandboxCreating | Working) -> str:
    if isinstance(event, Working):
        return f"working: {event.what}"
    return f"sandbox: creating {event.resource}"


def _pruned(event: CheckpointRecorded) -> str:
    return f", {event.pruned} old removed" if event.pruned else ""


def _of_recovery(event: Recovered | Resumed) -> str:
    if isinstance(event, Recovered):
        return f"recovered: {event.message}"
    if not event.name:
        return "resumed: every step so far is done; going on after it"
    kept = "; what came before is kept" if event.step_index else ""
    number = step_number(event.step_index)
    return f"resumed: going on with step {number} of {event.steps} ({event.name}){kept}"


def _of_actor(event: ActorThinking | ActorWaiting) -> str:
    if isinstance(event, ActorWaiting):
        return f"model: {event.reason}; asking again in {event.seconds:g} s"
    return f"step {step_number(event.step_index)}: thinking"


def _of_step(event: StepStarted | StepFinished) -> str:
    if isinstance(event, StepStarted):
        return f"{event.name} ({event.tool})"
    if event.error is not None:
        return f"failed: {event.error}"
    return f"done, {files_changed(event.files_changed)}"
