"""Claude Code: hooks by `--settings`, which it adds to its own; its session's name is ours."""

import json
import os

from cleveragents.infrastructure.actors.command.agents.agent_run import (
    HOOK_SECONDS,
    AgentRun,
    Injection,
    json_object,
    with_hooks,
)

_SETTINGS = "--settings"
# What only reads needs no checkpoint, and no wait.
_MATCHER = "Edit|MultiEdit|Write|NotebookEdit|Bash|mcp__.*"
_EVENTS = {
    "PreToolUse": "pre-tool",
    "PostToolUse": "post-tool",
    "PostToolUseFailure": "post-tool",
}
# The end of a turn: what no hook has told of is looked for then. The message is of no use.
_ENDS = ("Stop", "SubagentStop")
_ABOUT_SESSIONS = ("--session-id", "--resume", "-r", "--continue", "-c", "--fork-session")


def prepared(run: AgentRun) -> Injection:
    given, rest = _settings_taken_out(list(run.arguments))
    hooks = {event: [_entry(run, kind)] for event, kind in _EVENTS.items()}
    hooks |= {event: [{"hooks": [_pausing(run)]}] for event in _ENDS}
    settings = run.write("settings.json", json.dumps(with_hooks(_read(run, given), hooks)))
    return Injection(argv=[run.program, _SETTINGS, settings, *_session(run), *rest])


def _entry(run: AgentRun, kind: str) -> dict[str, object]:
    return {"matcher": _MATCHER, "hooks": [_handler(run.hook_line(kind))]}


def _pausing(run: AgentRun) -> dict[str, object]:
    return _handler(f"{run.hook_line('pause')} </dev/null")


def _handler(command: str) -> dict[str, object]:
    return {"type": "command", "command": command, "timeout": HOOK_SECONDS}


def _session(run: AgentRun) -> list[str]:
    if run.says(*_ABOUT_SESSIONS):
        return []
    return ["--resume", run.session] if run.session else ["--session-id", run.fresh]


def _settings_taken_out(arguments: list[str]) -> tuple[str, list[str]]:
    """It takes one; so that of the person and ours become one."""
    for index, word in enumerate(arguments):
        if word.startswith(f"{_SETTINGS}="):
            return word.partition("=")[2], arguments[:index] + arguments[index + 1 :]
        if word == _SETTINGS and index + 1 < len(arguments):
            return arguments[index + 1], arguments[:index] + arguments[index + 2 :]
    return "", arguments


def _read(run: AgentRun, given: str) -> dict[str, object]:
    """A file or the settings themselves."""
    if not given or given.lstrip().startswith("{"):
        return json_object(given)
    try:
        with open(os.path.join(run.top, os.path.expanduser(given)), encoding="utf-8") as file:
            return json_object(file.read())
    except OSError:
        return {}
