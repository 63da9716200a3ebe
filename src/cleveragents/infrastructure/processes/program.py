"""How a process that is held inside starts the program that it is held inside for."""

import errno
import os
from collections.abc import Mapping, Sequence

from msgspec import Struct

from cleveragents.infrastructure.confinement.syscalls import CLOSE_RANGE, syscall

_CLOSE_ON_EXEC = 4
_NOT_THERE = (errno.ENOENT, errno.ENOTDIR)
_FIRST_OF_OURS = 3
_LAST = (1 << 32) - 1


class Program(Struct, frozen=True, kw_only=True):
    """`passed` are the open files that it gets beside the usual three."""

    argv: Sequence[str]
    environ: Mapping[str, str]
    passed: Sequence[int] = ()

    def start(self) -> int:  # pragma: no cover - in a new process that no tool looks into
        """A child in a session of its own, that shares our memory until it is the program: a
        fork would copy all of it once more. Raises OSError."""
        syscall(CLOSE_RANGE, _FIRST_OF_OURS, _LAST, _CLOSE_ON_EXEC)
        for number in self.passed:
            os.set_inheritable(number, True)  # noqa: FBT003 - the library takes it so
        problem = FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        for place in self._places():
            try:
                return os.posix_spawn(
                    place, list(self.argv), dict(self.environ), setsid=True, setsigmask=()
                )
            except OSError as error:
                problem = error if problem.errno in _NOT_THERE else problem
        raise problem

    def _places(self) -> Sequence[str]:  # pragma: no cover - as above
        name = self.argv[0]
        if os.path.dirname(name):
            return [name]
        return [os.path.join(folder, name) for folder in os.get_exec_path(dict(self.environ))]
