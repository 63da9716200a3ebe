"""A coding agent for tests: a script that does what a real one does.

It asks its hooks around each tool call, keeps notes in its own memory, and heeds guidance.
"""

import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from tests.support.world import PlanHandle, World

AGENT = """
import json, os, pathlib, subprocess, sys, time

memory = pathlib.Path(os.environ["CLEVERAGENTS_MEMORY"]) / "notes" / "log.jsonl"
memory.parent.mkdir(exist_ok=True)
notes = memory.read_text().split() if memory.exists() else []
print("I remember", notes, flush=True)


def hook(kind, **more):
    message = {"session_id": "s1", "hook_event_name": kind, **more}
    done = subprocess.run(["agents", "hook", kind], input=json.dumps(message), text=True)
    return done.returncode


for call in json.loads(sys.argv[1]):
    if call["name"] in notes:
        continue
    tool = {"tool_name": call.get("tool", "Write"), "tool_use_id": call["name"],
            "tool_input": {"file_path": call["name"], "content": call.get("content", "")}}
    if "say" in call:
        print(call["say"], flush=True)
    if hook("pre-tool", **tool) != 0:
        sys.exit(9)
    if "exit" in call:
        pathlib.Path("half").write_text("half")
        sys.exit(call["exit"])
    time.sleep(call.get("sleep", 0))
    advice = os.environ["CLEVERAGENTS_GUIDANCE"]
    pathlib.Path(call["name"]).write_text(call.get("content", "") + advice)
    with memory.open("a") as file:
        file.write(call["name"] + "\\n")
    if not call.get("silent"):
        hook("post-tool", **tool, tool_response={"stdout": "wrote " + call["name"]})
    if "then" in call:
        pathlib.Path(call["then"]).write_text("after the hook")
"""
ONE = {"name": "one.txt", "content": "1"}
TWO = {"name": "two.txt", "content": "2", "say": "now the second"}
THREE = {"name": "three.txt", "content": "3"}


def use(world: World, *calls: Mapping[str, Any], **keys: Any) -> PlanHandle:
    script = world.top / "agent.py"
    script.write_text(AGENT)
    argv = [sys.executable, str(script), json.dumps(calls)]
    return use_command(world, argv, **keys)


def use_command(world: World, argv: str | Sequence[str], **keys: Any) -> PlanHandle:
    actor = {"type": "command", "command": argv, **keys.pop("actor", {})}
    path = world.write_action(
        {
            "name": "agent",
            "description": "Write some files",
            "resources": {"code": {"type": "git-checkout", "path": "."}},
            "actor": actor,
            **keys,
        }
    )
    return PlanHandle(world.agents, world.agents("plan", "use", path).ok().data["plan_id"])
