"""Owns the process that stands between us and a command, and sees to it that nothing outlives it.

Whatever loses its parent below the keeper becomes the keeper's child, however often it forked and
whatever it did to its environment, group or session. If we die, the keeper is told, and
ends it all. The keeper is a copy of us that does nothing but wait: it runs between fork and exec.
"""

import gc
import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from cleveragents.infrastructure.confinement.syscalls import (
    IS_LINUX,
    PR_SET_CHILD_SUBREAPER,
    PR_SET_PDEATHSIG,
    prctl,
)
from cleveragents.infrastructure.processes.process_tree import (
    descendants,
    end_descendants,
)

GRACE_SECONDS = 2.0
STOP = signal.SIGTERM
END = signal.SIGHUP  # at once, without a word to anybody; also if we have died
_WATCHED = frozenset((signal.SIGCHLD, STOP, END))
_LOOK_SECONDS = 0.02
_FIRST_OF_ALL = -20
# If memory runs out, the command is to go before us.
_SOONER_KILLED = b"500"


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """How it ended. `code` is negative for a signal; `left` were still running and were ended."""

    code: int
    left: int = 0
    too_many: bool = False

    def as_bytes(self) -> bytes:
        return f"{self.code} {self.left} {int(self.too_many)}".encode()


def read_report(data: bytes) -> Report | str | None:
    """A text is why it could not be held inside; None: the keeper was killed."""
    text = data.decode("utf-8", "replace")
    if text.startswith("!"):
        return text[1:]
    words = text.split()
    if len(words) != 3:
        return None
    return Report(code=int(words[0]), left=int(words[1]), too_many=words[2] == "1")


@dataclass(frozen=True, slots=True, kw_only=True)
class Keeper:
    """`report` is where it writes how the command ended; `enter` is what the command goes through
    before it becomes its program."""

    report: int
    most_processes: int
    enter: Callable[[], None]

    def begin(self) -> None:  # pragma: no cover - in a new process that no tool looks into
        """Returns in the process that is to become the program; the keeper never does."""
        parent = os.getppid()
        if IS_LINUX:
            prctl(PR_SET_PDEATHSIG, END)
            prctl(PR_SET_CHILD_SUBREAPER, 1)
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        child = os.fork()
        if child == 0:
            self._become()
            return
        try:
            with suppress(PermissionError):  # root has no other limit to its processes
                os.setpriority(os.PRIO_PROCESS, 0, _FIRST_OF_ALL)
            gc.disable()  # nothing of the process that this is a copy of may be torn down here
            close_all_but(self.report)
            if os.getppid() != parent:
                os.kill(os.getpid(), END)
            os.write(self.report, watch(child, self.most_processes).as_bytes())
        finally:
            os._exit(0)

    def _become(self) -> None:  # pragma: no cover - as above
        os.setsid()
        if IS_LINUX:
            prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            _stand_first_in_line()
        try:
            self.enter()
        except OSError as error:
            os.write(self.report, f"!{error.strerror}".encode())
            raise
        signal.pthread_sigmask(signal.SIG_SETMASK, ())


def close_all_but(kept: int) -> None:
    """Locks and pipes of the original must not live as long as the copy."""
    os.closerange(0, kept)
    os.closerange(kept + 1, os.sysconf("SC_OPEN_MAX"))


def watch(child: int, most_processes: int) -> Report:
    """Wait for the child to end, or to be ended. SIGCHLD, SIGTERM and SIGHUP are blocked."""
    crowd = _Crowd(most_processes)
    code, too_many = None, False
    while code is None and not too_many:
        told = _next_signal()
        code = _reap(child)
        if code is None and told == STOP:
            code = _stopped_gently(child)
        if told in (STOP, END):
            break
        too_many = code is None and crowd.is_too_large()
    left = end_descendants()
    return Report(code=-signal.SIGKILL if code is None else code, left=left, too_many=too_many)


class _Crowd:
    """Whether there are too many processes; they are counted only once the machine has more."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._at_first = _threads_of_machine()

    def is_too_large(self) -> bool:
        if _threads_of_machine() - self._at_first < self._most // 2:
            return False
        return len(descendants(os.getpid())) > self._most


def _threads_of_machine() -> int:
    try:
        with open("/proc/loadavg", "rb", buffering=0) as file:
            return int(file.read(128).split()[3].partition(b"/")[2])
    except (OSError, ValueError, IndexError):
        return 0


def _next_signal() -> int | None:
    if hasattr(signal, "sigtimedwait"):
        found = signal.sigtimedwait(_WATCHED, _LOOK_SECONDS)
        return found.si_signo if found else None
    time.sleep(_LOOK_SECONDS)
    return next(iter(signal.sigpending() & {STOP, END}), None)


def _reap(child: int) -> int | None:
    """Take note of every child that has ended; the exit code of `child` if it is among them."""
    code: int | None = None
    while True:
        try:
            process, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return code
        if process == 0:
            return code
        if process == child:
            code = os.waitstatus_to_exitcode(status)


def _stopped_gently(child: int) -> int | None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(child, signal.SIGTERM)
    deadline = time.monotonic() + GRACE_SECONDS
    while time.monotonic() < deadline:
        code = _reap(child)
        if code is not None:
            return code
        time.sleep(0.01)
    return None


def _stand_first_in_line() -> None:  # pragma: no cover - as above
    with suppress(OSError):
        place = os.open("/proc/self/oom_score_adj", os.O_WRONLY)
        os.write(place, _SOONER_KILLED)
        os.close(place)
