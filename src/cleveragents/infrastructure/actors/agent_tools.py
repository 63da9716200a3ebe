"""All tools, beside those of the toolbox what an agent's program carries out itself."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from cleveragents.application.ports.runtime import ToolContext
from cleveragents.domain.action import Action, Step, ToolSpec
from cleveragents.domain.actor_protocol import AGENT_TOOL
from cleveragents.domain.decision import ToolResult
from cleveragents.domain.footprint import UNKNOWN, Reach
from cleveragents.domain.ids import PlanId
from cleveragents.domain.tool_schema import CallProblem
from cleveragents.infrastructure.processes.runner import ProcessRunner
from cleveragents.infrastructure.sqlite.worker import DatabaseWorkers
from cleveragents.infrastructure.tools.toolbox import ToolBox


class CarriesOut(Protocol):
    def carry_out(self, plan_id: PlanId, tool: str, arguments: Mapping[str, Any]) -> ToolResult: ...


class AgentTools(ToolBox):
    """What an agent does may write anywhere in the sandboxes; `agent` is asked for late, since most
    plans have none; `release` ends the one that a plan has, if any."""

    def __init__(
        self,
        processes: ProcessRunner,
        databases: DatabaseWorkers,
        agent: Callable[[], CarriesOut],
        release: Callable[[PlanId], None],
    ) -> None:
        super().__init__(processes, databases)
        self._agent = agent
        self._release = release

    def end(self, plan_id: PlanId) -> None:
        self._release(plan_id)
        super().end(plan_id)

    def find(self, action: Action | None, name: str) -> ToolSpec:
        if name.startswith(AGENT_TOOL):
            return ToolSpec(name=name, description="What the agent does itself.", writes=True)
        return super().find(action, name)

    def check(self, action: Action, step: Step) -> Sequence[CallProblem]:
        return () if step.tool.startswith(AGENT_TOOL) else super().check(action, step)

    def is_held_to_reading(self, action: Action, spec: ToolSpec) -> bool:
        return not spec.name.startswith(AGENT_TOOL) and super().is_held_to_reading(action, spec)

    def reach(
        self,
        spec: ToolSpec,
        arguments: Mapping[str, Any],
        action: Action,
        sandboxes: Mapping[str, str],
    ) -> Reach:
        if spec.name.startswith(AGENT_TOOL):
            return UNKNOWN
        return super().reach(spec, arguments, action, sandboxes)

    def run(self, spec: ToolSpec, arguments: Mapping[str, Any], context: ToolContext) -> ToolResult:
        if not spec.name.startswith(AGENT_TOOL):
            return super().run(spec, arguments, context)
        tool = spec.name.removeprefix(AGENT_TOOL)
        return self._agent().carry_out(context.plan_id, tool, arguments)
