"""The trash of a data folder: what is to go is out of the way by one rename, and deleted later.

In which order: the record says that nobody needs it, it moves here, and the command that threw it
away deletes what it can in a moment. What is left then is deleted by a program that nobody waits
for, which the next command starts again if it was killed (ADR 0088).
"""

import os
import sys
import time
from collections.abc import Sequence

from cleveragents.infrastructure.files.installed import empty_trash
from cleveragents.infrastructure.files.installed.disk_usage import bytes_below

NAME = "trash"
_MOMENT = 0.03
# By then even a slow disk has deleted it, unless it cannot be.
_LATE_NS = 600 * 10**9


class Trash:
    def __init__(self, data_dir: str) -> None:
        self.path = os.path.join(data_dir, NAME)

    def take(self, path: str) -> bool:
        """Whether what is at `path` is here now; False if it is on another file system."""
        os.makedirs(self.path, mode=0o700, exist_ok=True)
        place = f"{os.getpid()}-{time.monotonic_ns()}-{os.path.basename(path)}"
        is_folder = os.path.isdir(path) and not os.path.islink(path)
        try:
            if is_folder:
                os.chmod(path, 0o700)  # one that is closed to us cannot be moved
            os.rename(path, os.path.join(self.path, place))
        except OSError:
            return False
        return True

    def empty(self) -> None:
        """Begin with it, and leave what takes longer than a moment to another process."""
        if self._names() and not empty_trash.empty(self.path, _MOMENT):
            _start_helper(self.path)

    def empty_now(self) -> None:
        """All of it, also if somebody else has begun."""
        empty_trash.empty(self.path, wait=True)

    def size(self) -> int:
        return bytes_below(self.path) if self._names() else 0

    def stuck(self) -> Sequence[str]:
        """What should have gone long ago."""
        oldest = time.time_ns() - _LATE_NS
        places = [os.path.join(self.path, name) for name in self._names()]
        return [place for place in places if _moved_at(place) < oldest]

    def _names(self) -> Sequence[str]:
        try:
            return [name for name in os.listdir(self.path) if name != empty_trash.LOCK]
        except OSError:
            return ()


def _moved_at(path: str) -> int:
    try:
        return os.lstat(path).st_ctime_ns
    except OSError:
        return time.time_ns()


def _start_helper(path: str) -> None:
    """One that outlives us, has nothing of ours open, and ends when all is gone."""
    program = (sys.executable, "-I", "-S", empty_trash.__file__, path)
    null = [(os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_RDWR, 0) for fd in range(3)]
    os.posix_spawn(program[0], program, {}, file_actions=null, setsid=True)
