"""Who has last changed a path of a plan: one of its children, or a step of its own."""

from msgspec import Struct, field

from cleveragents.application.ports.runtime import UnitOfWork
from cleveragents.application.services.execute.run_state import successes
from cleveragents.domain.action import SUBPLANS, step_number
from cleveragents.domain.decision import ToolCall
from cleveragents.domain.ids import PlanId

_ALL = ""
_NOBODY_KNOWN = "what was there"


class Authors(Struct, frozen=True, kw_only=True):
    """By resource and path, as people are shown it; the empty path stands for all of a resource."""

    names: dict[tuple[str, str], str] = field(default_factory=dict[tuple[str, str], str])

    @classmethod
    def of(cls, uow: UnitOfWork, plan_id: PlanId) -> "Authors":
        found: dict[tuple[str, str], str] = {}
        for call in successes(uow.tool_calls.of_plan(plan_id)):
            for resource, footprint in call.touched.items():
                paths = {_ALL} if footprint.whole else set(map(_shown, footprint.paths))
                found.update({(resource, path): _name(call) for path in paths})
        return cls(names=found)

    def who(self, resource: str, path: str) -> str:
        everything = self.names.get((resource, _ALL), _NOBODY_KNOWN)
        return self.names.get((resource, path), everything)


def _name(call: ToolCall) -> str:
    child = call.arguments.get("merge") if call.tool == SUBPLANS else None
    return f"step {step_number(call.step_index)}" if child is None else str(child)


def _shown(path: str) -> str:
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
