"""Codex: hooks by `-c`, for this run; and trust in exactly these, by the names it has for them.

Hooks that it does not trust it leaves out without a word, and `--dangerously-bypass-hook-trust`
would let it run those of the repository too. So it is asked first what it calls ours, and told that
those are trusted. Where it does not answer, what it does is seen by watching.
"""

import json
import os
import select
import time
from collections.abc import Sequence
from typing import Any

from cleveragents.domain.errors import ToolError
from cleveragents.infrastructure.actors.command.agents.agent_run import (
    HOOK_SECONDS,
    AgentRun,
    Injection,
    json_object,
)
from cleveragents.infrastructure.processes.running import Running

_EVENTS = {"PreToolUse": "pre-tool", "PostToolUse": "post-tool"}
_ANSWER_SECONDS = 15.0
_CHUNK = 1 << 16


def prepared(run: AgentRun) -> Injection:
    # Otherwise it notes in the user's own settings that a sandbox is trusted. That may stand at the
    # project's own path (ADR 0084).
    places = {place: {"trust_level": "trusted"} for place in (run.top, run.project)}
    wanted = [*_setting("projects", places), *_hooks(run)]
    trusted = _trusted(run, wanted)
    state = _setting("hooks.state", trusted) if trusted else []
    return Injection(argv=[run.program, *wanted, *state, *_arguments(run)])


def _hooks(run: AgentRun) -> list[str]:
    words: list[str] = []
    for event, kind in _EVENTS.items():
        handler = {"type": "command", "command": run.hook_line(kind), "timeout": HOOK_SECONDS}
        words += _setting(f"hooks.{event}", [{"hooks": [handler]}])
    return words


def _arguments(run: AgentRun) -> Sequence[str]:
    """A conversation that it had before goes on, where it is one that a person types at."""
    return ["resume", run.session] if run.session and not run.arguments else run.arguments


def _setting(key: str, value: object) -> list[str]:
    return ["-c", f"{key}={_toml(value)}"]


def _toml(value: object) -> str:
    """As TOML has it in one line; its texts are as those of JSON."""
    if isinstance(value, dict):
        parts = (f"{json.dumps(key)}={_toml(item)}" for key, item in value.items())  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType] - any table
        return "{" + ",".join(parts) + "}"
    if isinstance(value, list):
        return "[" + ",".join(_toml(item) for item in value) + "]"  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType] - any list
    return json.dumps(value)


def _trusted(run: AgentRun, wanted: Sequence[str]) -> dict[str, dict[str, str]]:
    ours = {run.hook_line(kind) for kind in _EVENTS.values()}
    try:
        with run.talk([run.program, *wanted, "app-server"]) as running:
            listed = _hooks_listed(running, run.top)
    except (ToolError, OSError):
        return {}
    return {
        hook["key"]: {"trusted_hash": hook["currentHash"]}
        for place in listed.get("data", [])
        for hook in place.get("hooks", [])
        if hook.get("source") == "sessionFlags" and hook.get("command") in ours
    }


def _hooks_listed(running: Running, folder: str) -> dict[str, Any]:
    about = {"clientInfo": {"name": "cleveragents", "version": "1"}}
    until = time.monotonic() + _ANSWER_SECONDS
    pending = bytearray()
    _send(running, {"id": 0, "method": "initialize", "params": about})
    _answer(running, pending, 0, until)
    _send(running, {"method": "initialized"})
    _send(running, {"id": 1, "method": "hooks/list", "params": {"cwds": [folder]}})
    return _answer(running, pending, 1, until)


def _send(running: Running, message: dict[str, object]) -> None:
    assert running.process.stdin is not None
    running.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
    running.process.stdin.flush()


def _answer(running: Running, pending: bytearray, wanted: int, until: float) -> dict[str, Any]:
    """Empty if none comes."""
    while True:
        line, found, rest = bytes(pending).partition(b"\n")
        if found:
            pending[:] = rest
            told = json_object(line.decode("utf-8", "replace"))
            if told.get("id") == wanted:
                result = told.get("result")
                return result if isinstance(result, dict) else {}  # pyright: ignore[reportUnknownVariableType] - it is JSON
            continue
        left = until - time.monotonic()
        if left <= 0 or not select.select([running.output], [], [], left)[0]:
            return {}
        chunk = os.read(running.output, _CHUNK)
        if not chunk:
            return {}
        pending += chunk
