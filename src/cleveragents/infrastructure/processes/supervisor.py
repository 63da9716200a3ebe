"""The process that stands between us and a command, and sees to it that nothing outlives it.

Where the machine lets it, the command and all it starts have a process table of their own, and
the supervisor need only end the first process of that: the kernel does the rest. Elsewhere whatever
loses its parent below the supervisor becomes its child, however often it forked and whatever it
did to its environment, group or session, and the supervisor ends them until none is left. Either
way it reports the end only when nothing is left that could write. If we die, it is told, and ends
it all. It is a copy of us, or of a fork server of ours, that does nothing but wait.
In which order: it asks to be told of our death and to adopt orphans, and blocks all signals, before
it forks the command; only then is it certain that our death, or a child's, is not missed.
What is not guaranteed: an end within a time. What cannot be killed is reported, and kept below.
"""

import gc
import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress

from msgspec import Struct

from cleveragents.infrastructure.confinement.syscalls import (
    IS_LINUX,
    PR_SET_CHILD_SUBREAPER,
    PR_SET_PDEATHSIG,
    prctl,
)
from cleveragents.infrastructure.processes.first_process import FirstProcess, close_all_but
from cleveragents.infrastructure.processes.process_tree import (
    descendants,
    end_descendants,
    exit_code_of,
)
from cleveragents.infrastructure.processes.program import (
    Program,
    come_to_foreground,
    lead_session,
)
from cleveragents.infrastructure.processes.reports import (
    END,
    GRACE_SECONDS,
    STOP,
    NotEnded,
    NotRun,
    Report,
    not_inside,
)

_WATCHED = frozenset((signal.SIGCHLD, STOP, END))
_LOOK_SECONDS = 0.02
_FIRST_OF_ALL = -20
# After so long it is said that something is still there; the supervisor goes on ending it.
_PATIENCE_SECONDS = 10.0
# If memory runs out, the command is to go before us.
_SOONER_KILLED = b"500"


class ProcessSupervisor(Struct, frozen=True, kw_only=True):
    """`report` is where it writes how the command ended; `enter` is what the command goes through
    before it becomes its program.

    With `separate`, what that makes the next child is the first of a process table of its own;
    `asked` is where that one can be asked to suspend the others. `parent` is whose end it has to
    hear of, if that may have come already.
    """

    report: int
    most_processes: int
    enter: Callable[[], None]
    program: Program
    separate: Callable[[], None] | None = None
    asked: int = -1
    parent: int = 0

    def begin(self) -> None:  # pragma: no cover - in a new process that no tool looks into
        """Returns in the process that is to become the program; the supervisor never does."""
        parent = self.parent or os.getppid()
        if IS_LINUX:
            prctl(PR_SET_PDEATHSIG, END)
            prctl(PR_SET_CHILD_SUBREAPER, 1)
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        if self.separate is None:
            self._keep_below(parent)
        else:
            self._keep_apart(parent, self.separate)

    def _keep_below(self, parent: int) -> None:  # pragma: no cover - as above
        if self.program.controls:
            lead_session()
        child = self._forked()
        if child == 0:
            self._become()
            return
        try:
            self._stand_by(parent, self.report)
            os.write(self.report, watch(child, self.most_processes, self.report).as_bytes())
        finally:
            os._exit(0)

    def _keep_apart(self, parent: int, separate: Callable[[], None]) -> None:  # pragma: no cover
        try:
            separate()
        except OSError as error:
            os.write(self.report, not_inside(error).as_bytes())
            raise
        heard, told = os.pipe()
        first = self._forked()
        if first == 0:
            gc.disable()
            os.close(heard)
            _stand_first_in_line()
            FirstProcess(
                program=self.program,
                enter=self.enter,
                told=told,
                asked=self.asked,
                most_processes=self.most_processes,
            ).begin()
        try:
            self._stand_by(parent, self.report, heard)
            keep_first(first, self.report)
            os.write(self.report, os.read(heard, 4096) or Report(code=-signal.SIGKILL).as_bytes())
        finally:
            os._exit(0)

    def _forked(self) -> int:  # pragma: no cover - as above
        try:
            return os.fork()
        except OSError as error:  # there may be no more processes
            os.write(self.report, _not_run(error).as_bytes())
            raise

    def _stand_by(self, parent: int, *kept: int) -> None:  # pragma: no cover - as above
        with suppress(PermissionError):  # root has no other limit to its processes
            os.setpriority(os.PRIO_PROCESS, 0, _FIRST_OF_ALL)
        gc.disable()  # nothing of the process that this is a copy of may be torn down here
        close_all_but(*kept)
        if os.getppid() != parent:
            os.kill(os.getpid(), END)

    def _become(self) -> None:  # pragma: no cover - as above
        come_to_foreground() if self.program.controls else os.setsid()
        if IS_LINUX:
            prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            _stand_first_in_line()
        try:
            self.enter()
        except OSError as error:
            os.write(self.report, not_inside(error).as_bytes())
            raise
        signal.pthread_sigmask(signal.SIG_SETMASK, ())


