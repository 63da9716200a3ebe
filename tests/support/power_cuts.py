"""Cuts the power at a moment of a piece of work, as far as that can be done without a disk of one's
own: a process is killed there, and what it had not synced by then is lost.

    syncs = Syncs(top, log)
    killed(syncs.noted(work), point)     # as in `kill_points`
    syncs.lose()                         # files that were not synced are there, and empty

That is what ext4 and xfs leave of a new file whose name is on the disk and whose bytes are not.
Which renames and deletions would be lost too, only a disk that is written down can show; `nox -s
power` has one. What SQLite writes it syncs by itself, and so is never lost here. Of git it is
believed that it syncs objects and references, where it is told to.
"""

import ctypes
import json
import os
import stat
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from cleveragents.infrastructure.files import filesystems
from cleveragents.infrastructure.sandbox.git import command as git

_SQLITE = (".db", ".db-wal", ".db-shm", ".db-journal")
_OF_GIT = ("objects", "refs")
_File = tuple[int, int]
"""Its number, and a sum over its bytes: times may change afterwards."""


class Syncs:
    """What of the files below `top` is on the disk; `log` is a file elsewhere."""

    def __init__(self, top: Path, log: Path) -> None:
        self._top = top
        self._log = log

    def noted(self, work: Callable[[], object]) -> Callable[[], object]:
        """The same work, to be done in a child: all that is there now is on the disk."""

        def noting() -> object:
            self._log.unlink(missing_ok=True)
            self._install()
            self._note(self._files())
            return work()

        return noting

    def lose(self) -> list[str]:
        """Empty each file that was not synced as it is now; gives their names."""
        lines = self._log.read_text().splitlines()
        synced = {tuple(file) for line in lines for file in json.loads(line)}
        lost: list[str] = []
        for path in _regular(self._top):
            if _known(path) not in synced and not _git_has_synced(path):
                path.chmod(0o600)
                os.truncate(path, 0)
                lost.append(str(path.relative_to(self._top)))
        return lost

    def _install(self) -> None:
        real_fsync = os.fsync
        libc = filesystems._libc()  # the library call itself is what counts
        real_syncfs = ctypes.CDLL(None, use_errno=True).syncfs

        def fsync(fd: int) -> None:
            real_fsync(fd)
            if stat.S_ISREG(os.fstat(fd).st_mode):
                self._note([_known(Path(f"/proc/self/fd/{fd}"))])

        def syncfs(fd: int) -> int:
            result = real_syncfs(fd)
            self._note(self._files())
            return result

        os.fsync = fsync
        setattr(libc, "syncfs", syncfs)  # noqa: B010 - it has no such name until it is asked

    def _files(self) -> Iterator[_File]:
        return map(_known, _regular(self._top))

    def _note(self, files: Any) -> None:
        with self._log.open("a") as log:
            log.write(json.dumps(list(files)) + "\n")


def _known(path: Path) -> _File:
    return path.stat().st_ino, zlib.crc32(path.read_bytes())


def _git_has_synced(path: Path) -> bool:
    """Objects and references of the user's repository; those of a sandbox are not synced."""
    told = any("fsync=" in option and "loose-object" in option for option in git._OPTIONS)
    return told and "sandboxes" not in path.parts and any(n in path.parts for n in _OF_GIT)


def _regular(top: Path) -> Iterator[Path]:
    for folder, _, names in os.walk(top):
        for name in names:
            path = Path(folder, name)
            if stat.S_ISREG(path.lstat().st_mode) and not name.endswith(_SQLITE):
                yield path
