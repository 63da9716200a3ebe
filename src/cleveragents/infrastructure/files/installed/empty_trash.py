"""Deleting what was thrown away; also a program of its own: `python empty_trash.py FOLDER`.

What: everything in the trash goes, and nothing outside of it is touched: no link is followed.
In which order: a folder gives its files up, and its folders move to the top of the trash, where
their turn comes; then it is empty and goes.
Why: so no tree is too deep, and a kill anywhere leaves what the next one finds. A lock keeps two
from doing the same.
What is not guaranteed: that everything goes. What the system refuses to delete stays, and is tried
again by the next command; `agents doctor` names it.
It needs nothing of this package, so that it starts quickly.
"""

import fcntl
import os
import stat
import sys
import time

LOCK = ".lock"
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_LOWEST = 19


def empty(trash: str, seconds: float | None = None, *, wait: bool = False) -> bool:
    """Whether nothing is left, or somebody else is at it; after so many seconds it gives up."""
    until = None if seconds is None else time.monotonic() + seconds
    try:
        root = os.open(trash, _FOLDER)
    except FileNotFoundError:
        return True
    try:
        lock = os.open(LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600, dir_fd=root)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
            return _Emptying(root, until).run()
        except BlockingIOError:
            return True
        finally:
            os.close(lock)
    finally:
        os.close(root)


class _Emptying:
    def __init__(self, root: int, until: float | None) -> None:
        self._root = root
        self._until = until
        self._moved = 0
        self._stays: set[str] = set()

    def run(self) -> bool:
        while names := [n for n in os.listdir(self._root) if n != LOCK and n not in self._stays]:
            for name in names:
                if self._is_late():
                    return False
                try:
                    self._remove(name)
                except FileNotFoundError:
                    continue
                except OSError:
                    self._stays.add(name)
        return True

    def _is_late(self) -> bool:
        return self._until is not None and time.monotonic() > self._until

    def _remove(self, name: str) -> None:
        found = os.lstat(name, dir_fd=self._root)
        if not stat.S_ISDIR(found.st_mode):
            os.unlink(name, dir_fd=self._root)
            return
        # A tool may have left folders read-only, which would keep their files from going.
        os.chmod(name, 0o700, dir_fd=self._root)
        folder = os.open(name, _FOLDER, dir_fd=self._root)
        try:
            self._clear(folder)
        finally:
            os.close(folder)
        if not self._is_late():
            os.rmdir(name, dir_fd=self._root)

    def _clear(self, folder: int) -> None:
        with os.scandir(folder) as found:
            entries = list(found)
        for entry in entries:
            if self._is_late():
                return
            if entry.is_dir(follow_symlinks=False):
                self._move_up(folder, entry.name)
            else:
                os.unlink(entry.name, dir_fd=folder)

    def _move_up(self, folder: int, name: str) -> None:
        self._moved += 1
        place = f"{os.getpid()}-{time.monotonic_ns()}-{self._moved}"
        os.chmod(name, 0o700, dir_fd=folder)
        try:
            os.rename(name, place, src_dir_fd=folder, dst_dir_fd=self._root)
        except OSError:
            # Another file system, or another volume of this one.
            import shutil  # noqa: PLC0415 - slow to load, and hardly ever needed

            shutil.rmtree(name, dir_fd=folder)


if __name__ == "__main__":
    os.nice(_LOWEST)
    empty(sys.argv[1])