def _not_run(error: OSError) -> NotRun:
    return NotRun(errno=error.errno or 0)


def keep_first(first: int, report: int) -> None:
    """Wait for the first process of another table to end, or end it: with it all others have."""
    deadline: float | None = None
    while not _has_ended(first):
        told = _next_signal(None if deadline is None else deadline - time.monotonic())
        if told == STOP and deadline is None:
            deadline = time.monotonic() + GRACE_SECONDS + _LOOK_SECONDS
            _signal(first, STOP)  # it asks the program
        elif told == END or (deadline is not None and time.monotonic() >= deadline):
            _end_for_certain(first, report)
            return


def watch(child: int, most_processes: int, report: int) -> Report:
    """Wait for the child to end, or to be ended. SIGCHLD, SIGTERM and SIGHUP are blocked."""
    crowd = _Crowd(most_processes)
    code, too_many = None, False
    while code is None and not too_many:
        told = _next_signal(_LOOK_SECONDS)
        code = exit_code_of(child)
        if code is None and told == STOP:
            code = _stopped_gently(child)
        if told in (STOP, END):
            break
        too_many = code is None and crowd.is_too_large()
    left = end_descendants(_PATIENCE_SECONDS, lambda: os.write(report, NotEnded().as_bytes()))
    return Report(code=-signal.SIGKILL if code is None else code, left=left, too_many=too_many)


class _Crowd:
    """Whether there are too many processes. They are counted only while the machine has more than
    at the first look, and now and then, since others may have ended meanwhile."""

    _LOOKS = 50

    def __init__(self, most: int) -> None:
        self._most = most
        self._fewest = _threads_of_machine()
        self._looks = 0

    def is_too_large(self) -> bool:
        now = _threads_of_machine()
        self._fewest = min(now, self._fewest)
        self._looks = (self._looks + 1) % self._LOOKS
        if self._looks and now - self._fewest < self._most // 2:
            return False
        return len(descendants(os.getpid())) > self._most


def _threads_of_machine() -> int:
    try:
        with open("/proc/loadavg", "rb", buffering=0) as file:
            return int(file.read(128).split()[3].partition(b"/")[2])
    except (OSError, ValueError, IndexError):
        return 0


def _next_signal(seconds: float | None) -> int | None:
    if seconds is None:
        return signal.sigwait(_WATCHED)
    if hasattr(signal, "sigtimedwait"):
        found = signal.sigtimedwait(_WATCHED, max(0.0, seconds))
        return found.si_signo if found else None
    time.sleep(seconds)
    return next(iter(signal.sigpending() & {STOP, END}), None)


def _has_ended(child: int) -> bool:
    try:
        return os.waitpid(child, os.WNOHANG)[0] != 0
    except ChildProcessError:
        return True


def _stopped_gently(child: int) -> int | None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(child, signal.SIGTERM)
    deadline = time.monotonic() + GRACE_SECONDS
    while time.monotonic() < deadline:
        code = exit_code_of(child)
        if code is not None:
            return code
        time.sleep(0.01)
    return None


def _end_for_certain(first: int, report: int) -> None:
    _signal(first, signal.SIGKILL)
    deadline = time.monotonic() + _PATIENCE_SECONDS
    is_told = False
    while not _has_ended(first):
        _next_signal(_LOOK_SECONDS)
        if not is_told and time.monotonic() > deadline:
            os.write(report, NotEnded().as_bytes())
            is_told = True


def _signal(process: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.kill(process, number)


def _stand_first_in_line() -> None:  # pragma: no cover - as above
    with suppress(OSError):
        place = os.open("/proc/self/oom_score_adj", os.O_WRONLY)
        os.write(place, _SOONER_KILLED)
        os.close(place)
