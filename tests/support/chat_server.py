"""A server on this machine that speaks the chat-completions protocol, with answers made up before.

    with ChatServer() as server:
        server.will(call("file_write", path="a", content="b"), say("done"))
        ...
        assert server.asked[0]["messages"][-1]["content"] == "Change the project"

Each request takes the next answer; what was asked is kept as it came. With `script` the answer
goes by how often the model has spoken already, as it would be with one that always thinks the same.
"""

import json
import socket
import struct
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

USAGE = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """`deltas` are the pieces of a stream. `cut` breaks it off, `raw` is sent in its place.

    `until_closed`: its end is the end of the connection, so that nobody can tell it from a break.
    Without `finish` it does not say why it ends, and without `done` not that it does. A `whole` one
    is not streamed at all: one JSON object, whatever was asked for.
    """

    deltas: tuple[Mapping[str, Any], ...] = ()
    finish: str | None = "stop"
    until_closed: bool = False
    done: bool = True
    whole: bool = False
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    body: Mapping[str, Any] | None = None
    raw: bytes | None = None
    cut: bool = False
    before: Callable[[], None] | None = None
    usage: Mapping[str, int] | None = field(default_factory=lambda: USAGE)


def say(text: str, **more: Any) -> Reply:
    words = [{"content": word} for word in text.split(" ")] or [{"content": ""}]
    pieces = [words[0], *({"content": f" {item['content']}"} for item in words[1:])]
    return Reply(deltas=tuple(pieces), **more)


def call(tool: str, text: str = "", **arguments: Any) -> Reply:
    return calls((tool, arguments), text=text)


def calls(*wanted: tuple[str, Mapping[str, Any] | str], text: str = "", **more: Any) -> Reply:
    """Several calls in one answer; arguments that are text are sent as they are."""
    said = [{"content": text}] if text else []
    made: list[Mapping[str, Any]] = []
    for index, (tool, arguments) in enumerate(wanted):
        written = arguments if isinstance(arguments, str) else json.dumps(arguments)
        half = len(written) // 2
        first = {"index": index, "id": f"call_{tool}_{index}", "type": "function"}
        function = {"name": tool, "arguments": written[:half]}
        made.append({"tool_calls": [{**first, "function": function}]})
        rest = {"index": index, "function": {"arguments": written[half:]}}
        made.append({"tool_calls": [rest]})
    return Reply(deltas=(*said, *made), finish="tool_calls", **more)


def refuse(status: int, code: str, message: str, **headers: str) -> Reply:
    error = {"message": message, "type": "invalid_request_error", "code": code, "param": None}
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Reply(status=status, body={"error": error}, headers=named)


