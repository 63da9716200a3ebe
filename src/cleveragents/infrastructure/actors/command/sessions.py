"""How an agent's work falls into steps: as its hooks tell it, or by what is there when it rests.

The agent waits at its hooks: before a call until the decision is on record, and after it until
what came of it is. What it does without calling one may be anything; so whenever it is about to
make a call, has ended, or nothing moves any more for a while, whoever asks is told to look first.
As long as it waits all of it is suspended: what it started beside the call could write as well.
"""

import time
from collections import deque
from collections.abc import Mapping
from typing import Any, cast

from msgspec import Struct

from cleveragents.domain.decision import ToolResult
from cleveragents.domain.errors import ToolError
from cleveragents.infrastructure.actors.command.hooks import HookEvent, HookFolder, HookKind
from cleveragents.infrastructure.actors.command.process import AgentEnd, AgentProcess
from cleveragents.infrastructure.actors.command.quiet_detection import Pauses

# An agent that begins another call without a word on the end of the last one may have given
# that up, or may still be at it: it gets this long to tell.
_PATIENCE_SECONDS = 2.0
_LOOK_SECONDS = 0.1
_LONGEST_SAID = 20_000


class Rest(Struct, frozen=True, kw_only=True):
    """The agent does nothing now; what it has done before may be more than it told. `problem` is
    why its pauses cannot be seen."""

    said: str
    problem: str = ""


class AgentSession:
    """One run of an agent; between two steps it waits for us. Without `hooks` it tells nothing.
    With `keeps`, what it did before it broke off counts as well."""

    def __init__(
        self,
        process: AgentProcess,
        hooks: HookFolder | None,
        pauses: Pauses,
        *,
        keeps: bool = False,
    ) -> None:
        self._process = process
        self._keeps = keeps
        self._paused: list[HookEvent] = []
        self._hooks = hooks
        self._pauses = pauses
        self._at_rest = False
        self._begun: HookEvent | None = None
        self._told: HookEvent | None = None
        self._waiting: deque[HookEvent] = deque()
        self._said = ""
        self.has_gone_on = False
        """Whether it has done anything since its last call ended: it has noted then how."""

    @property
    def waits_with_result(self) -> bool:
        """Whether it is still about to hear that it may go on after a call."""
        return self._told is not None

    @property
    def is_over(self) -> bool:
        """Whether the program has ended."""
        return self._process.end is not None

    def said(self) -> str:
        """What it has printed since somebody asked the last time."""
        said, self._said = self._heard(), ""
        return said

    def noted(self) -> None:
        """What it did without a word is on record, and with it what it said meanwhile; but its
        last words may as well be about the call that it is about to make."""
        if self._begun is None:
            self._said = ""

    def next_call(self) -> HookEvent | Rest | AgentEnd:
        """Let the agent go on until it wants to do something, or has ended; a rest comes first."""
        while True:
            if not self._at_rest:
                self._go_on()
                self._suspend()
                self._at_rest = True
                # Before they look: what moves from now on is for the next time.
                self._pauses.forget()
                if self._keeps or not self._broke_off:
                    return Rest(said=self._heard(), problem=self._pauses.problem)
            found = self._begun or self._process.end
            if found is not None:
                return found
            self._at_rest = False

    def carry_out(self, tool: str, arguments: Mapping[str, Any]) -> ToolResult:
        """Let it make the call that it is about to; back once it is done. Raises ToolError."""
        while self._begun is None and not self._at_rest and not self.is_over:
            self._go_on()  # started anew, for what was decided before we were interrupted
        begun = self._begun
        if self._hooks is None or begun is None or not begun.is_call(tool, arguments):
            told = f"is about to call {begun.tool}" if begun else "has ended"
            raise ToolError(f"the agent was started anew and {told}", "it goes on from there")
        self._hooks.answer(begun)
        self._begun, self._at_rest = None, False
        self._process.resume()
        try:
            return self._await_end(begun)
        finally:
            self._suspend()

    def close(self) -> None:
        self._process.close()
        self._pauses.close()
        if self._hooks is not None:
            self._hooks.close()

    @property
    def _broke_off(self) -> bool:
        end = self._process.end
        return end is not None and end.code != 0

    def _heard(self) -> str:
        self._said = _joined(self._said, self._process.said())[-_LONGEST_SAID:]
        return _joined(self._said, self._process.end.said if self._process.end else "")

    def _suspend(self) -> None:
        if self._process.end is None:
            self._process.suspend()

    def _go_on(self) -> None:
        """Until it wants something, has ended, or nothing moves."""
        self.has_gone_on = not self._waiting
        if self._told is not None and self._hooks is not None:
            self._hooks.answer(self._told)
            self._told = None
        self._let_go_on()
        self._process.resume()
        # A call that nobody has taken up yet is still what it wants: its hook waits for an answer.
        while not (self._begun or self._waiting or self._paused or self._process.end):
            self._listen(None, time.monotonic() + _LOOK_SECONDS)
            if self._pauses.is_one_now():
                return
        if self._begun is None and self._waiting:
            self._begun = self._waiting.popleft()

    def _let_go_on(self) -> None:
        """Those that wait because something is done: it is on record now."""
        for event in self._paused:
            assert self._hooks is not None
            self._hooks.answer(event)
        self._paused.clear()

    def _await_end(self, begun: HookEvent) -> ToolResult:
        patience: float | None = None
        while self._told is None and self._process.end is None:
            if self._waiting and patience is None:
                patience = time.monotonic() + _PATIENCE_SECONDS
            if patience is not None and time.monotonic() >= patience:
                break
            self._listen(begun, patience)
        self._pauses.forget()
        if self._told is not None:
            return self._result(self._told)
        if not self._keeps:
            self._process.refuse_unless_well(begun.tool)
        return ToolResult(output=self._process.said(), values={"end": "not told"})

    def _result(self, event: HookEvent) -> ToolResult:
        values: dict[str, Any] = {"response": event.response}
        if event.error:
            # It failed for the agent, which has seen that and goes on from what is there.
            values["error"] = event.error
        output = _joined(event.error or _shown(event.response), self._process.said())
        if denied := self._process.denied(output):
            values["denied"] = denied
        return ToolResult(output=output, values=values)

    def _listen(self, begun: HookEvent | None, until: float | None) -> None:
        hooks = self._hooks
        if not self._process.wait(until, [hooks.bell] if hooks else []) or hooks is None:
            return
        for event in hooks.messages():
            if event.kind is HookKind.PRE_TOOL:
                self._waiting.append(event)
            elif event.kind is HookKind.PAUSE and begun is None:
                self._paused.append(event)
            elif begun is not None and self._told is None and event.ends(begun):
                self._told = event
            else:
                hooks.answer(event)  # of a call that was taken for given up


def _joined(*texts: str) -> str:
    return "\n".join(text for text in texts if text)


def _shown(response: object) -> str:
    if isinstance(response, str):
        return response
    if isinstance(response, dict):
        known = cast("dict[str, object]", response)
        texts = [known.get(key) for key in ("stdout", "stderr", "content", "output")]
        return "\n".join(text for text in texts if isinstance(text, str) and text)
    return ""
