"""The start of a command by a fork server: what leads to it and from it, and why it did not start.

In which order: all pipes; the order; our copies of what the command got are closed; then we wait
until nobody has the pipe any more over which it would be said that nothing came of it.
What is not guaranteed: that a server which dies meanwhile has started nothing. What it had started
is ended, and waited for; only then it is said that the command was not started.
"""

import os
import select
import socket
import subprocess
from contextlib import ExitStack
from typing import IO

from msgspec.structs import replace

from cleveragents.domain.errors import ToolNotEndedError
from cleveragents.infrastructure.confinement.enclosure import Enclosure
from cleveragents.infrastructure.processes.forking.fork_server import (
    Forked,
    ForkServer,
    ServerLostError,
)
from cleveragents.infrastructure.processes.forking.orders import (
    NO_FILES,
    NO_FOLDER,
    Order,
    OrderFiles,
)
from cleveragents.infrastructure.processes.forking.served_process import ServedProcess
from cleveragents.infrastructure.processes.marked import end_processes
from cleveragents.infrastructure.processes.program import Program
from cleveragents.infrastructure.processes.running import Running
from cleveragents.infrastructure.processes.start import NotStartedError, Start, problem

_PATIENCE_MS = 30_000
_REPORT = 4096


def served(
    server: ForkServer, enclosure: Enclosure, start: Start, program: Program
) -> Running | None:
    """None if there is no server; then nothing was started. Raises NotStartedError, and
    ToolNotEndedError if something was started and lost, and does not end."""
    with ExitStack() as kept, _Line(kept) as line:
        files = line.files(start, enclosure, program)
        order = Order(
            enclosure=replace(enclosure, argv=(), environ={}),  # `program` has them
            program=program,
            folder=start.folder,
            most_processes=start.most_processes,
        )
        try:
            forked = server.fork(order, files)
        except ServerLostError as error:
            raise _lost(start, line) from error
        except OSError as error:
            raise problem(error, b"") from error
        if forked is None:
            return None
        line.let_go()
        _refuse_what_did_not_begin(forked, line, start)
        kept.pop_all()
        process = ServedProcess(forked.pid, forked.handle, line.streams)
        return Running(start.name, start.mark, process, line.report, line.ours)


class _Line:
    """All that leads to a command. `kept` closes what stays with us, unless it is taken out of it;
    what the command gets is closed when the block is left, or before."""

    def __init__(self, kept: ExitStack) -> None:
        self._kept = kept
        self._given = ExitStack()
        self._short = ExitStack()
        self.streams: dict[int, IO[bytes]] = {}
        self.report, self._written = self._outward(kept)
        self.begun, self._said = self._outward(self._short)
        self.ours, self._asked = socket.socketpair()
        kept.enter_context(self.ours)
        self._given.enter_context(self._asked)

    def __enter__(self) -> "_Line":
        return self

    def __exit__(self, *_: object) -> None:
        self.let_go()
        self._short.close()

    def let_go(self) -> None:
        """So that the end of the supervisor is the end of what can be read."""
        self._given.close()

    def files(self, start: Start, enclosure: Enclosure, program: Program) -> OrderFiles:
        assert enclosure.ruleset is not None
        stdout = self._stream(1, start.stdout)
        is_one = start.stderr == subprocess.STDOUT
        return OrderFiles(
            stdin=self._stream(0, start.stdin),
            stdout=stdout,
            stderr=stdout if is_one else self._stream(2, start.stderr),
            report=self._written,
            begun=self._said,
            asked=self._asked.fileno(),
            ruleset=enclosure.ruleset,
            passed=tuple(program.passed),
        )

    def _stream(self, number: int, wanted: int | IO[bytes]) -> int:
        if not isinstance(wanted, int):
            return wanted.fileno()
        if wanted == subprocess.DEVNULL:
            nothing = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
            self._given.callback(os.close, nothing)
            return nothing
        return self._pipe(number) if wanted == subprocess.PIPE else wanted

    def _pipe(self, number: int) -> int:
        read, written = os.pipe()
        ours, theirs = (written, read) if number == 0 else (read, written)
        self._given.callback(os.close, theirs)
        stream = os.fdopen(ours, "wb" if number == 0 else "rb")
        self.streams[number] = self._kept.enter_context(stream)
        return theirs

    def _outward(self, ours: ExitStack) -> tuple[int, int]:
        read, written = os.pipe()
        ours.callback(os.close, read)
        self._given.callback(os.close, written)
        return read, written


def _refuse_what_did_not_begin(forked: Forked, line: _Line, start: Start) -> None:
    why = os.read(line.begun, _REPORT)
    if not why:
        return
    os.close(forked.handle)
    if why[:1] in (NO_FOLDER, NO_FILES):
        number = int(why[1:])
        at = start.folder if why.startswith(NO_FOLDER) else None
        raise problem(OSError(number, os.strerror(number), at), b"")
    raise problem(ChildProcessError("it did not begin"), os.read(line.report, _REPORT))


def _lost(start: Start, line: _Line) -> Exception:
    """Its supervisor hears of the server's end, and ends the command."""
    line.let_go()
    ended = select.poll()
    ended.register(line.report, select.POLLIN)
    if not ended.poll(_PATIENCE_MS) or not end_processes(start.mark):
        return ToolNotEndedError(start.name)
    return NotStartedError(
        "the process that starts commands was killed", remedy="run the command again"
    )
