"""Tools, actors and actions in memory."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from fake_sandboxes import Files, MemoryDisk
from fakes import Faults
from msgspec.structs import replace

from cleveragents.application.ports.actors import ActionSurvey, Actor
from cleveragents.application.ports.runtime import ToolContext
from cleveragents.domain.action import Action, Parameter, Step, ToolSpec
from cleveragents.domain.actor_protocol import (
    Finished,
    Memory,
    Proposal,
    Situation,
    StepOutcome,
    Strategy,
)
from cleveragents.domain.decision import ToolResult
from cleveragents.domain.errors import ToolError, ToolNotFoundError
from cleveragents.domain.footprint import NO_REACH, Reach
from cleveragents.domain.ids import PlanId
from cleveragents.domain.tool_schema import CallProblem

TOOLS = (
    ToolSpec(name="append", writes=True, description="adds a line to two files, one by one"),
    ToolSpec(name="look"),
    ToolSpec(name="publish", writes=True, side_effects=("the page is public",)),
    ToolSpec(name="put", writes=True, side_effects=("a record",), idempotent=True),
    ToolSpec(name="book", side_effects=("a seat",), compensate="cancel", description="no files"),
    ToolSpec(name="cancel", parameters=(Parameter(name="line"), Parameter(name="output"))),
    ToolSpec(name="hire", side_effects=("a van",), compensate="return", writes=True),
    ToolSpec(name="return", idempotent=True, parameters=(Parameter(name="exit_code"),)),
    ToolSpec(name="untraceable", writes=True, checkpointable=False),
    ToolSpec(name="slow", writes=True, timeout=7.0),
)


class MemoryTools:
    """`append` is not idempotent, and can be caught between its two files."""

    def __init__(self, disk: MemoryDisk, faults: Faults) -> None:
        self._disk = disk
        self._faults = faults
        self.broken: set[str] = set()
        self.contexts: list[ToolContext] = []
        self.ran: list[tuple[str, dict[str, Any]]] = []
        # What happens behind everybody's back once a tool that only reads has answered.
        self.then: Callable[[], object] = lambda: None
        # What somebody who is ended still does.
        self.at_end: Callable[[], object] = lambda: None

    def stop(self, plan_id: PlanId) -> None:
        """Nothing runs between two calls."""

    def allow(self, plan_id: PlanId) -> None:
        """Nothing was stopped."""

    def end(self, plan_id: PlanId) -> None:
        """What was kept between two calls writes no more."""
        self._faults.reach("end what runs")
        self.at_end()

    def close(self) -> None:
        """Nor is it here."""

    def refuse_if_stopped(self, plan_id: PlanId) -> None:
        """Nothing was stopped."""

    def specs(self, action: Action | None) -> Sequence[ToolSpec]:
        return [*TOOLS, *(action.tools if action else ())]

    def find(self, action: Action | None, name: str) -> ToolSpec:
        for spec in self.specs(action):
            if spec.name == name:
                return spec
        raise ToolNotFoundError(name, None)

    def check(self, action: Action, step: Step) -> Sequence[CallProblem]:
        return []

    def is_held_to_reading(self, action: Action, spec: ToolSpec) -> bool:
        return True

    def reach(
        self,
        spec: ToolSpec,
        arguments: Mapping[str, Any],
        action: Action,
        sandboxes: Mapping[str, str],
    ) -> Reach:
        return NO_REACH

    def run(self, spec: ToolSpec, arguments: Mapping[str, Any], context: ToolContext) -> ToolResult:
        self._faults.reach("run a tool")
        self.contexts.append(context)
        self.ran.append((spec.name, dict(arguments)))
        if not spec.writes:
            if spec.name in self.broken:
                raise ToolError(f"{spec.name} is broken", "mend it")
            self._faults.reach("ran a tool")
            self.then()
            return ToolResult(output="seen\n", values={"size": 4})
        name = spec.resource or arguments.get("resource") or next(iter(context.sandboxes))
        files = self._disk.sandboxes[context.sandboxes[name].value]
        self._append(files, "one.txt", arguments["line"])
        if arguments["line"] in self.broken:
            raise ToolError("the tool is broken", "mend it")
        self._append(files, "two.txt", arguments["line"])
        return ToolResult(output="appended", values={"exit_code": 0})

    def _append(self, files: Files, path: str, line: str) -> None:
        files[path] = files.get(path, "") + line + "\n"
        self._faults.reach("wrote a file")


class ListActor:
    """Takes the steps of the action in their order, and remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[int] = []

    def strategize(self, situation: Situation) -> Strategy:
        return Strategy(steps=tuple(step.name for step in situation.action.steps))

    def decide(self, situation: Situation) -> Proposal | Finished:
        index, steps, state = situation.step_index, situation.action.steps, situation.state
        self.asked.append(index)
        if index >= len(steps):
            return Finished(memory=Memory(state=state))
        return Proposal(
            step=steps[index],
            question=f"What is step {index}?",
            rationale="the list says so",
            memory=Memory(state={"seen": [*state.get("seen", []), steps[index].name]}),
            alternatives=("wait",),
            confidence=0.5,
        )

    def observe(self, action: Action, state: Mapping[str, Any], outcome: StepOutcome) -> Memory:
        return Memory(state=state)


class OneActor:
    """Implements the port Actors with the one that is given."""

    def __init__(self, actor: Actor) -> None:
        self.actor = actor

    def check(self, action: Action) -> None:
        """It is there."""

    def of(self, action: Action) -> Actor:
        return self.actor


class OneAction:
    def __init__(self, action: Action) -> None:
        self.action = action

    def read(
        self, path: str, overrides: Mapping[str, str], survey: ActionSurvey | None = None
    ) -> Action:
        return self.action

    def read_step(self, path: str, action: Action, index: int) -> Step:
        return replace(action.steps[index], name=path)

    def read_steps(self, path: str, action: Action) -> Sequence[Step]:
        return (replace(action.steps[0], name=path),)
