"""One run of an agent's program: that it runs, what it prints, and how it ends."""

import os
import select
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack

from msgspec import Struct, field
from msgspec.structs import replace

from cleveragents.domain.confinement import Confinement
from cleveragents.domain.errors import ToolError, ToolTimeoutError
from cleveragents.domain.resource import SandboxAddress
from cleveragents.infrastructure.processes.denials import (
    denied_hint,
    denied_places,
    suspicious_lines,
)
from cleveragents.infrastructure.processes.runner import Command, ProcessRunner, last_lines
from cleveragents.infrastructure.processes.running import told_of_changed
from cleveragents.infrastructure.terminal.plain_text import plain_text
from cleveragents.infrastructure.terminal.relays import KeptOutput, OpenRelay

_LOOK_SECONDS = 0.2


class AgentEnd(Struct, frozen=True, kw_only=True):
    """The program has ended; a code of None says that it was ended from outside. `refused` are the
    places that it was not let write to, as far as it told, and `hint` says what allows that."""

    code: int | None
    said: str
    refused: tuple[str, ...] = ()
    hint: str = ""

    @property
    def in_words(self) -> str:
        ended = "a signal from outside" if self.code is None else f"exit code {self.code}"
        places = ", ".join(self.refused)
        return f"{ended}, after it was not let write {places}" if places else ended


class AgentCommand(Struct, frozen=True, kw_only=True):
    """What to start, and where. `confinement` is what the action asks for; `writable` are further
    places of ours."""

    plan_id: str
    argv: Sequence[str]
    folder: str
    sandboxes: Mapping[str, SandboxAddress]
    timeout: float
    confinement: Confinement = Confinement()
    writable: tuple[str, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict[str, str])


class AgentProcess:
    """`open_relay` gives what leads to and from the program."""

    def __init__(
        self, runner: ProcessRunner, command: AgentCommand, open_relay: OpenRelay = KeptOutput
    ) -> None:
        self._runner = runner
        self._command = command
        self._deadline = time.monotonic() + command.timeout
        self._printed = bytearray()
        self._left_out = 0
        self._denied: list[str] = []
        self._is_suspended = False
        self.end: AgentEnd | None = None
        self._stack = ExitStack()
        limits = runner.limits(command.timeout)
        self._kept = limits.kept
        self._relay = open_relay()
        self._stack.callback(self._relay.close)
        try:
            started = runner.started(replace(as_command(command), ends=self._relay.ends), limits)
            self._running = self._stack.enter_context(started)
            self._relay.started(self._running.process)
        except BaseException:
            self._stack.close()
            raise

    def wait(self, until: float | None = None, others: Sequence[int] = ()) -> bool:
        """For the first of: one of the others is ready, something printed, the end, that moment.

        Whether one of the others is ready. Raises ToolTimeoutError when the agent's time is over.
        """
        now = time.monotonic()
        if now >= self._deadline:
            self._running.end()
            self.close()
            self.end = self._ended(None)
            raise ToolTimeoutError("the agent", self._command.timeout)
        left = min(self._deadline, until or self._deadline, now + _LOOK_SECONDS) - now
        sources, sinks = self._relay.sources, self._relay.sinks
        watched = [*sources, self._running.report, *others]
        ready, room, _ = select.select(watched, sinks, [], max(0.0, left))
        ended = self._running.report in ready
        if ended or room or any(number in ready for number in sources):
            self._keep(self._relay.serve(whole=ended))
        self._relay.look(self._running)
        if ended:
            report = self._running.end()
            self._printed += os.fsencode(told_of_changed(self._running.changed_below()))
            self._runner.refuse_if_stopped(self._command.plan_id)
            self.end = self._ended(report.code if report else None)
        return any(fd in ready for fd in others)

    def refuse_unless_well(self, doing: str) -> None:
        """Raise ToolError if the agent broke off while it was at something."""
        if self.end is not None and self.end.code != 0:
            raise ToolError(
                f"the agent ended with {self.end.in_words} while it was at {doing}"
                f"{last_lines(self.end.said)}",
                self.end.hint or "resume the plan: that starts the agent again",
            )

    def said(self) -> str:
        """What it has printed since somebody asked the last time."""
        text = plain_text(bytes(self._printed)).strip()
        left_out, self._left_out = self._left_out, 0
        self._printed.clear()
        self._denied += self.denied(text)
        return f"[{left_out} bytes left out]\n{text}" if left_out else text

    def denied(self, text: str) -> list[str]:
        """The lines in which it says that it was not let."""
        return self._runner.denied(self._command.confinement, text)

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
        """End it, if it has not ended by itself; unheard, since the checkpoint may be taken. The
        user has the terminal back at once, whatever it takes."""
        try:
            self._relay.close()
            self._running.kill()
        finally:
            self._stack.close()

    def _ended(self, code: int | None) -> AgentEnd:
        said, asked = self.said(), self._command.confinement
        if self._denied:
            sandboxes = self._command.sandboxes.values()
            places = (place for address in sandboxes for place in (address.value, address.home))
            allowed = (*filter(None, places), *self._command.writable)
            places = tuple(denied_places(self._denied, allowed))
            hint = denied_hint(asked, self._denied)
            return AgentEnd(code=code, said=said, refused=places, hint=hint)
        if code != 0 and (lines := self._suspicious(said)):
            again = f"otherwise agents plan resume {self._command.plan_id} starts it again"
            return AgentEnd(code=code, said=said, hint=f"{denied_hint(asked, lines)}; {again}")
        return AgentEnd(code=code, said=said)

    def _suspicious(self, text: str) -> list[str]:
        held = self._runner.is_held(self._command.confinement)
        return suspicious_lines(text) if held else []

    def _keep(self, printed: bytes) -> None:
        self._printed += printed
        surplus = len(self._printed) - self._kept
        if surplus > 0:
            del self._printed[:surplus]
            self._left_out += surplus


def as_command(command: AgentCommand) -> Command:
    """For the runner of all programs."""
    return Command(
        name="the agent",
        argv=command.argv,
        folder=command.folder,
        sandboxes=command.sandboxes,
        timeout=command.timeout,
        plan_id=command.plan_id,
        confinement=replace(
            command.confinement, write=(*command.confinement.write, *command.writable)
        ),
        variables=command.variables,
    )
