"""What passes between a plan and its actor: memory, wishes, and what came of them.

Whoever decides the steps of a plan is an actor. What it remembers belongs to the plan: it is plain
JSON, stored with every checkpoint group, so that going back takes the memory back too (ADR 0027).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from cleveragents.domain.action import Action, Step
from cleveragents.domain.confinement import ConfinementMode
from cleveragents.domain.decision import ToolResult
from cleveragents.domain.ids import PlanId

HEAD = "head"
"""Where a state names the last message that the actor remembers."""

SUMMARY = "summary"
"""Where a state has what the actor said at the end of its work."""

UNNOTED = "unnoted"
"""Where a state names the steps that are done, but of which the actor's memory has no end yet."""

UNSAVED = "not_remembered"
"""Where a state names what of the actor's memory is too large to be kept."""

COMMAND_ACTOR = "command"
"""The type of an actor that is a program of its own."""

AGENT_TOOL = "agent."
"""What the names of tools begin with that an agent's own program carries out."""

FINISHED_AFTER = "finished_after"
"""In the state of an actor that has finished: the last thing that it was told by then."""

UNANNOUNCED = AGENT_TOOL + "wrote"
"""What a step is called that was seen only by what it had changed."""


class Message(Struct, frozen=True, kw_only=True):
    """One thing an actor said or heard; `key` stands for it and all that came before it.

    Each message is stored once, however many checkpoints remember it.
    """

    key: str
    parent: str | None
    body: str

    @classmethod
    def after(cls, parent: str | None, body: str) -> "Message":
        import hashlib  # noqa: PLC0415 - what only reads plans does not load OpenSSL

        text = f"{parent or ''}\n{body}".encode("utf-8", "surrogatepass")
        return cls(key=hashlib.sha256(text).hexdigest()[:40], parent=parent, body=body)


class Memory(Struct, frozen=True, kw_only=True):
    """What an actor remembers; `added` are messages that become durable together with it."""

    state: Mapping[str, Any] = field(default_factory=dict[str, Any])
    added: tuple[Message, ...] = ()

    @property
    def head(self) -> str | None:
        return self.state.get(HEAD)


class Proposal(Struct, frozen=True, kw_only=True):
    """The step an actor wants next. `memory` is what it remembers once that is decided."""

    step: Step
    question: str
    rationale: str
    memory: Memory
    alternatives: tuple[str, ...] = ()
    confidence: float | None = None
    notes: Mapping[str, Any] = field(default_factory=dict[str, Any])


class Unannounced(Struct, frozen=True, kw_only=True):
    """An actor rests, and may have done something that it did not tell beforehand: if the sandboxes
    changed, that was a step. `said` is what it has said meanwhile."""

    memory: Memory
    said: str = ""


class Finished(Struct, frozen=True, kw_only=True):
    """An actor has nothing more to do; `summary` is what it says about its work."""

    memory: Memory
    summary: str = ""


class Strategy(Struct, frozen=True, kw_only=True):
    """The steps an actor expects to take. `chosen`, if it made up its mind, is on record."""

    steps: tuple[str, ...]
    chosen: str = ""
    memory: Memory | None = None


class StepOutcome(Struct, frozen=True, kw_only=True):
    """What came of a step; `error` None means that it succeeded.

    Of a step that failed, nothing is left in the sandboxes.
    """

    step_index: int
    step: Step
    result: ToolResult
    error: str | None = None


class Guidance(Struct, frozen=True, kw_only=True):
    """What a person said; a later one has a higher `seq`, and no two have the same."""

    text: str
    seq: int


class Situation(Struct, frozen=True, kw_only=True):
    """Everything an actor knows when it is asked. `guidance` is all that counts, oldest first.

    `recall` gives the messages up to a head, oldest first. `failed`: the step before it failed.
    """

    plan_id: PlanId
    action: Action
    step_index: int
    state: Mapping[str, Any]
    guidance: tuple[Guidance, ...]
    recall: Callable[[str], Sequence[Message]]
    failed: bool = False


class PlacedStep(Struct, frozen=True, kw_only=True):
    """A step that came to an action later; `judges` says that it is a validation."""

    index: int
    step: Step
    judges: bool = False


def caveats(action: Action, state: Mapping[str, Any]) -> list[str]:
    """Why an actor with this state would not remember exactly what is in the files."""
    found: list[str] = []
    if elsewhere := _memory_elsewhere(action, state):
        found.append(f"what the agent keeps in {elsewhere} is no part of this, and stays as it is")
    if unnoted := state.get(UNNOTED):
        names = ", ".join(unnoted)
        found.append(
            f"the agent had not noted yet how it ended: {names}; it is told when it goes on"
        )
    if unsaved := state.get(UNSAVED):
        found.append(f"of what the agent remembers this was too large: {', '.join(unsaved)}")
    return found


def _memory_elsewhere(action: Action, state: Mapping[str, Any]) -> str:
    """Where a program may remember things, if it does not where a plan keeps them."""
    if action.actor.type != COMMAND_ACTOR or not state or HEAD in state:
        return ""
    if action.confinement.mode is ConfinementMode.OFF:
        return "other places than $CLEVERAGENTS_MEMORY"
    return ", ".join(action.confinement.write)


def grown(action: Action, placed: Iterable[PlacedStep]) -> Action:
    """The action with the steps that its actor or a person put into it, in this order.

    Validations are no steps of the action; but one after which the work went on keeps its place.
    """
    judged: dict[int, Step] = {}
    steps = list(action.steps)
    for item in placed:
        if item.judges:
            judged[item.index] = item.step
            continue
        steps += (judged[gap] for gap in range(len(steps), item.index))
        steps[item.index : item.index + 1] = [item.step]
    return replace(action, steps=tuple(steps))
