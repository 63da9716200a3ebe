"""The start of a command that is held inside: its supervisor, and what leads to and from them."""

import os
import signal
import socket
import subprocess
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from cleveragents.infrastructure.confinement.enclosure import Enclosure
from cleveragents.infrastructure.processes.forking.fork_server import ForkServer
from cleveragents.infrastructure.processes.forking.served_start import served
from cleveragents.infrastructure.processes.marked import MARK
from cleveragents.infrastructure.processes.program import Program
from cleveragents.infrastructure.processes.running import Running
from cleveragents.infrastructure.processes.start import Start, problem
from cleveragents.infrastructure.processes.supervisor import ProcessSupervisor

# The last one is how an interruption that got lost is felt again.
_INTERRUPTIONS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGALRM)
_Handler = Callable[[int, FrameType | None], Any] | int | signal.Handlers | None


@contextmanager
def started(enclosure: Enclosure, start: Start, server: ForkServer) -> Generator[Running]:
    """Running until the block is left, and then certainly no more.

    Raises NotStartedError, and when it is left ToolNotEndedError.
    """
    known: list[Running] = []
    try:
        with signals_held_back():  # a process that we do not know of would go on
            known.append(_start(enclosure, start, server))
        yield known[0]
    finally:
        with signals_held_back():
            for running in known:
                running.leave()


def _start(enclosure: Enclosure, start: Start, server: ForkServer) -> Running:
    """By the fork server from the second command on; the first one would only wait for it.

    In a second thread it does: a copy of ours has locks that other threads hold, and nobody in it
    who gives them back.
    """
    program = Program(
        argv=enclosure.argv,
        environ={**start.environ, MARK: start.mark},
        passed=(*enclosure.passed_fds, *start.passed),
        controls=start.controls,
    )
    if not server.serves(enclosure, program):
        return _start_ourselves(enclosure, start, program)
    is_there = server.begin() or not _in_main_thread()
    running = served(server, enclosure, start, program) if is_there else None
    return running or _start_ourselves(enclosure, start, program)


def _start_ourselves(enclosure: Enclosure, start: Start, program: Program) -> Running:
    report, written = os.pipe()
    ours, theirs = socket.socketpair() if enclosure.is_apart else (None, None)
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
            program.argv,
            cwd=start.folder,
            env=program.environ,
            stdin=start.stdin,
            stdout=start.stdout,
            stderr=start.stderr,
            pass_fds=program.passed,
            start_new_session=True,
            preexec_fn=supervisor.begin,
        )
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        os.close(written)
        refusal = problem(error, os.read(report, 4096))
        os.close(report)
        if ours is not None:
            ours.close()
        raise refusal from error
    finally:
        if theirs is not None:
            theirs.close()
    os.close(written)  # so that the end of the supervisor is the end of what can be read
    return Running(start.name, start.mark, process, report, ours)


@contextmanager
def signals_held_back() -> Generator[None]:
    """An interruption that comes now is felt at the end of the block.

    By the main thread alone, which is the one that is interrupted. To block the signals is not
    enough: any other thread would take them, and hand them on to this one.
    """
    if not _in_main_thread():
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


def _in_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


def _feel(number: int, handler: "_Handler") -> None:
    """What would have happened; not by one more signal, as signals are counted."""
    if callable(handler):
        handler(number, None)
    else:
        signal.raise_signal(number)
