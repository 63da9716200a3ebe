"""One conversation with an MCP server: JSON-RPC, a line per message, over its pipes.

Both ways at once: a server that says more than we have read does not read what we say.
"""

import json
import os
import select
import threading
import time
from collections.abc import Mapping
from typing import IO, Any, cast

from cleveragents.domain.errors import ToolError, ToolLimitError, ToolTimeoutError
from cleveragents.domain.foreign_json import NotJsonError, read_json
from cleveragents.infrastructure.processes.running import Running, Tail

PROTOCOL = "2025-06-18"
LONGEST_LINE = 64 << 20
_CHUNK = 1 << 16
_KEPT_ERRORS = 4096
_LONGEST_ERROR = 2000
_HINT = "look at the server's command in the action file, then resume the plan"
_UNKNOWN_METHOD = -32601


class McpError(ToolError):
    """The server is gone, or cannot be understood: nothing more can be asked of it."""


def shortened(text: str) -> str:
    """As much of what a server says about an error as fits into a message."""
    if len(text) <= _LONGEST_ERROR:
        return text
    return f"{text[:_LONGEST_ERROR]} [{len(text) - _LONGEST_ERROR} characters left out]"


class McpSession:
    """`name` is the server's. Between two calls the server is suspended: it must not write once
    the checkpoint after a step is taken."""

    def __init__(self, name: str, running: Running, most: int) -> None:
        process = running.process
        assert process.stderr is not None
        self._name = name
        self._running = running
        self._pipe = McpPipe(f"the MCP server `{name}`", running, most)
        self._last_id = 0
        self._errors = Tail(_KEPT_ERRORS)
        listener = threading.Thread(target=self._listen, args=(process.stderr,), daemon=True)
        listener.start()
        self.tools: frozenset[str] = frozenset()

    def open(self, seconds: float) -> None:
        """Shake hands, and learn which tools there are; then it rests until it is called."""
        try:
            self.tools = self._introduced(seconds)
        finally:
            self.rest()

    def _introduced(self, seconds: float) -> frozenset[str]:
        self._pipe.begin(seconds)
        client = {"name": "cleveragents", "version": "1"}
        hello = {"protocolVersion": PROTOCOL, "capabilities": {}, "clientInfo": client}
        self._request("initialize", hello)
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        found: set[str] = set()
        cursors: set[object] = set()
        page = self._request("tools/list", {})
        while True:
            found |= self._names(page)
            cursor = page.get("nextCursor")
            if not cursor:
                return frozenset(found)
            if not isinstance(cursor, str) or cursor in cursors:
                raise self._nonsense(f"a list of tools without an end: {cursor!r:.60}")
            cursors.add(cursor)
            page = self._request("tools/list", {"cursor": cursor})

    def _names(self, page: Mapping[str, Any]) -> set[str]:
        tools: object = page.get("tools") or ()
        items = cast("list[object]", tools) if isinstance(tools, list | tuple) else [tools]
        named = [cast("dict[str, object]", item) for item in items if isinstance(item, dict)]
        if len(named) < len(items):
            raise self._nonsense(f"a list of tools that is none: {tools!r:.60}")
        return {str(tool.get("name")) for tool in named}

    def call(self, tool: str, arguments: Mapping[str, Any], seconds: float) -> Mapping[str, Any]:
        self._pipe.begin(seconds)
        self._running.resume()
        try:
            return self._request("tools/call", {"name": tool, "arguments": dict(arguments)})
        finally:
            self.rest()

    def rest(self) -> None:
        self._running.suspend()

    # --- messages -------------------------------------------------------------------------------

    def _request(self, method: str, params: Mapping[str, Any]) -> Mapping[str, Any]:
        self._last_id += 1
        self._send(
            {"jsonrpc": "2.0", "id": self._last_id, "method": method, "params": dict(params)}
        )
        while True:
            message = self._message()
            if "method" in message:
                self._answer(message)
            elif message.get("id") == self._last_id:
                return self._result(method, message)

    def _result(self, method: str, message: Mapping[str, Any]) -> Mapping[str, Any]:
        error = message.get("error")
        if isinstance(error, dict):
            said = cast("dict[str, Any]", error)
            raise ToolError(
                f"the MCP server `{self._name}` refused {method}:"
                f" {shortened(str(said.get('message', said)))}",
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
            self._pipe.send(json.dumps(message).encode("ascii"))
        except PipeClosedError:
            raise self._gone() from None

    def _message(self) -> Mapping[str, Any]:
        try:
            line = self._pipe.line()
        except PipeClosedError:
            raise self._gone() from None
        beginning = line[:200].decode("utf-8", "backslashreplace")
        try:
            message = read_json(line)
        except NotJsonError as error:
            raise self._nonsense(f"{beginning} ({error})") from None
        if not isinstance(message, dict):
            raise self._nonsense(beginning)
        return cast("dict[str, Any]", message)

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


class PipeClosedError(Exception):
    """Nobody is at the other end any more."""


class McpPipe:
    """`name` is what the server is called in messages, `most` the bytes it may send in answer to
    one request."""

    def __init__(self, name: str, running: Running, most: int) -> None:
        assert running.process.stdin is not None
        self._name = name
        self._most = most
        self._in = running.process.stdin.fileno()
        self._out = running.output
        os.set_blocking(self._in, False)
        os.set_blocking(self._out, False)
        self._data = bytearray()
        self._looked = 0  # so much of it has no end of a line
        self._seconds = self._deadline = 0.0
        self._received = self._messages = 0

    def begin(self, seconds: float) -> None:
        """A request: its time, and what may be said in answer to it, are counted from here."""
        self._seconds, self._deadline = seconds, time.monotonic() + seconds
        self._received = self._messages = 0

    def send(self, line: bytes) -> None:
        """Raises PipeClosedError, ToolTimeoutError or ToolLimitError."""
        left = memoryview(line + b"\n")
        while left:
            if self._in not in self._ready(sending=True):
                self._read()
                continue
            try:
                left = left[os.write(self._in, left) :]
            except BlockingIOError:
                continue
            except OSError as error:
                raise PipeClosedError from error

    def line(self) -> bytes:
        """The next one that is not empty. Raises as `send` does."""
        while True:
            end = self._data.find(b"\n", self._looked)
            if end < 0:
                self._looked = len(self._data)
                self._refuse_endless()
                self._ready(sending=False)
                self._read()
                continue
            line = bytes(self._data[:end])
            del self._data[: end + 1]
            self._looked = 0
            if line.strip():
                self._messages += 1
                return line

    def _ready(self, *, sending: bool) -> list[int]:
        waiting = select.poll()
        waiting.register(self._out, select.POLLIN)
        if sending:
            waiting.register(self._in, select.POLLOUT)
        left = self._deadline - time.monotonic()
        ready = [found for found, _ in waiting.poll(left * 1000)] if left > 0 else []
        if not ready:
            raise ToolTimeoutError(self._name, self._seconds, f"it had sent {self._in_words()}")
        return ready

    def _read(self) -> None:
        chunk = os.read(self._out, _CHUNK)
        if not chunk:
            raise PipeClosedError
        self._data += chunk
        self._received += len(chunk)
        if self._received > self._most:
            raise ToolLimitError(self._name, f"sent {self._in_words()}, for one call")

    def _refuse_endless(self) -> None:
        if len(self._data) > LONGEST_LINE:
            raise ToolLimitError(self._name, f"sent a message of more than {LONGEST_LINE} bytes")

    def _in_words(self) -> str:
        if not self._received:
            return "nothing"
        messages = "1 message" if self._messages == 1 else f"{self._messages} messages"
        rest = f" and {len(self._data)} bytes of one without an end" if self._data else ""
        return f"{self._received} bytes: {messages}{rest}"
