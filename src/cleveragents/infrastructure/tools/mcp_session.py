"""Owns one conversation with an MCP server: JSON-RPC, a line per message, over its pipes."""

import json
import os
import select
import threading
import time
from collections.abc import Mapping, Sequence
from typing import IO, Any, cast

from cleveragents.domain.errors import ToolError, ToolTimeoutError
from cleveragents.infrastructure.processes.foreign_json import NotJsonError, read_json
from cleveragents.infrastructure.processes.running import Running, Tail

PROTOCOL = "2025-06-18"
_LONGEST_MESSAGE = 64 << 20
_CHUNK = 1 << 16
_KEPT_ERRORS = 4096
_HINT = "look at the server's command in the action file, then resume the plan"
_UNKNOWN_METHOD = -32601


class McpError(ToolError):
    """The server is gone, or cannot be understood: nothing more can be asked of it."""


class McpSession:
    """`name` is the server's. Between two calls the server is suspended: it must not write once
    the checkpoint after a step is taken."""

    def __init__(self, name: str, running: Running) -> None:
        process = running.process
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        self._name = name
        self._running = running
        self._stdin: IO[bytes] = process.stdin
        self._stdout = process.stdout.fileno()
        self._data = bytearray()
        self._last_id = 0
        self._errors = Tail(_KEPT_ERRORS)
        listener = threading.Thread(target=self._listen, args=(process.stderr,), daemon=True)
        listener.start()
        self.tools: Mapping[str, Any] = {}

    def open(self, seconds: float) -> None:
        """Shake hands, and learn which tools there are; then it rests until it is called."""
        try:
            self.tools = self._introduced(seconds)
        finally:
            self.rest()

    def _introduced(self, seconds: float) -> Mapping[str, Any]:
        deadline = time.monotonic() + seconds
        client = {"name": "cleveragents", "version": "1"}
        hello = {"protocolVersion": PROTOCOL, "capabilities": {}, "clientInfo": client}
        self._request("initialize", hello, deadline, seconds)
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        found: dict[str, Any] = {}
        cursor: str | None = None
        while True:
            page = self._request(
                "tools/list", {"cursor": cursor} if cursor else {}, deadline, seconds
            )
            for tool in cast("Sequence[Any]", page.get("tools") or ()):
                found[str(tool.get("name"))] = tool
            cursor = page.get("nextCursor")
            if not cursor:
                return found

    def call(self, tool: str, arguments: Mapping[str, Any], seconds: float) -> Mapping[str, Any]:
        self._running.resume()
        try:
            asked = {"name": tool, "arguments": dict(arguments)}
            return self._request("tools/call", asked, time.monotonic() + seconds, seconds)
        finally:
            self.rest()

    def rest(self) -> None:
        self._running.suspend()

    # --- messages -------------------------------------------------------------------------------

    def _request(
        self, method: str, params: Mapping[str, Any], deadline: float, seconds: float
    ) -> Mapping[str, Any]:
        self._last_id += 1
        self._send(
            {"jsonrpc": "2.0", "id": self._last_id, "method": method, "params": dict(params)}
        )
        while True:
            message = self._message(deadline, seconds)
            if "method" in message:
                self._answer(message)
            elif message.get("id") == self._last_id:
                return self._result(method, message)

    def _result(self, method: str, message: Mapping[str, Any]) -> Mapping[str, Any]:
        error = message.get("error")
        if isinstance(error, dict):
            said = cast("dict[str, Any]", error)
            raise ToolError(
                f"the MCP server `{self._name}` refused {method}: {said.get('message', said)}",
                "correct the arguments, then resume the plan",
            )
        result = message.get("result")
        if not isinstance(result, dict):
            raise self._nonsense(f"an answer to {method} without a result")
        return cast("dict[str, Any]", result)

    def _answer(self, message: Mapping[str, Any]) -> None:
        """What a server asks of us: whether we are there; we offer it nothing else."""
        if "id" not in message:
            return
        reply: dict[str, Any] = {"jsonrpc": "2.0", "id": message["id"]}
        if message["method"] == "ping":
            self._send({**reply, "result": {}})
        else:
            error = {"code": _UNKNOWN_METHOD, "message": "not offered by this client"}
            self._send({**reply, "error": error})

    def _send(self, message: Mapping[str, Any]) -> None:
        try:
            self._stdin.write(json.dumps(message).encode() + b"\n")
            self._stdin.flush()
        except (BrokenPipeError, ValueError):
            raise self._gone() from None

    def _message(self, deadline: float, seconds: float) -> Mapping[str, Any]:
        line = self._line(deadline, seconds)
        try:
            message = read_json(line)
        except NotJsonError:
            raise self._nonsense(line[:200].decode("utf-8", "backslashreplace")) from None
        if not isinstance(message, dict):
            raise self._nonsense(line[:200].decode("utf-8", "backslashreplace"))
        return cast("dict[str, Any]", message)

    def _line(self, deadline: float, seconds: float) -> bytes:
        looked = 0  # so much of it has no end of a line
        while True:
            end = self._data.find(b"\n", looked)
            if end >= 0:
                line = bytes(self._data[:end])
                del self._data[: end + 1]
                looked = 0
                if line.strip():
                    return line
                continue
            looked = len(self._data)
            if looked > _LONGEST_MESSAGE:
                raise self._nonsense("a message without an end")
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self._stdout], [], [], left)[0]:
                raise ToolTimeoutError(f"the MCP server `{self._name}`", seconds)
            chunk = os.read(self._stdout, _CHUNK)
            if not chunk:
                raise self._gone()
            self._data += chunk

    # --- what goes wrong ------------------------------------------------------------------------

    def _listen(self, stream: IO[bytes]) -> None:
        try:
            while chunk := os.read(stream.fileno(), _CHUNK):
                self._errors.add(chunk)
        except (OSError, ValueError):  # closed while we were reading
            return

    def _gone(self) -> McpError:
        time.sleep(0.05)  # its last words may still be on their way
        words = [line.strip() for line in self._errors.text.splitlines() if line.strip()]
        said = f": {' | '.join(words[-3:])}" if words else ""
        return McpError(f"the MCP server `{self._name}` has ended{said}", _HINT)

    def _nonsense(self, what: str) -> McpError:
        return McpError(
            f"the MCP server `{self._name}` said something that is not the protocol: {what}", _HINT
        )
