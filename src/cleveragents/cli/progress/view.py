"""What a watched plan looks like at one moment, as a value that each event replaces."""

from collections.abc import Iterator, Sequence
from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

from cleveragents.cli.progress.lines import files_changed
from cleveragents.cli.views.words import step_word
from cleveragents.domain.events import (
    ActorThinking,
    ActorWaiting,
    CheckpointRecorded,
    ChildReported,
    Event,
    PlanFinished,
    PlanStarted,
    SandboxCreating,
    StepFinished,
    StepStarted,
)

_MOST_SAID = 60
_THINKING = "thinking"


class StepState(StrEnum):
    EARLIER = "earlier"
    WAITING = "waiting"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    INTERRUPTED = "interrupted"


class StepView(Struct, frozen=True, kw_only=True):
    name: str
    state: StepState = StepState.WAITING
    detail: str = ""

    @property
    def is_thought(self) -> bool:
        return self.name == _THINKING and self.state is StepState.RUNNING


class Window(Struct, frozen=True, kw_only=True):
    """The steps `first` up to, but not including, `end`."""

    first: int
    end: int


class PlanView(Struct, frozen=True, kw_only=True):
    plan: str = ""
    steps: tuple[StepView, ...] = ()
    checkpoints: int = 0
    preparing: str = ""
    children: tuple["ChildView", ...] = ()
    state: str = ""

    def after(self, event: Event) -> "PlanView":
        match event:
            case PlanStarted():
                return self._started(event)
            case PlanFinished():
                return self._finished(event)
            case SandboxCreating():
                return replace(self, preparing=event.resource)
            case CheckpointRecorded():
                return replace(self, checkpoints=self.checkpoints + 1, preparing="")
            case StepStarted() | StepFinished() | ActorThinking():
                return self._with_step(event)
            case ActorWaiting():
                return replace(self, preparing=f"the model: {event.reason}")
            case ChildReported():
                return self._with_child(event)
            case _:
                return self

    def interrupted(self) -> "PlanView":
        """What is left to show when nothing more will be reported."""
        steps = tuple(
            replace(step, state=StepState.INTERRUPTED, detail="interrupted")
            if step.state is StepState.RUNNING
            else step
            for step in self.steps
        )
        return replace(self, steps=steps, preparing="")

    @property
    def finished_steps(self) -> int:
        return sum(step.state in (StepState.EARLIER, StepState.DONE) for step in self.steps)

    def window(self, size: int) -> Window:
        """At most `size` steps: those around the last that has begun."""
        begun = [i for i, step in enumerate(self.steps) if step.state is not StepState.WAITING]
        focus = begun[-1] if begun else 0
        latest_first = max(0, len(self.steps) - size)
        first = min(max(0, focus - size * 2 // 3), latest_first)
        return Window(first=first, end=min(len(self.steps), first + size))

    def _with_child(self, event: ChildReported) -> "PlanView":
        known = {child.names: child for child in self.children}
        before = known.get(event.child) or ChildView(names=event.child)
        known[event.child] = replace(before, view=before.view.after(event.event))
        # Below their parents, in the order in which they began.
        return replace(self, children=tuple(_nested(list(known.values()))))

    def _started(self, event: PlanStarted) -> "PlanView":
        steps = tuple(
            StepView(
                name=name,
                state=StepState.EARLIER if index < event.first_step else StepState.WAITING,
            )
            for index, name in enumerate(event.steps)
        )
        return replace(self, plan=event.plan, steps=steps, preparing="")

    def _finished(self, event: PlanFinished) -> "PlanView":
        # Where an actor was thinking, it has found that there is nothing more to do.
        steps = tuple(step for step in self.steps if not step.is_thought)
        return replace(self, state=step_word(event.state), steps=steps)

    def _with_step(self, event: StepStarted | StepFinished | ActorThinking) -> "PlanView":
        # An actor may take more steps than the plan announced.
        missing = event.step_index + 1 - len(self.steps)
        steps = self.steps + tuple(StepView(name="") for _ in range(missing))
        before, after = steps[: event.step_index], steps[event.step_index + 1 :]
        return replace(self, steps=(*before, _step(event), *after), preparing="")


class ChildView(Struct, frozen=True, kw_only=True):
    """A child plan at one moment, under the names that lead to it."""

    names: tuple[str, ...]
    view: PlanView = PlanView()

    @property
    def running(self) -> bool:
        return not self.view.state

    @property
    def doing(self) -> str:
        """What it is at, or what became of it."""
        at = [step for step in self.view.steps if step.state is StepState.RUNNING]
        if self.view.state:
            return self.view.state
        return at[-1].name if at else "starting"


def _nested(children: Sequence[ChildView], above: tuple[str, ...] = ()) -> Iterator[ChildView]:
    for child in children:
        if child.names[:-1] == above:
            yield child
            yield from _nested(children, child.names)


def _step(event: StepStarted | StepFinished | ActorThinking) -> StepView:
    if isinstance(event, ActorThinking):
        said = " ".join(event.said.split())[-_MOST_SAID:]
        return StepView(name=_THINKING, state=StepState.RUNNING, detail=said)
    if isinstance(event, StepStarted):
        return StepView(name=event.name, state=StepState.RUNNING, detail=event.tool)
    if event.error is not None:
        return StepView(name=event.name, state=StepState.FAILED, detail=event.error)
    detail = files_changed(event.files_changed)
    return StepView(name=event.name, state=StepState.DONE, detail=detail)
