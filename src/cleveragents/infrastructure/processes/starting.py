"""The start of a command that is held inside: its supervisor, and what leads to and from them."""

import os
import signal
import socket
import subprocess
import threading
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from types import FrameType
from typing import IO, Any

from msgspec import Struct

from cleveragents.domain.scarcity import scarcity_by_number
from cleveragents.infrastructure.confinement.confiner import Enclosure
from cleveragents.infrastructure.processes.marked import MARK
from cleveragents.infrastructure.processes.program import Program
from cleveragents.infrastructure.processes.reports import NotHeld, NotRun, read_report
from cleveragents.infrastructure.processes.running import Running
from cleveragents.infrastructure.processes.supervisor import ProcessSupervisor

# The last one is how an interruption that got lost is felt again.
_INTERRUPTIONS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGALRM)
_Handler = Callable[[int, FrameType | None], Any] | int | signal.Handlers | None


class Start(Struct, frozen=True, kw_only=True):
    """`name` is for messages; `mark` is what its processes carry; `passed` are open files that it
    gets beside the usual three. `controls`: what it prints to is the terminal that controls it."""

    name: str
    folder: str
    mark: str
    environ: Mapping[str, str]
    stdin: int | IO[bytes]
    stderr: int
    most_processes: int
    passed: tuple[int, ...] = ()
    stdout: int = subprocess.PIPE
    controls: bool = False


class NotStartedError(Exception):
    """`reason` in words; `held` False: it could not be held inside. Nothing runs. `remedy` is what
    helps, if it is that there is no more of something."""

    def __init__(
        self, reason: str, *, held: bool = True, at: str | None = None, remedy: str = ""
    ) -> None:
        super().__init__(reason)
        self.remedy = remedy
        self.reason = reason
        self.held = held
        self.at = at


@contextmanager
def started(enclosure: Enclosure, start: Start) -> Generator[Running]:
    """Running until the block is left, and then certainly no more.

    Raises NotStartedError, and when it is left ToolNotEndedError.
    """
    known: list[Running] = []
    try:
        with signals_held_back():  # a process that we do not know of would go on
            known.append(_start(enclosure, start))
        yield known[0]
    finally:
        with signals_held_back():
            for running in known:
                running.leave()


def _start(enclosure: Enclosure, start: Start) -> Running:
    report, written = os.pipe()
    ours, theirs = socket.socketpair() if enclosure.is_apart else (None, None)
    environ = {**start.environ, MARK: start.mark}
    passed = (*enclosure.passed_fds, *start.passed)
    program = Program(argv=enclosure.argv, environ=environ, passed=passed, controls=start.controls)
    supervisor = ProcessSupervisor(
        report=written,
        most_processes=start.most_processes,
        enter=enclosure.enter,
        program=program,
        separate=enclosure.separate if enclosure.is_apart else None,
        asked=-1 if theirs is None else theirs.fileno(),
    )
    try:
        process = subprocess.Popen(
            enclosure.argv,
            cwd=start.folder,
            env=environ,
            stdin=start.stdin,
            stdout=start.stdout,
            stderr=start.stderr,
            pass_fds=passed,
            start_new_session=True,
            preexec_fn=supervisor.begin,
        )
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        os.close(written)
        problem = _problem(error, os.read(report, 4096))
        os.close(report)
        if ours is not None:
            ours.close()
        raise problem from error
    finally:
        if theirs is not None:
            theirs.close()
    os.close(written)  # so that the end of the supervisor is the end of what can be read
    return Running(start.name, start.mark, process, report, ours)


def _problem(error: Exception, told: bytes) -> NotStartedError:
    said = read_report(told)
    if isinstance(said, NotHeld):
        return NotStartedError(said.reason, held=False)
    number = said.errno if isinstance(said, NotRun) else getattr(error, "errno", None)
    if scarce := scarcity_by_number(number):
        return NotStartedError(scarce.message, remedy=scarce.hint)
    if isinstance(said, NotRun):
        return NotStartedError(said.reason)
    at = error.filename if isinstance(error, OSError) else None
    return NotStartedError(getattr(error, "strerror", None) or str(error), at=at)


@contextmanager
def signals_held_back() -> Generator[None]:
    """An interruption that comes now is felt at the end of the block.

    By the main thread alone, which is the one that is interrupted. To block the signals is not
    enough: any other thread would take them, and hand them on to this one.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    felt: list[int] = []
    before = {n: signal.signal(n, lambda number, _: felt.append(number)) for n in _INTERRUPTIONS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
        for number in felt[:1]:
            _feel(number, before[signal.Signals(number)])


def _feel(number: int, handler: "_Handler") -> None:
    """What would have happened; not by one more signal, as signals are counted."""
    if callable(handler):
        handler(number, None)
    else:
        signal.raise_signal(number)
