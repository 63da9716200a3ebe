"""Whose tool it is: one that an agent's program carries out itself, or any other."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from cleveragents.application.ports.runtime import ToolContext, Tools
from cleveragents.domain.action import Action, Step, ToolSpec
from cleveragents.domain.actor_protocol import AGENT_TOOL
from cleveragents.domain.decision import ToolResult
from cleveragents.domain.footprint import UNKNOWN, Reach
from cleveragents.domain.ids import PlanId
from cleveragents.domain.tool_schema import CallProblem


class CarriesOut(Protocol):
    def carry_out(self, plan_id: PlanId, tool: str, arguments: Mapping[str, Any]) -> ToolResult: ...


class AgentTools:
    """Implements Tools. What an agent does may write anywhere in the sandboxes; `agent` is asked
    for late, since most plans have none; `release` ends the one that a plan has, if any."""

    def __init__(
        self,
        tools: Tools,
        agent: Callable[[], CarriesOut],
        release: Callable[[PlanId], None],
    ) -> None:
        self._tools = tools
        self._agent = agent
        self._release = release

    def stop(self, plan_id: PlanId) -> None:
        self._tools.stop(plan_id)

    def allow(self, plan_id: PlanId) -> None:
        self._tools.allow(plan_id)

    def end(self, plan_id: PlanId) -> None:
        self._release(plan_id)
        self._tools.end(plan_id)

    def close(self) -> None:
        self._tools.close()

    def refuse_if_stopped(self, plan_id: PlanId) -> None:
        self._tools.refuse_if_stopped(plan_id)

    def specs(self, action: Action | None) -> Sequence[ToolSpec]:
        return self._tools.specs(action)

    def find(self, action: Action | None, name: str) -> ToolSpec:
        if name.startswith(AGENT_TOOL):
            return ToolSpec(name=name, description="What the agent does itself.", writes=True)
        return self._tools.find(action, name)

    def check(self, action: Action, step: Step) -> Sequence[CallProblem]:
        return () if step.tool.startswith(AGENT_TOOL) else self._tools.check(action, step)

    def is_held_to_reading(self, action: Action, spec: ToolSpec) -> bool:
        return not spec.name.startswith(AGENT_TOOL) and self._tools.is_held_to_reading(action, spec)

    def reach(
        self,
        spec: ToolSpec,
        arguments: Mapping[str, Any],
        action: Action,
        sandboxes: Mapping[str, str],
    ) -> Reach:
        if spec.name.startswith(AGENT_TOOL):
            return UNKNOWN
        return self._tools.reach(spec, arguments, action, sandboxes)

    def run(self, spec: ToolSpec, arguments: Mapping[str, Any], context: ToolContext) -> ToolResult:
        if not spec.name.startswith(AGENT_TOOL):
            return self._tools.run(spec, arguments, context)
        tool = spec.name.removeprefix(AGENT_TOOL)
        return self._agent().carry_out(context.plan_id, tool, arguments)
