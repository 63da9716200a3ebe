"""Owns the question what this machine offers to hold commands inside."""

import os
import shutil
import subprocess
import tempfile
from functools import cache, cached_property
from typing import NoReturn

from cleveragents.domain.confinement import Abilities
from cleveragents.infrastructure.confinement import landlock, socket_filter
from cleveragents.infrastructure.confinement.read_only_view import ReadOnlyView

_PATIENCE_SECONDS = 5


class Machine:
    """Asked once; `path` is where programs are looked for."""

    def __init__(self, path: str) -> None:
        self._path = path

    @cached_property
    def landlock(self) -> int:
        return landlock.version()

    @cached_property
    def socket_filter(self) -> bool:
        return socket_filter.is_supported()

    @property
    def read_only_view(self) -> bool:
        return _is_view_possible()

    @cached_property
    def bubblewrap(self) -> str | None:
        """Its path, if it is there and works."""
        found = shutil.which("bwrap", path=self._path)
        if found is None or not _works([found, "--ro-bind", "/", "/", "/bin/sh", "-c", ":"]):
            return None
        return found

    def abilities(self, *, with_bubblewrap: bool) -> Abilities:
        return Abilities(
            landlock=self.landlock,
            socket_filter=self.socket_filter,
            read_only_view=self.read_only_view,
            bubblewrap=with_bubblewrap and self.bubblewrap is not None,
        )


@cache
def _is_view_possible() -> bool:
    """Tried, since a kernel that has it may still forbid it. Once per process: a fork copies all
    that the process holds."""
    with tempfile.TemporaryDirectory() as folder:
        child = os.fork()
        if child == 0:
            _try_view(folder)
        return os.waitpid(child, 0)[1] == 0


def _try_view(folder: str) -> NoReturn:  # pragma: no cover - in a process of its own
    code = 1
    try:
        ReadOnlyView(writable=[folder], folder=folder, most_processes=100).enter()
        os.close(os.open("here", os.O_CREAT | os.O_WRONLY))
        code = 0 if os.statvfs("/").f_flag & os.ST_RDONLY else 1
    finally:
        os._exit(code)


def _works(argv: list[str]) -> bool:
    try:
        done = subprocess.run(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={"PATH": os.defpath},
            timeout=_PATIENCE_SECONDS,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return False
    return done.returncode == 0
