"""Stands in for Claude Code: hooks by `--settings`, messages as they are documented."""

import json
import pathlib
import re
import sys

from tests.support.stand_ins.calls import HERE, SHELL, TEXT, ask, shell, write

options = sys.argv[1:]
settings = json.loads(pathlib.Path(options[options.index("--settings") + 1]).read_text())
session = options[options.index("--session-id") + 1]


def tell(event, tool, arguments, call_id, **more):

    message = {
        "session_id": session,
        "transcript_path": f"~/.claude/projects/x/{session}.jsonl",
        "cwd": HERE,
        "permission_mode": "default",
        "hook_event_name": event,
        "tool_name": tool,
        "tool_input": arguments,
        "tool_use_id": call_id,
        **more,
    }
    for entry in settings["hooks"][event]:
        if re.fullmatch(entry.get("matcher", ".*"), tool):
            for hook in entry["hooks"]:
                ask(hook["command"], message)


tell("PreToolUse", "Read", {"file_path": f"{HERE}/x"}, "toolu_0")
arguments = {"file_path": f"{HERE}/file_a.txt", "content": TEXT}
tell("PreToolUse", "Write", arguments, "toolu_1")
write()
tell("PostToolUse", "Write", arguments, "toolu_1", tool_response={"filePath": "file_a.txt"})
arguments = {"command": SHELL, "description": "append"}
tell("PreToolUse", "Bash", arguments, "toolu_2")
shell()
tell("PostToolUse", "Bash", arguments, "toolu_2", tool_response={"stdout": "", "stderr": ""})
arguments = {"command": "false"}
tell("PreToolUse", "Bash", arguments, "toolu_3")
tell("PostToolUseFailure", "Bash", arguments, "toolu_3", error="Exit code 1")
