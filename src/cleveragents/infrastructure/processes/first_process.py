"""The first process of a step's own process table: when it ends, the kernel ends all the others.

That happens before anybody hears of its end. It is a copy of us that is as confined as the program
that it starts, adopts every orphan, and can neither be signalled nor looked into from inside. It
counts, stops and resumes all the others. If whoever keeps watch outside dies, the kernel kills it.
"""

import os
import select
import signal
import struct
import time
from collections.abc import Callable
from contextlib import suppress

from msgspec import Struct

from cleveragents.infrastructure.confinement.syscalls import (
    PR_SET_DUMPABLE,
    PR_SET_PDEATHSIG,
    prctl,
    signalfd,
)
from cleveragents.infrastructure.processes.process_tree import exit_code_of
from cleveragents.infrastructure.processes.program import Program
from cleveragents.infrastructure.processes.reports import (
    GRACE_SECONDS,
    STOP,
    NotRun,
    Report,
    not_inside,
)
from cleveragents.infrastructure.processes.standstill import Household, resume, suspend

SUSPEND, RESUME, DONE, NOT_DONE = b"s", b"r", b"+", b"-"
_LOOK_SECONDS = 0.02
_FIRST_OF_ALL = -20
# How the kernel tells of a signal: its number, two fields of no interest, and its sender.
_SIGNAL = struct.Struct("=IiiI")
_SIGNAL_SIZE = 128
_FROM_OUTSIDE = 0


class FirstProcess(Struct, frozen=True, kw_only=True):
    """`told` is where it says how the program ended; `asked` where it is asked to suspend and to
    resume all the others, and answers."""

    program: Program
    enter: Callable[[], None]
    told: int
    asked: int
    most_processes: int

    def begin(self) -> None:  # pragma: no cover - in a new process that no tool looks into
        """Returns only by an OSError, if there is nothing to keep watch over. All signals are
        blocked."""
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        prctl(PR_SET_DUMPABLE, 0)  # it remembers what we know, and what the program must not
        if _nobody_reads(self.told):
            os._exit(1)  # whoever keeps watch died before it could be told of
        try:
            self.enter()
        except OSError as error:
            os.write(self.told, not_inside(error).as_bytes())
            raise
        try:
            program = self.program.start()
        except OSError as error:
            os.write(self.told, NotRun(errno=error.errno or 0).as_bytes())
            raise
        try:
            with suppress(PermissionError):  # root has no other limit to its processes
                os.setpriority(os.PRIO_PROCESS, 0, _FIRST_OF_ALL)
            close_all_but(self.told, self.asked)
            report = _ProgramWatch(program, self.asked, self.most_processes).until_it_ends()
            os.write(self.told, report.as_bytes())
        finally:
            os._exit(0)


class _ProgramWatch:  # pragma: no cover - as above
    def __init__(self, program: int, asked: int, most_processes: int) -> None:
        self._program = program
        self._asked = asked
        self._most = most_processes
        self._household = Household()
        self._signals = signalfd((signal.SIGCHLD, STOP))
        self._deadline: float | None = None
        self._ready = select.poll()
        self._ready.register(self._signals, select.POLLIN)
        self._ready.register(asked, select.POLLIN)

    def until_it_ends(self) -> Report:
        while True:
            for number, _ in self._ready.poll(_LOOK_SECONDS * 1000):
                self._hear() if number == self._signals else self._answer()
            code = exit_code_of(self._program)
            if code is not None:
                return Report(code=code, left=len(self._household.members()))
            if self._deadline is not None and time.monotonic() > self._deadline:
                return Report(code=-signal.SIGKILL)
            if (found := len(self._household.members())) > self._most:
                return Report(code=-signal.SIGKILL, left=found, too_many=True)

    def _hear(self) -> None:
        number, _, _, sender = _SIGNAL.unpack_from(os.read(self._signals, _SIGNAL_SIZE))
        if number == STOP and sender == _FROM_OUTSIDE and self._deadline is None:
            self._deadline = time.monotonic() + GRACE_SECONDS
            with suppress(ProcessLookupError):
                os.killpg(self._program, STOP)

    def _answer(self) -> None:
        wanted = os.read(self._asked, 1)
        if not wanted:
            self._ready.unregister(self._asked)
            return
        done = True
        if wanted == SUSPEND:
            done = suspend(self._household)
        else:
            resume(self._household)
        with suppress(BrokenPipeError):
            os.write(self._asked, DONE if done else NOT_DONE)


def close_all_but(*kept: int) -> None:
    """Locks and pipes of the original must not live as long as the copy."""
    first = 0
    for number in sorted(kept):
        os.closerange(first, number)
        first = number + 1
    os.closerange(first, os.sysconf("SC_OPEN_MAX"))


def _nobody_reads(pipe: int) -> bool:  # pragma: no cover - as above
    waiting = select.poll()
    waiting.register(pipe, 0)
    return any(event & select.POLLERR for _, event in waiting.poll(0))
