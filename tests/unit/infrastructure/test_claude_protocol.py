"""The stand-in for Claude Code says to its hooks what is documented, and heeds them as documented.

Fields by event, as the types of its SDK have them: those that are always there, then those that may
be. What we read of each message is read from these.
"""

import json
import os
import subprocess
from pathlib import Path

import pytest
from tests.support.stand_ins.installed import install

from cleveragents.domain.agent_messages import hook_message

_ALL = "session_id transcript_path cwd hook_event_name"
_TOOL = f"{_ALL} tool_name tool_input tool_use_id"
_MAYBE = "prompt_id permission_mode agent_id agent_type effort"
ALWAYS = {
    "SessionStart": f"{_ALL} source",
    "SessionEnd": f"{_ALL} reason",
    "UserPromptSubmit": f"{_ALL} prompt",
    "PreToolUse": _TOOL,
    "PostToolUse": f"{_TOOL} tool_response",
    "PostToolUseFailure": f"{_TOOL} error",
    "SubagentStart": f"{_ALL} agent_id agent_type",
    "SubagentStop": f"{_ALL} stop_hook_active agent_id agent_transcript_path",
    "Stop": f"{_ALL} stop_hook_active",
}
SOMETIMES = {
    "SessionStart": "model",
    "UserPromptSubmit": "source session_title",
    "PreToolUse": "mcp_server",
    "PostToolUse": "duration_ms",
    "PostToolUseFailure": "is_interrupt duration_ms",
    "Stop": "last_assistant_message background_tasks session_crons",
    "SubagentStop": "last_assistant_message agent_type",
}
ROOT = Path(__file__).parents[3]


def run(top: Path, hooks: dict[str, object], *words: str) -> subprocess.CompletedProcess[str]:
    folder = install(top / "bin", "claude")
    (top / "w").mkdir(exist_ok=True)
    return subprocess.run(
        [str(folder / "claude"), "--settings", json.dumps({"hooks": hooks}), *words],
        cwd=top / "w",
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )


def hook(command: str, matcher: str | None = None) -> list[object]:
    entry: dict[str, object] = {"hooks": [{"type": "command", "command": command}]}
    return [entry if matcher is None else {**entry, "matcher": matcher}]


@pytest.fixture(scope="module")
def messages(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, object]]:
    """All that it says while it does all it can, and while a subagent of it works."""
    top = tmp_path_factory.mktemp("claude")
    note = f"cat >> {top}/told; echo >> {top}/told"
    hooks: dict[str, object] = {event: hook(note) for event in ALWAYS}
    for words in ((), ("-p", "subagent")):
        assert run(top, hooks, *words).returncode == 0
    return [json.loads(line) for line in (top / "told").read_text().splitlines() if line]


@pytest.mark.parametrize("event", ALWAYS)
def test_each_message_has_the_documented_fields_and_no_others(
    messages: list[dict[str, object]], event: str
) -> None:
    found = [set(told) for told in messages if told["hook_event_name"] == event]
    always = set(ALWAYS[event].split())
    known = always | set(_MAYBE.split()) | set(SOMETIMES.get(event, "").split())

    assert found
    for names in found:
        assert always <= names <= known


def test_a_call_is_announced_and_ended_under_one_name_whoever_makes_it(
    messages: list[dict[str, object]],
) -> None:
    calls = [hook_message("any", told) for told in messages if "tool_use_id" in told]
    names = [(call["session"], call["call_id"]) for call in calls]

    assert all(names.count(name) == 2 for name in names)
    assert [call["error"] for call in calls if call["error"]] == [
        "Command 'false' returned non-zero exit status 1."
    ]
    ours = [told for told in messages if told.get("agent_id") and "tool_use_id" in told]
    assert {told["tool_name"] for told in ours} == {"Write"}


def test_a_hook_that_ends_with_two_keeps_a_call_from_being_made_and_no_other(
    tmp_path: Path,
) -> None:
    said = run(tmp_path, {"PreToolUse": hook("echo no >&2; exit 2", "Write")}).stdout
    assert "blocked: no" in said
    assert not (tmp_path / "w/file_a.txt").exists()
    assert (tmp_path / "w/shell_a.txt").exists()

    run(tmp_path, {"PreToolUse": hook("exit 1")})
    assert (tmp_path / "w/file_a.txt").exists()


def test_names_of_sessions_are_as_it_takes_them(tmp_path: Path) -> None:
    name = "0b2f6f0e-3c57-4e0f-9f5f-0d1c63a5a9c1"
    assert f"session started {name}" in run(tmp_path, {}, "--session-id", name).stdout
    assert f"session resumed {name}" in run(tmp_path, {}, "--resume", name).stdout
    assert run(tmp_path, {}, "--session-id", "not one").returncode != 0
    assert run(tmp_path, {}, "--session-id", name, "--resume", name).returncode != 0
