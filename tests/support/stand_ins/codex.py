"""Stands in for Codex: hooks by `-c`, run only if trusted, and a server that tells their hashes."""

import hashlib
import json
import sys
import tomllib

from tests.support.stand_ins.calls import HERE, SHELL, TEXT, ask, say, shell, write

given = {}
rest = []
words = iter(sys.argv[1:])
for word in words:
    if word == "-c":
        key, _, value = next(words).partition("=")
        given[key] = tomllib.loads(f"v = {value}")["v"]
    else:
        rest.append(word)


def name_of(event):
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in event).strip("_")


def known():
    for event in ("PreToolUse", "PostToolUse"):
        for n, entry in enumerate(given.get(f"hooks.{event}", [])):
            for m, hook in enumerate(entry["hooks"]):
                key = f"/<session-flags>/config.toml:{name_of(event)}:{n}:{m}"
                digest = "sha256:" + hashlib.sha256(hook["command"].encode()).hexdigest()
                yield event, key, digest, hook["command"]


if rest[:1] == ["app-server"]:
    for line in sys.stdin:
        asked = json.loads(line)
        if asked["method"] == "initialize":
            say(json.dumps({"method": "remoteControl/status/changed", "params": {}}))
            say(json.dumps({"id": asked["id"], "result": {"userAgent": "codex"}}), flush=True)
        if asked["method"] == "hooks/list":
            hooks = [
                {
                    "key": key,
                    "currentHash": digest,
                    "command": command,
                    "source": "sessionFlags",
                    "trustStatus": "untrusted",
                }
                for _, key, digest, command in known()
            ]
            hooks.append({**hooks[0], "source": "project", "key": "of the repository"})
            data = [{"cwd": asked["params"]["cwds"][0], "hooks": hooks}]
            say(json.dumps({"id": asked["id"], "result": {"data": data}}), flush=True)
    sys.exit()

state = given.get("hooks.state", {})
assert "of the repository" not in state, "only ours are trusted"
assert given["projects"][HERE]["trust_level"] == "trusted", "else it writes the user's settings"


def tell(event, tool, command, call_id, **more):
    message = {
        "session_id": "01a1e5ed-62a3-78f3-998a-6a0abae6f7e1",
        "turn_id": "t1",
        "cwd": HERE,
        "transcript_path": None,
        "hook_event_name": event,
        "model": "gpt-5.5",
        "permission_mode": "bypassPermissions",
        "tool_name": tool,
        "tool_input": {"command": command},
        "tool_use_id": call_id,
        **more,
    }
    for of, key, digest, hook in known():
        if of == event and state.get(key, {}).get("trusted_hash") == digest:
            ask(hook, message)


patch = f"*** Begin Patch\n*** Add File: {HERE}/file_a.txt\n+{TEXT}*** End Patch\n"
tell("PreToolUse", "apply_patch", patch, "call_1_0")
write()
tell("PostToolUse", "apply_patch", patch, "call_1_0", tool_response="Exit code: 0\nSuccess.")
tell("PreToolUse", "Bash", SHELL, "call_2_0")
shell()
tell("PostToolUse", "Bash", SHELL, "call_2_0", tool_response="")
