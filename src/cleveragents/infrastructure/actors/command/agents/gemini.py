"""Gemini CLI: a settings folder of its own for this run, with the user's settings and our hooks.

Its settings for the whole machine work for root alone, and it rewrites what it loads: so it gets a
copy. What it signs in with is reached by links; its conversations are in the plan's memory.
"""

import json
import os

from cleveragents.infrastructure.actors.command.agents.agent_run import (
    HOOK_SECONDS,
    AgentRun,
    Injection,
    json_object,
    with_hooks,
)

_FOLDER, _SETTINGS, _TRUSTED, _CHATS = ".gemini", "settings.json", "trustedFolders.json", "tmp"
_OWN = (_SETTINGS, _TRUSTED, _CHATS)
_EVENTS = {"BeforeTool": "pre-tool", "AfterTool": "post-tool"}
_MATCHER = "write_file|replace|edit|run_shell_command|save_memory|mcp_.*"
_ABOUT_SESSIONS = ("--session-id", "--resume", "-r", "--session-file", "--list-sessions")
_HOME = "GEMINI_CLI_HOME"


def prepared(run: AgentRun) -> Injection:
    home = run.environ.get(_HOME) or os.path.expanduser("~")
    theirs, ours = os.path.join(home, _FOLDER), os.path.join(run.folder, _FOLDER)
    os.makedirs(ours, mode=0o700, exist_ok=True)
    settings = with_hooks(_read(theirs, _SETTINGS), _hooks(run))
    known = settings.get("hooksConfig")
    settings["hooksConfig"] = {**(known if isinstance(known, dict) else {}), "enabled": True}
    run.write(f"{_FOLDER}/{_SETTINGS}", json.dumps(settings))
    run.write(f"{_FOLDER}/{_TRUSTED}", json.dumps(_trusting(run, _read(theirs, _TRUSTED))))
    _link_rest(theirs, ours)
    chats = os.path.join(run.memory, "gemini")
    os.makedirs(chats, mode=0o700, exist_ok=True)
    os.symlink(chats, os.path.join(ours, _CHATS))
    argv = [run.program, *_session(run), *run.arguments]
    return Injection(argv=argv, variables={_HOME: run.folder})


def _hooks(run: AgentRun) -> dict[str, list[object]]:
    return {
        event: [
            {
                "matcher": _MATCHER,
                "hooks": [
                    {
                        "type": "command",
                        "name": f"cleveragents-{kind}",
                        "command": run.hook_line(kind),
                        "timeout": HOOK_SECONDS * 1000,  # it counts milliseconds
                    }
                ],
            }
        ]
        for event, kind in _EVENTS.items()
    }


def _session(run: AgentRun) -> list[str]:
    if run.says(*_ABOUT_SESSIONS):
        return []
    return ["--resume", run.session] if run.session else ["--session-id", run.fresh]


def _trusting(run: AgentRun, known: dict[str, object]) -> dict[str, object]:
    """Who trusts the project trusts its sandbox; nobody is trusted who was not."""
    for place, trust in known.items():
        inside = f"{run.project}/".startswith(f"{place.rstrip('/')}/")
        if inside and trust in ("TRUST_FOLDER", "TRUST_PARENT"):
            return {**known, run.top: "TRUST_FOLDER"}
    return known


def _link_rest(theirs: str, ours: str) -> None:
    try:
        names = os.listdir(theirs)
    except OSError:
        return  # it was never used here
    for name in names:
        if name not in _OWN:
            os.symlink(os.path.join(theirs, name), os.path.join(ours, name))


def _read(folder: str, name: str) -> dict[str, object]:
    try:
        with open(os.path.join(folder, name), encoding="utf-8") as file:
            return json_object(file.read())
    except OSError:
        return {}
