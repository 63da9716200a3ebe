"""What happened while a plan ran, for live progress; nothing is decided from these."""

from msgspec import Struct


class PlanStarted(Struct, frozen=True, kw_only=True):
    plan: str
    steps: tuple[str, ...]
    first_step: int


class SandboxCreating(Struct, frozen=True, kw_only=True):
    resource: str


class StepStarted(Struct, frozen=True, kw_only=True):
    step_index: int
    name: str
    tool: str


class StepFinished(Struct, frozen=True, kw_only=True):
    step_index: int
    name: str
    files_changed: int = 0
    error: str | None = None


class CheckpointRecorded(Struct, frozen=True, kw_only=True):
    group_id: str
    reason: str
    label: str
    pruned: int = 0


class PlanFinished(Struct, frozen=True, kw_only=True):
    plan: str
    state: str


class Recovered(Struct, frozen=True, kw_only=True):
    """A command found something unfinished and mended it before doing its own work."""

    message: str


class Resumed(Struct, frozen=True, kw_only=True):
    """A plan that had begun before goes on; `name` is that of the step, empty if none is left."""

    step_index: int
    steps: int
    name: str


class ActorThinking(Struct, frozen=True, kw_only=True):
    """An actor is at work on its next decision; `said` is what it has said of it so far."""

    step_index: int
    said: str = ""


class ActorWaiting(Struct, frozen=True, kw_only=True):
    """An actor could not be reached, and is asked again after so many seconds."""

    reason: str
    seconds: float


class Working(Struct, frozen=True, kw_only=True):
    """A command is at something that may take long; with `parts`, at the `part`th of so many."""

    what: str
    part: int = 0
    parts: int = 0


class ChildReported(Struct, frozen=True, kw_only=True):
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
    | Working
    | ChildReported
)
