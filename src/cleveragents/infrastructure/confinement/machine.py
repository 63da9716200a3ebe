"""Owns the question what this machine offers to hold commands inside."""

import os
import shutil
import subprocess
import tempfile
from functools import cached_property

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

    @cached_property
    def read_only_view(self) -> bool:
        """Tried, since a kernel that has it may still forbid it."""
        with tempfile.TemporaryDirectory() as folder:
            view = ReadOnlyView(writable=[folder], folder=folder, most_processes=100)
            return _works(["/bin/sh", "-c", ": > here && test ! -w /"], view)

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


def _works(argv: list[str], view: ReadOnlyView | None = None) -> bool:
    try:
        done = subprocess.run(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={"PATH": os.defpath},
            timeout=_PATIENCE_SECONDS,
            check=False,
            preexec_fn=view.enter if view else None,
        )
    except (OSError, subprocess.SubprocessError):
        return False
    return done.returncode == 0
