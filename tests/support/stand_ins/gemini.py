"""Stands in for Gemini CLI: a settings folder by a variable, calls without names, two at once."""

import json
import os
import pathlib
import re
import subprocess
import sys
import threading

from tests.support.stand_ins.calls import HERE, SHELL, TEXT, ask, say, write

options = sys.argv[1:]
home = pathlib.Path(os.environ["GEMINI_CLI_HOME"], ".gemini")
settings = json.loads((home / "settings.json").read_text())
session = options[options.index("--session-id") + 1]
say("theme", settings.get("theme"), "signed in", (home / "oauth_creds.json").exists())
say("trusted", json.loads((home / "trustedFolders.json").read_text()).get(HERE))
chat = home / "tmp/repo/chats/session.jsonl"
chat.parent.mkdir(parents=True)
chat.write_text("{}\n")
(home / "settings.json").write_text("{}")  # it rewrites what it loads


def tell(event, tool, arguments, **more):
    message = {
        "session_id": session,
        "transcript_path": str(chat),
        "cwd": HERE,
        "hook_event_name": event,
        "timestamp": "2026-11-16T20:00:38.453Z",
        "tool_name": tool,
        "tool_input": arguments,
        **more,
    }
    for entry in settings["hooks"][event]:
        if re.fullmatch(entry.get("matcher", ".*"), tool):
            for hook in entry["hooks"]:
                assert hook["timeout"] >= 60000, "it counts milliseconds"
                ask(hook["command"], message)


arguments = {"file_path": f"{HERE}/file_a.txt", "content": TEXT}
tell("BeforeTool", "write_file", arguments)
write()
shown = {"llmContent": "ok", "returnDisplay": {"fileName": "file_a.txt", "isNewFile": True}}
tell("AfterTool", "write_file", arguments, tool_response=shown)

# Two at once: both begin before either is made, and they have no names.
calls = [{"command": SHELL}, {"command": "echo 2 > p2.txt"}]
begun = [threading.Thread(target=tell, args=("BeforeTool", "run_shell_command", c)) for c in calls]
for thread in begun:
    thread.start()
for thread in begun:
    thread.join()
for call in calls:
    subprocess.run(call["command"], shell=True, check=True)
for call in reversed(calls):
    tell("AfterTool", "run_shell_command", call, tool_response={"llmContent": "Output: "})