class ChatServer:
    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []
        self.keys: list[str] = []
        self._replies: list[Reply] = []
        self._script: tuple[Reply, ...] = ()
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._http.daemon_threads = True
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_address[1]}/v1"

    @property
    def environ(self) -> dict[str, str]:
        return {"OPENAI_BASE_URL": self.url, "OPENAI_API_KEY": "sk-test"}

    def will(self, *replies: Reply) -> None:
        """Answer with these, one after the other, instead of what was left."""
        self._replies = list(replies)

    def script(self, *replies: Reply) -> None:
        self._script = replies

    @property
    def left(self) -> int:
        return len(self._replies)

    def heard(self, index: int = -1) -> list[tuple[str, str]]:
        """One request as role and text of each message; a call shows as what it calls."""
        return [_in_short(message) for message in self.asked[index]["messages"]]

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._http.shutdown()
        self._http.server_close()

    def next_reply(self, request: dict[str, Any], key: str) -> Reply:
        self.asked.append(request)
        self.keys.append(key)
        if not self._replies and self._script:
            spoken = sum(item["role"] == "assistant" for item in request["messages"])
            return self._script[min(spoken, len(self._script) - 1)]
        if not self._replies:
            return refuse(418, "unexpected", "nobody expected this request")
        return self._replies.pop(0)

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        server = self

        class Handler(_Handler):
            owner = server

        return Handler


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    owner: ChatServer

    def do_POST(self) -> None:
        length = int(self.headers["Content-Length"])
        request = json.loads(self.rfile.read(length))
        key = self.headers.get("Authorization", "").removeprefix("Bearer ")
        reply = self.owner.next_reply(request, key)
        if reply.before is not None:
            reply.before()
        if reply.body is not None:
            self._send(reply, json.dumps(reply.body).encode(), "application/json")
        elif reply.raw is not None:
            self._send(reply, reply.raw, "text/event-stream")
        elif reply.whole or not request.get("stream"):
            body = json.dumps(_completion(request["model"], reply)).encode()
            self._send(reply, body, "application/json")
        else:
            self._stream(reply, request["model"])

    def _send(self, reply: Reply, body: bytes, kind: str) -> None:
        self.send_response(reply.status)
        for name, value in {"Content-Type": kind, **reply.headers}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _stream(self, reply: Reply, model: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.close_connection = reply.until_closed
        how = ("Connection", "close") if reply.until_closed else ("Transfer-Encoding", "chunked")
        self.send_header(*how)
        self.end_headers()
        for delta in reply.deltas:
            self._event(_chunk(model, delta=delta))
        if reply.cut:
            self._hang_up()
            return
        if reply.finish is not None:
            self._event(_chunk(model, delta={}, finish=reply.finish))
        if reply.usage is not None:
            self._event({**_chunk(model), "choices": [], "usage": reply.usage})
        if reply.done:
            self._piece(b"data: [DONE]\n\n")
        if not reply.until_closed:
            self._piece(b"")

    def _event(self, value: Mapping[str, Any]) -> None:
        self._piece(f"data: {json.dumps(value)}\n\n".encode())

    def _piece(self, data: bytes) -> None:
        framed = f"{len(data):x}\r\n".encode() + data + b"\r\n"
        self.wfile.write(data if self.close_connection else framed)
        self.wfile.flush()

    def _hang_up(self) -> None:
        """The way a machine does that falls over: without a word."""
        self.close_connection = True
        linger = struct.pack("ii", 1, 0)
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        self.connection.close()

    def log_message(self, format: str, *args: Any) -> None:
        """Nobody reads it."""


def _chunk(
    model: str, delta: Mapping[str, Any] | None = None, finish: str | None = None
) -> dict[str, Any]:
    choice = {"index": 0, "delta": {"role": "assistant", **(delta or {})}, "finish_reason": finish}
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1_700_000_000,
        "model": model,
        "choices": [choice],
    }


def _completion(model: str, reply: Reply) -> dict[str, Any]:
    """All pieces of a stream as one object."""
    message: dict[str, Any] = {"role": "assistant", "content": None}
    made: dict[int, dict[str, Any]] = {}
    for delta in reply.deltas:
        for key in ("content", "refusal"):
            if key in delta:
                message[key] = (message.get(key) or "") + delta[key]
        for piece in delta.get("tool_calls", ()):
            known = made.setdefault(piece["index"], {"function": {"name": "", "arguments": ""}})
            known |= {key: piece[key] for key in ("id", "type") if key in piece}
            for key, text in piece["function"].items():
                known["function"][key] += text
    if made:
        message["tool_calls"] = list(made.values())
    choice = {"index": 0, "message": message, "finish_reason": reply.finish}
    usage = {} if reply.usage is None else {"usage": reply.usage}
    return {**_chunk(model), "object": "chat.completion", "choices": [choice], **usage}


def _in_short(message: Mapping[str, Any]) -> tuple[str, str]:
    content = message.get("content")
    text = content if isinstance(content, str) else _texts(content or [])
    for made in message.get("tool_calls") or ():
        text = f"{text or ''} -> {made['function']['name']}".strip()
    return message["role"], text


def _texts(parts: Sequence[Mapping[str, Any]]) -> str:
    return "".join(part.get("text", "") for part in parts)
