"""What coding agents say to their hooks, each in its own way, as the one message that we know.

Most have the names of Claude Code: `tool_name`, `tool_input`, `tool_use_id`, `tool_response`.
"""

import json
import re
from collections.abc import Mapping
from typing import Any, cast

_PATCHED = re.compile(r"^\*\*\* (?:Add|Update|Delete) File: (.+)$", re.MULTILINE)


def hook_message(kind: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Raises ValueError."""
    tool, asked = given.get("tool_name"), given.get("tool_input")
    if not isinstance(tool, str) or not tool:
        raise ValueError("it has no `tool_name`")
    return {
        "kind": kind,
        "tool": tool,
        "arguments": _arguments(asked),
        "response": _response(given.get("tool_response")),
        "error": given.get("error"),
        "call_id": given.get("tool_use_id") or _made_up(given, tool, asked),
        "session": given.get("session_id"),
    }


def _arguments(asked: object) -> object:
    """Codex gives a patch as the command: which files it is about stands in the middle of it."""
    if not isinstance(asked, dict):
        return asked
    known = cast("dict[str, Any]", asked)
    command = known.get("command")
    files = _PATCHED.findall(command) if isinstance(command, str) else []
    if not files or "path" in known:
        return known
    more = f", {len(files) - 1} more" if len(files) > 1 else ""
    return {**known, "path": f"{files[0].strip()}{more}"}


def _response(told: object) -> object:
    """Gemini says what its model reads, and what people see."""
    if isinstance(told, dict) and "llmContent" in told:
        known = cast("dict[str, Any]", told)
        texts = (known.get("returnDisplay"), known["llmContent"])
        return next((text for text in texts if isinstance(text, str)), "")
    return cast("object", told)


def _made_up(given: Mapping[str, Any], tool: str, asked: object) -> str | None:
    """Gemini gives its calls no names: begin and end are known by what they are about."""
    if given.get("hook_event_name") not in ("BeforeTool", "AfterTool"):
        return None
    import hashlib  # noqa: PLC0415 - part of every call of other agents, which do not need it

    text = json.dumps([tool, asked], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
