"""How a process that is held inside starts the program that it is held inside for."""

import errno
import fcntl
import os
import signal
import termios
from collections.abc import Mapping, Sequence
from contextlib import suppress

from msgspec import Struct

from cleveragents.infrastructure.confinement.syscalls import CLOSE_RANGE, syscall

_CLOSE_ON_EXEC = 4
_NOT_THERE = (errno.ENOENT, errno.ENOTDIR)
_OUTPUT = 1
_FIRST_OF_OURS = 3
_LAST = (1 << 32) - 1


class Program(Struct, frozen=True, kw_only=True):
    """`passed` are the open files that it gets beside the usual three. With `controls`, its output
    is the terminal that controls it: whoever starts it leads the session, as a shell does."""

    argv: Sequence[str]
    environ: Mapping[str, str]
    passed: Sequence[int] = ()
    controls: bool = False

    def start(self) -> int:  # pragma: no cover - in a new process that no tool looks into
        """A child in a session of its own, that shares our memory until it is the program: a
        fork would copy all of it once more. With a terminal there is no way around that: it has
        to be in the foreground before it reads. Raises OSError."""
        syscall(CLOSE_RANGE, _FIRST_OF_OURS, _LAST, _CLOSE_ON_EXEC)
        for number in self.passed:
            os.set_inheritable(number, True)  # noqa: FBT003 - the library takes it so
        if self.controls:
            lead_session()
            return self._started_in_foreground()
        problem = FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        for place in self._places():
            try:
                return os.posix_spawn(
                    place, list(self.argv), dict(self.environ), setsid=True, setsigmask=()
                )
            except OSError as error:
                problem = error if problem.errno in _NOT_THERE else problem
        raise problem

    def _started_in_foreground(self) -> int:  # pragma: no cover - as above
        heard, told = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                come_to_foreground()
                signal.pthread_sigmask(signal.SIG_SETMASK, ())
                os.execvpe(self.argv[0], list(self.argv), dict(self.environ))
            except OSError as error:
                os.write(told, str(error.errno or 0).encode())
            finally:
                os._exit(127)
        os.close(told)
        problem = os.read(heard, 16)
        os.close(heard)
        if problem:
            os.waitpid(child, 0)
            raise OSError(int(problem), os.strerror(int(problem)))
        return child

    def _places(self) -> Sequence[str]:  # pragma: no cover - as above
        name = self.argv[0]
        if os.path.dirname(name):
            return [name]
        return [os.path.join(folder, name) for folder in os.get_exec_path(dict(self.environ))]


def lead_session() -> None:  # pragma: no cover - as above
    """Have the terminal that we print to as our own. Raises OSError."""
    with suppress(PermissionError):  # we lead one already
        os.setsid()
    fcntl.ioctl(_OUTPUT, termios.TIOCSCTTY, 0)


def come_to_foreground() -> None:  # pragma: no cover - as above
    """In a group of its own, whose leader's parent is in the same session: else nothing could stop
    it, Ctrl-Z included. The signals of terminals are blocked."""
    os.setpgid(0, 0)
    os.tcsetpgrp(_OUTPUT, os.getpgrp())
