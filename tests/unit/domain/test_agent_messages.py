"""Messages of several agents, as they were recorded from the real ones, become one."""

import pytest

from cleveragents.domain.agent_messages import hook_message
from cleveragents.domain.agent_presets import PRESETS, UNKNOWN, preset_of

CODEX = {
    "session_id": "01a1e5ed-62a3-78f3-998a-6a0abae6f7e1",
    "hook_event_name": "PreToolUse",
    "tool_name": "apply_patch",
    "tool_input": {
        "command": "*** Begin Patch\n*** Add File: /r/file_a.txt\n+written\n"
        "*** Update File: /r/b.py\n@@\n-x\n+y\n*** End Patch\n"
    },
    "tool_use_id": "call_1_0",
}
GEMINI = {
    "session_id": "23fb5095-0a5b-4ec0-927f-eed63560be15",
    "hook_event_name": "BeforeTool",
    "timestamp": "2026-11-16T20:00:41.393Z",
    "tool_name": "run_shell_command",
    "tool_input": {"command": "pwd", "description": "scripted"},
}


def test_a_patch_is_known_by_its_files() -> None:
    told = hook_message("pre-tool", CODEX)

    assert told["arguments"]["path"] == "/r/file_a.txt, 1 more"
    assert told["arguments"]["command"] == CODEX["tool_input"]["command"]
    assert told["call_id"] == "call_1_0"
    assert told["session"] == CODEX["session_id"]


def test_one_patched_file_stands_alone_and_a_path_that_was_said_stays() -> None:
    patch = "*** Begin Patch\n*** Delete File:  a.py \n*** End Patch\n"

    def path(**asked: object) -> object:
        told = hook_message("pre-tool", {**CODEX, "tool_input": asked})
        return told["arguments"].get("path")

    assert path(command=patch) == "a.py"
    assert path(command=patch, path="b.py") == "b.py"
    assert path(command=["*** Add File: c.py"]) is None
    assert path(command="ls") is None


def test_the_message_says_kind_tool_and_error() -> None:
    told = hook_message("tool-failed", {**CODEX, "error": "no room"})

    assert (told["kind"], told["tool"], told["error"]) == ("tool-failed", "apply_patch", "no room")
    assert hook_message("pre-tool", {**CODEX, "tool_input": "text"})["arguments"] == "text"


def test_a_call_without_a_name_is_known_by_what_it_is_about() -> None:
    before = hook_message("pre-tool", GEMINI)
    ended = {**GEMINI, "hook_event_name": "AfterTool", "timestamp": "later"}
    after = hook_message("post-tool", {**ended, "tool_response": {"llmContent": "Output: /r"}})
    other = hook_message("pre-tool", {**GEMINI, "tool_input": {"command": "ls"}})

    turned = {"description": "scripted", "command": "pwd"}
    again = hook_message("pre-tool", {**GEMINI, "tool_input": turned})
    renamed = hook_message("pre-tool", {**GEMINI, "tool_name": "another"})
    half = hook_message("pre-tool", {**GEMINI, "tool_input": {"command": "\ud83d"}})

    assert before["call_id"] == after["call_id"] == again["call_id"] != other["call_id"]
    assert len({call["call_id"] for call in (before, other, renamed, half)}) == 4
    assert len(before["call_id"]) == 16
    assert after["response"] == "Output: /r"


def test_what_people_see_of_a_result_comes_first() -> None:
    shown = {"llmContent": "for the model", "returnDisplay": "for people"}
    assert hook_message("post-tool", {**GEMINI, "tool_response": shown})["response"] == "for people"
    drawn = {"llmContent": "for the model", "returnDisplay": {"fileDiff": "x"}}
    told = hook_message("post-tool", {**GEMINI, "tool_response": drawn})
    assert told["response"] == "for the model"
    odd = {"llmContent": [{"inlineData": "x"}]}
    assert hook_message("post-tool", {**GEMINI, "tool_response": odd})["response"] == ""


def test_a_message_of_nobody_we_know_stays_as_it_is() -> None:
    told = hook_message("post-tool", {"tool_name": "t", "tool_response": {"stdout": "x"}})

    assert told["response"] == {"stdout": "x"}
    assert told["call_id"] is None
    with pytest.raises(ValueError, match=r"^it has no `tool_name`$"):
        hook_message("pre-tool", {"tool_name": ""})


def test_presets_go_by_the_programs_name_unless_one_is_said() -> None:
    assert preset_of("claude", None) is PRESETS["claude"]
    assert preset_of("sh", None) is UNKNOWN
    assert preset_of("sh", "codex") is PRESETS["codex"]
    assert preset_of("claude", "none") is UNKNOWN
    with pytest.raises(ValueError, match=r"^no agent `gemni` is known; did you mean `gemini`\?$"):
        preset_of("", "gemni")
    with pytest.raises(ValueError, match=r"^no agent `xyz` is known$"):
        preset_of("", "xyz")
    assert not UNKNOWN.network
    assert all(preset.network and preset.folders for preset in PRESETS.values())
    assert PRESETS["aider"].command("do it") == ("aider", "--message", "do it")
