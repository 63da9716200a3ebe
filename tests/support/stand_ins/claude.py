"""Stands in for Claude Code: its options, its hooks and their messages, as they are documented.

With a prompt (`-p`) it does what the prompt says, without one at a terminal what is typed there;
else all that it can do at once. What hooks print, and how they end, counts as it does there.
"""

import argparse
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import threading
import uuid

from tests.support.stand_ins.calls import HERE, SHELL, TEXT, say

parser = argparse.ArgumentParser(allow_abbrev=False)
parser.add_argument("-p", "--print", dest="prompt")
parser.add_argument("--settings", default="{}")
parser.add_argument("--session-id")
parser.add_argument("-r", "--resume")
options, _ = parser.parse_known_args()
if options.session_id and options.resume:
    sys.exit("--session-id can only be used with --resume together with --fork-session")
given = options.settings
settings = json.loads(given if given.lstrip().startswith("{") else pathlib.Path(given).read_text())
session = options.resume or str(uuid.UUID(options.session_id or str(uuid.uuid4())))
COMMON = {
    "session_id": session,
    "transcript_path": f"{pathlib.Path.home()}/.claude/projects/x/{session}.jsonl",
    "cwd": HERE,
}
MODE = {"permission_mode": "default", "prompt_id": str(uuid.uuid4())}
calls = 0


class BlockedError(Exception):
    """A hook has ended with 2; its stderr is what the model reads."""


def matches(matcher: str | None, tool: str) -> bool:
    return matcher in (None, "", "*") or re.fullmatch(matcher, tool) is not None


def tell(event: str, tool: str = "", **more: object) -> None:
    """All hooks that match, side by side; the same command once."""
    message = {**COMMON, "hook_event_name": event, **more}
    found = {
        hook["command"]: hook
        for entry in settings.get("hooks", {}).get(event, [])
        if not tool or matches(entry.get("matcher"), tool)
        for hook in entry["hooks"]
    }
    reasons: list[str] = []
    threads = [
        threading.Thread(target=ask, args=(hook, message, reasons)) for hook in found.values()
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if reasons:
        raise BlockedError("; ".join(reasons))


def ask(hook: dict[str, object], message: dict[str, object], reasons: list[str]) -> None:
    assert hook["type"] == "command"
    done = subprocess.run(
        str(hook["command"]),
        shell=True,
        input=json.dumps(message),
        text=True,
        capture_output=True,
        env={**os.environ, "CLAUDE_PROJECT_DIR": HERE},
        timeout=float(str(hook.get("timeout", 600))),
    )
    say(f"hook {message['hook_event_name']}: {done.returncode}")
    if done.returncode == 0 and done.stdout.lstrip().startswith("{"):
        json.loads(done.stdout)  # read as an answer
    if done.returncode == 2:
        reasons.append(done.stderr.strip())


def use(tool: str, arguments: dict[str, object], how, **who: object) -> None:
    """One tool call: it is announced, made unless a hook objects, and told with how it ended."""
    global calls
    calls += 1
    known = {"tool_name": tool, "tool_input": arguments, "tool_use_id": f"toolu_{calls}"}
    try:
        tell("PreToolUse", tool, **MODE, **who, **known)
    except BlockedError as error:
        say(f"blocked: {error}")
        return
    try:
        response = how()
    except (subprocess.CalledProcessError, OSError) as error:
        failed = {"error": str(error), "is_interrupt": False, "duration_ms": 1}
        tell("PostToolUseFailure", tool, **MODE, **who, **known, **failed)
        return
    tell("PostToolUse", tool, **MODE, **who, **known, tool_response=response, duration_ms=1)


def write(name: str, text: str, **who: object) -> None:
    path = pathlib.Path(HERE, name)

    def made() -> object:
        path.write_text(text)
        return {"type": "create", "filePath": str(path), "content": text, "structuredPatch": []}

    use("Write", {"file_path": str(path), "content": text}, made, **who)


def bash(command: str, **who: object) -> None:
    def made() -> object:
        done = subprocess.run(command, shell=True, check=True, capture_output=True, text=True)
        return {"stdout": done.stdout, "stderr": done.stderr, "interrupted": False}

    use("Bash", {"command": command, "description": "run it"}, made, **who)


def read() -> None:
    use("Read", {"file_path": f"{HERE}/x"}, dict)


def subagent() -> None:
    """Its calls are told as those of the agent, with whose they are; the tool that starts it is
    one that writes nothing itself."""
    who = {"agent_id": "a1b2c3", "agent_type": "general-purpose"}

    def made() -> object:
        tell("SubagentStart", **who)
        write("by_subagent.txt", "by a subagent\n", **who)
        more = {"agent_transcript_path": f"{COMMON['transcript_path']}.a1b2c3"}
        tell("SubagentStop", **MODE, **who, **more, stop_hook_active=False)
        return {"status": "completed"}

    use(
        "Task", {"description": "help", "prompt": "write", "subagent_type": "general-purpose"}, made
    )


def do(words: str) -> None:
    """What a model would have made of the prompt."""
    tell("UserPromptSubmit", **MODE, prompt=words)
    word, _, rest = words.partition(" ")
    if word == "write":
        write(rest, TEXT)
    elif word == "shell":
        bash(rest)
    elif word == "subagent":
        subagent()
    elif word == "unannounced":
        pathlib.Path(rest).write_text("no hook was called\n")
    elif word == "break":
        write("broken.txt", f"{'resumed' if options.resume else 'started'} {session}\n")
        sys.exit(3)
    elif word == "hang":
        bash("echo there > told; sleep 60")
    else:
        read()
        write("file_a.txt", TEXT)
        bash(SHELL)
        bash("false")
    try:
        tell("Stop", **MODE, stop_hook_active=False, last_assistant_message="Done.")
    except BlockedError as error:
        say(f"it goes on: {error}")


def type_at_it() -> None:
    """A line is a prompt; Ctrl-C breaks off what is being typed, the end of input leaves."""
    signal.signal(signal.SIGWINCH, lambda *_: say("size", *os.get_terminal_size()))
    while True:
        sys.stdout.write("claude> ")
        sys.stdout.flush()
        try:
            line = sys.stdin.readline()
        except KeyboardInterrupt:
            say("Interrupted by user")
            continue
        if not line or line.strip() == "/exit":
            return
        do(line.strip())
        say("answered")


tell("SessionStart", source="resume" if options.resume else "startup", model="stand-in")
say(f"session {'resumed' if options.resume else 'started'} {session}")
if options.prompt is None and sys.stdin.isatty():
    type_at_it()
else:
    do(options.prompt or "everything")
tell("SessionEnd", reason="prompt_input_exit" if options.prompt is None else "other")
