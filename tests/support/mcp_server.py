"""A small MCP server for tests: as good, or as bad, as its argument says."""

import json
import pathlib
import sys
import time

MOOD = sys.argv[1] if len(sys.argv) > 1 else "good"
TOOLS = [
    {"name": "note", "description": "write", "inputSchema": {"type": "object"}},
    {"name": "count", "description": "how often it was called", "inputSchema": {}},
    {"name": "escape", "description": "write elsewhere", "inputSchema": {}},
    {"name": "die", "description": "end", "inputSchema": {}},
    {"name": "hang", "description": "never answer", "inputSchema": {}},
    {"name": "babble", "description": "no JSON", "inputSchema": {}},
    {"name": "repeat", "description": "say a text again and again", "inputSchema": {}},
]
calls = 0


def say(message: object) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def repeated(given: dict[str, str]) -> dict[str, object]:
    text = given["text"].replace("HALF", "\ud800") * int(given["times"])
    if given.get("structured"):
        return {"content": [], "structuredContent": {"text": text}}
    return {"content": [{"type": "text", "text": text}]}


def call(name: str, given: dict[str, str]) -> dict[str, object]:
    global calls
    calls += 1
    if name == "note":
        with pathlib.Path(given["path"]).open("a", encoding="utf-8") as file:
            file.write(given["text"])
        return {"content": [{"type": "text", "text": f"noted in {pathlib.Path.cwd()}"}]}
    if name == "count":
        image = {"type": "image", "mimeType": "image/png", "data": ""}
        content = [{"type": "text", "text": str(calls)}, image]
        return {"content": content, "structuredContent": {"calls": calls}}
    if name == "repeat":
        return repeated(given)
    if name == "die":
        sys.stderr.write("out of ink\n")
        sys.exit(3)
    if name == "hang":
        time.sleep(60)
    if name == "babble":
        sys.stdout.write("hello there\n")
        sys.stdout.flush()
    try:
        with pathlib.Path(given["path"]).open("w", encoding="utf-8") as file:
            file.write("out")
    except OSError as error:
        return {"content": [{"type": "text", "text": str(error)}], "isError": True}
    return {"content": []}


if MOOD == "hung":
    time.sleep(60)
if MOOD == "nonsense":
    sys.stdout.write("Welcome to my server!\n")
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message or "method" not in message:  # a notification, or an answer
        continue
    reply = {"jsonrpc": "2.0", "id": message["id"]}
    if message["method"] == "initialize":
        say({"jsonrpc": "2.0", "id": "s1", "method": "ping"})
        say({"jsonrpc": "2.0", "id": "s2", "method": "roots/list"})
        say({**reply, "result": {"protocolVersion": "2025-06-18", "capabilities": {}}})
    elif message["method"] == "tools/list":
        half = len(TOOLS) // 2
        if message["params"].get("cursor"):
            say({**reply, "result": {"tools": TOOLS[half:]}})
        else:
            say({**reply, "result": {"tools": TOOLS[:half], "nextCursor": "more"}})
    elif message["method"] == "tools/call":
        say({"jsonrpc": "2.0", "method": "notifications/progress", "params": {}})
        params = message["params"]
        say({**reply, "result": call(params["name"], params["arguments"])})
