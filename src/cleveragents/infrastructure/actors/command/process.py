"""Owns one run of an agent's program: that it runs, what it prints, and how it ends."""

import os
import select
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field

from cleveragents.domain.confinement import Confinement
from cleveragents.domain.errors import ToolError, ToolTimeoutError
from cleveragents.infrastructure.processes.runner import Command, ProcessRunner, last_lines

_CHUNK = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentEnd:
    """The program has ended; a code of None says that it was ended from outside."""

    code: int | None
    said: str

    @property
    def in_words(self) -> str:
        return "a signal from outside" if self.code is None else f"exit code {self.code}"


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentCommand:
    """What to start, and where."""

    plan_id: str
    argv: Sequence[str]
    folder: str
    sandboxes: Mapping[str, str]
    timeout: float
    confinement: Confinement = Confinement()
    variables: Mapping[str, str] = field(default_factory=dict[str, str])


class AgentProcess:
    def __init__(self, runner: ProcessRunner, command: AgentCommand) -> None:
        self._runner = runner
        self._command = command
        self._deadline = time.monotonic() + command.timeout
        self._printed = bytearray()
        self._left_out = 0
        self._is_suspended = False
        self.end: AgentEnd | None = None
        self._stack = ExitStack()
        limits = runner.limits(command.timeout)
        self._kept = limits.kept
        self._running = self._stack.enter_context(runner.started(_to_run(command), limits))
        os.set_blocking(self._running.output, False)

    def wait(self, until: float | None = None, others: Sequence[int] = ()) -> bool:
        """For the first of: one of the others is ready, something printed, the end, that moment.

        Whether one of the others is ready. Raises ToolTimeoutError when the agent's time is over.
        """
        now = time.monotonic()
        if now >= self._deadline:
            self._running.end()
            self.close()
            self.end = AgentEnd(code=None, said=self.said())
            raise ToolTimeoutError("the agent", self._command.timeout)
        left = min(self._deadline, until or self._deadline) - now
        watched = [self._running.output, self._running.report, *others]
        ready = select.select(watched, [], [], max(0.0, left))[0]
        if self._running.output in ready or self._running.report in ready:
            self._hear(whole=self._running.report in ready)
        if self._running.report in ready:
            report = self._running.end()
            self._runner.refuse_if_stopped(self._command.plan_id)
            self.end = AgentEnd(code=report.code if report else None, said=self.said())
        return any(fd in ready for fd in others)

    def refuse_unless_well(self, doing: str) -> None:
        """Raise ToolError if the agent broke off while it was at something."""
        if self.end is not None and self.end.code != 0:
            raise ToolError(
                f"the agent ended with {self.end.in_words} while it was at {doing}"
                f"{last_lines(self.end.said)}",
                "resume the plan: that starts the agent again",
            )

    def said(self) -> str:
        """What it has printed since somebody asked the last time."""
        text = self._printed.decode("utf-8", "backslashreplace").strip()
        left_out, self._left_out = self._left_out, 0
        self._printed.clear()
        return f"[{left_out} bytes left out]\n{text}" if left_out else text

    def suspend(self) -> None:
        """Until it is resumed, nothing of it moves."""
        if not self._is_suspended:
            self._running.suspend()
            self._is_suspended = True

    def resume(self) -> None:
        if self._is_suspended:
            self._is_suspended = False
            self._running.resume()

    def close(self) -> None:
        """End it, if it has not ended by itself; unheard, since the checkpoint may be taken."""
        try:
            self._running.kill()
        finally:
            self._stack.close()

    def _hear(self, *, whole: bool) -> None:
        while True:
            try:
                chunk = os.read(self._running.output, _CHUNK)
            except BlockingIOError:
                return
            if not chunk:
                return
            self._printed += chunk
            surplus = len(self._printed) - self._kept
            if surplus > 0:
                del self._printed[:surplus]
                self._left_out += surplus
            if not whole:
                return


def _to_run(command: AgentCommand) -> Command:
    return Command(
        name="the agent",
        argv=command.argv,
        folder=command.folder,
        sandboxes=command.sandboxes,
        timeout=command.timeout,
        plan_id=command.plan_id,
        confinement=command.confinement,
        variables=command.variables,
    )
