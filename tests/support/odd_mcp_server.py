"""An MCP server for tests that answers in the way that its argument names, and no other."""

import json
import sys
import time
from collections.abc import Callable
from typing import Any

WAY = sys.argv[1]
SIZE = int(sys.argv[2])
out = sys.stdout.buffer
PROGRESS = {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"x": "y" * 1000}}


def say(message: dict[str, Any] | bytes) -> None:
    out.write(message if isinstance(message, bytes) else json.dumps(message).encode())
    out.write(b"\n")
    out.flush()


def deep(before: bytes, after: bytes) -> Callable[[int], None]:
    def answer(number: int) -> None:
        head = f'{{"jsonrpc": "2.0", "id": {number}, '.encode()
        say(head + before + b"[" * SIZE + b"]" * SIZE + after + b"}")

    return answer


def forever(message: dict[str, Any]) -> Callable[[int], None]:
    def answer(number: int) -> None:
        while True:
            say(message)

    return answer


def gives(content: dict[str, Any]) -> Callable[[int], None]:
    return lambda number: say({"jsonrpc": "2.0", "id": number, **content})


def endless(number: int) -> None:
    while True:
        out.write(b"x" * 65536)


def slow(number: int) -> None:
    out.write(b'{"result": "' + b"x" * SIZE)
    out.flush()
    time.sleep(60)


CALLS: dict[str, Callable[[int], None]] = {
    "structured": deep(b'"result": {"content": [], "structuredContent": ', b"}"),
    "content": deep(b'"result": {"content": [', b"]}"),
    "error": deep(b'"error": {"data": ', b"}"),
    "flood": forever(PROGRESS),
    "pings": forever({"jsonrpc": "2.0", "id": 5, "method": "ping"}),
    "endless": endless,
    "slow": slow,
    "says": gives({"result": {"content": [{"type": "text", "text": "x" * SIZE}]}}),
    "fails": gives({"error": {"message": "x" * SIZE}}),
    "complains": gives(
        {"result": {"isError": True, "content": [{"type": "text", "text": "x" * SIZE}]}}
    ),
}
TOOLS: dict[str, Any] = {
    "tools that are none": {"tools": 7},
    "tools without names": {"tools": [7]},
    "pages without an end": {"tools": [], "nextCursor": "more"},
    "a cursor that is none": {"tools": [], "nextCursor": {"a": 1}},
}

for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked or "method" not in asked:
        continue
    reply = {"jsonrpc": "2.0", "id": asked["id"]}
    if asked["method"] == "initialize":
        say({**reply, "result": {"protocolVersion": "2025-06-18", "capabilities": {}}})
    elif asked["method"] == "tools/list":
        say({**reply, "result": TOOLS.get(WAY, {"tools": [{"name": "ask"}]})})
        if WAY == "deaf":
            time.sleep(60)
    else:
        CALLS[WAY](asked["id"])
