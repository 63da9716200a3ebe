"""What happened while a plan ran, for live progress; nothing is decided from these."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanStarted:
    plan_id: str
    steps: tuple[str, ...]
    first_step: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxCreating:
    resource: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StepStarted:
    step_index: int
    name: str
    tool: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StepFinished:
    step_index: int
    name: str
    files_changed: int = 0
    error: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointRecorded:
    group_id: str
    reason: str
    label: str
    pruned: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanFinished:
    plan_id: str
    state: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovered:
    """A command found something unfinished and mended it before doing its own work."""

    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Resumed:
    """A plan that had begun before goes on; `name` is that of the step, empty if none is left."""

    step_index: int
    steps: int
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ActorThinking:
    """An actor is at work on its next decision; `said` is what it has said of it so far."""

    step_index: int
    said: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ActorWaiting:
    """An actor could not be reached, and is asked again after so many seconds."""

    reason: str
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildReported:
    """What a child plan reported; `child` are the names that lead there from the top."""

    child: tuple[str, ...]
    event: "Event"


Event = (
    PlanStarted
    | SandboxCreating
    | StepStarted
    | StepFinished
    | CheckpointRecorded
    | PlanFinished
    | Recovered
    | Resumed
    | ActorThinking
    | ActorWaiting
    | ChildReported
)
