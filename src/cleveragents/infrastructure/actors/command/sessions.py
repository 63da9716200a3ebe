"""Owns how an agent's work falls into steps: as its hooks tell it, or by when nothing moves."""

import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Protocol, cast

from cleveragents.domain.decision import ToolResult
from cleveragents.domain.errors import ToolError
from cleveragents.infrastructure.actors.command.hooks import HookEvent, HookFolder, HookKind
from cleveragents.infrastructure.actors.command.process import AgentEnd, AgentProcess
from cleveragents.infrastructure.actors.command.stillness import Stillness

WORK = "work"
# An agent that begins another call without a word on the end of the last one may have given
# that up, or may still be at it: it gets this long to tell.
_PATIENCE_SECONDS = 2.0
_LOOK_SECONDS = 0.1


class Session(Protocol):
    """One run of an agent; between two steps it waits for us."""

    @property
    def is_over(self) -> bool:
        """Whether the program has ended, or could not even be started."""
        ...

    def said(self) -> str:
        """What it has printed since somebody asked the last time."""
        ...

    def next_call(self) -> HookEvent | AgentEnd:
        """Let the agent go on until it is about to do something, or has ended."""
        ...

    def carry_out(self, tool: str, arguments: Mapping[str, Any]) -> ToolResult:
        """Let it do that; back once it is done. Raises ToolError."""
        ...

    def close(self) -> None: ...


class HookedSession:
    """The agent waits at its hooks: before a call until the decision is on record, and after it
    until what came of it is."""

    def __init__(self, process: AgentProcess, hooks: HookFolder) -> None:
        self._process = process
        self._hooks = hooks
        self._begun: HookEvent | None = None
        self._told: HookEvent | None = None
        self._waiting: deque[HookEvent] = deque()

    @property
    def is_over(self) -> bool:
        return self._process.end is not None

    def said(self) -> str:
        return self._process.said()

    def next_call(self) -> HookEvent | AgentEnd:
        if self._told is not None:
            self._hooks.answer(self._told)
            self._told = None
        if self._begun is None:
            self._begun = self._await_call()
        if self._begun is not None:
            return self._begun
        assert self._process.end is not None
        return self._process.end

    def carry_out(self, tool: str, arguments: Mapping[str, Any]) -> ToolResult:
        begun = self._begun
        if begun is None or not begun.is_call(tool, arguments):
            told = f"is about to call {begun.tool}" if begun else "has ended"
            raise ToolError(f"the agent was started anew and {told}", "it goes on from there")
        self._hooks.answer(begun)
        self._begun = None
        return self._await_end(begun)

    def close(self) -> None:
        self._process.close()
        self._hooks.close()

    def _await_call(self) -> HookEvent | None:
        while not self._waiting:
            if self._process.end is not None:
                return None
            self._listen(None, None)
        return self._waiting.popleft()

    def _await_end(self, begun: HookEvent) -> ToolResult:
        patience: float | None = None
        while self._told is None and self._process.end is None:
            if self._waiting and patience is None:
                patience = time.monotonic() + _PATIENCE_SECONDS
            if patience is not None and time.monotonic() >= patience:
                break
            self._listen(begun, patience)
        if self._told is not None:
            return _result(self._told, self._process.said())
        self._process.refuse_unless_well(begun.tool)
        return ToolResult(output=self._process.said(), values={"end": "not told"})

    def _listen(self, begun: HookEvent | None, until: float | None) -> None:
        if not self._process.wait(until, [self._hooks.bell]):
            return
        for event in self._hooks.messages():
            if event.kind is HookKind.PRE_TOOL:
                self._waiting.append(event)
            elif begun is not None and self._told is None and event.ends(begun):
                self._told = event
            else:
                self._hooks.answer(event)  # of a call that was taken for given up


class QuietSession:
    """For an agent that tells nothing: a step is what it does until nothing moves for a while.
    Then it is stopped, so that nothing moves while the checkpoint is taken; and it is started
    only once the first step is decided, so that all it does comes after that checkpoint."""

    def __init__(
        self, start: Callable[[], AgentProcess], stillness: Stillness, seconds: float
    ) -> None:
        self._start = start
        self._process: AgentProcess | None = None
        self._stillness = stillness
        self._seconds = seconds

    @property
    def is_over(self) -> bool:
        return self._process is None or self._process.end is not None

    def said(self) -> str:
        return self._process.said() if self._process is not None else ""

    def next_call(self) -> HookEvent | AgentEnd:
        if self._process is not None and self._process.end is not None:
            return self._process.end
        return HookEvent(kind=HookKind.PRE_TOOL, tool=WORK)

    def carry_out(self, tool: str, arguments: Mapping[str, Any]) -> ToolResult:  # noqa: ARG002  there is but one
        self._stillness.forget()
        process = self._process = self._process or self._start()
        process.resume()
        while process.end is None:
            process.wait(time.monotonic() + _LOOK_SECONDS)
            if self._stillness.lasts(self._seconds):
                process.suspend()
                return ToolResult(output=process.said())
        process.refuse_unless_well(WORK)
        return ToolResult(output=process.end.said, values={"exit_code": 0})

    def close(self) -> None:
        if self._process is not None:
            self._process.close()
        self._stillness.close()


def _result(event: HookEvent, said: str) -> ToolResult:
    values: dict[str, Any] = {"response": event.response}
    if event.error:
        # It failed for the agent, which has seen that and goes on from what is there.
        values["error"] = event.error
    output = "\n".join(text for text in (event.error or _shown(event.response), said) if text)
    return ToolResult(output=output, values=values)


def _shown(response: object) -> str:
    if isinstance(response, str):
        return response
    if isinstance(response, dict):
        known = cast("dict[str, object]", response)
        texts = [known.get(key) for key in ("stdout", "stderr", "content", "output")]
        return "\n".join(text for text in texts if isinstance(text, str) and text)
    return ""
