"""The MCP servers of running plans: started when first called, and held inside."""

import json
import threading
from collections.abc import Mapping
from contextlib import ExitStack
from difflib import get_close_matches
from typing import Any, cast

from msgspec import Struct
from msgspec.structs import replace

from cleveragents.domain.decision import ToolResult
from cleveragents.domain.errors import (
    ToolArgumentError,
    ToolError,
    ToolLimitError,
    ToolNotEndedError,
    ToolTimeoutError,
)
from cleveragents.domain.foreign_json import TooMuchGivenBackError
from cleveragents.infrastructure.processes.runner import Command, ProcessRunner
from cleveragents.infrastructure.processes.running import Running, Tail
from cleveragents.infrastructure.tools.mcp.session import McpError, McpSession, shortened

Key = tuple[str, str]


class _Server(Struct, frozen=True, kw_only=True):
    session: McpSession
    running: Running
    held: ExitStack

    def end(self) -> None:
        """As it is, which is suspended: what it would write now would be in no checkpoint."""
        try:
            self.running.kill()
        finally:
            self.held.close()


class McpServers:
    """A server belongs to one plan, and lives until `end`, `close` or until it fails."""

    def __init__(self, processes: ProcessRunner) -> None:
        self._processes = processes
        self._lock = threading.Lock()
        self._servers: dict[Key, _Server] = {}

    def call(
        self, command: Command, server: str, tool: str, arguments: Mapping[str, Any]
    ) -> ToolResult:
        """`command` starts the server, and has the time that the call may take."""
        key = (command.plan_id, server)
        try:
            session = self._session(key, replace(command, talks=True))
            _check_tool(command.name, server, tool, session)
            answer = session.call(tool, arguments, command.timeout)
        except (McpError, ToolTimeoutError, ToolLimitError, ToolNotEndedError):
            self._end(key)  # the next call begins anew
            self._processes.refuse_if_stopped(command.plan_id)
            raise
        self._processes.refuse_if_stopped(command.plan_id)
        return _result(command.name, answer, self._processes.output_limit)

    def end(self, plan_id: str) -> None:
        for key in [key for key in list(self._servers) if key[0] == plan_id]:
            self._end(key)

    def close(self) -> None:
        for key in list(self._servers):
            self._end(key)

    def _session(self, key: Key, command: Command) -> McpSession:
        with self._lock:
            known = self._servers.get(key)
        if known is not None:
            return known.session
        limits = self._processes.limits(command.timeout)
        stack = ExitStack()
        running = stack.enter_context(self._processes.started(command, limits))
        server = _Server(
            session=McpSession(key[1], running, limits.printed), running=running, held=stack
        )
        with self._lock:
            self._servers[key] = server
        server.session.open(command.timeout)
        return server.session

    def _end(self, key: Key) -> None:
        with self._lock:
            server = self._servers.pop(key, None)
        if server is not None:
            server.end()


def _check_tool(name: str, server: str, tool: str, session: McpSession) -> None:
    if tool in session.tools:
        return
    close = get_close_matches(tool, session.tools, n=1)
    there = f"it has {', '.join(sorted(session.tools)) or 'none'}"
    meant = f"did you mean `{close[0]}`?" if close else there
    raise ToolArgumentError(name, f"the MCP server `{server}` has no tool `{tool}`; {meant}")


def _result(name: str, answer: Mapping[str, Any], most: int) -> ToolResult:
    """`most` is how many bytes are kept, as of all output."""
    content: object = answer.get("content")
    items = cast("list[object]", content) if isinstance(content, list) else []
    said = Tail(most)
    said.add("\n".join(_shown(item) for item in items).encode("utf-8", "backslashreplace"))
    if answer.get("isError"):
        text = shortened(said.text)
        raise ToolError(f"{name}: {text}", "correct the arguments, then resume the plan")
    structured = answer.get("structuredContent")
    if structured is None:
        return ToolResult(output=said.text)
    if len(json.dumps(structured)) > most:
        raise TooMuchGivenBackError(name, most)
    return ToolResult(output=said.text, values={"result": structured})


def _shown(item: object) -> str:
    if not isinstance(item, dict):
        return str(item)
    part = cast("dict[str, Any]", item)
    if part.get("type") == "text":
        return str(part.get("text", ""))
    return f"[{part.get('type')} {part.get('mimeType', '')}]".replace(" ]", "]")
