"""A world whose plans are decided by a model on the server of this machine."""

from typing import Any

from tests.support.chat_server import ChatServer, call, say
from tests.support.world import CODE, PlanHandle, World

MODEL = "openai:gpt-5"
SCRIPT = (
    call("file_write", path="a.txt", content="A\n"),
    call("shell", command="echo b >> b.txt"),
    say("done"),
)
PATIENT = {"CLEVERAGENTS_ACTOR_LLM_MAX_RETRIES": "2"}


def llm_action(**keys: Any) -> dict[str, Any]:
    base = {"name": "demo", "description": "Change the project", "resources": CODE}
    return {**base, "actor": {"type": "llm", "model": MODEL}, **keys}


class LlmWorld:
    def __init__(self, world: World, server: ChatServer) -> None:
        self.world = world
        self.server = server
        self.agents = world.agents.having(**server.environ)

    def use(self, *, actor: dict[str, Any] | None = None, **keys: Any) -> PlanHandle:
        spec = {"type": "llm", "model": MODEL, **(actor or {})}
        path = self.world.write_action(llm_action(actor=spec, **keys))
        used = self.agents("plan", "use", path).ok().data
        return PlanHandle(self.agents, used["plan_id"])

    def run(self, **keys: Any) -> PlanHandle:
        plan = self.use(**keys)
        plan.execute().ok()
        return plan


def types(plan: PlanHandle) -> list[str]:
    return [node["type"] for node in plan("tree").ok().data["tree"]["children"]]


def decisions(plan: PlanHandle) -> list[str]:
    return [node["id"] for node in plan("tree").ok().data["tree"]["children"]]


def names(plan: PlanHandle) -> list[str]:
    return [item["step"] for item in plan.status["progress"]]
