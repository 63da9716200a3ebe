"""Owns asking git which files do not have the status that an index tells of."""

import os
import shutil
import subprocess
from importlib import resources
from types import TracebackType
from typing import Self

_SETTINGS = {
    "LC_ALL": "C",
    "GIT_WORK_TREE": ".",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_OPTIONAL_LOCKS": "0",
}


class CannotSiftError(Exception):
    """Too much changed, or git cannot be asked: look at everything."""


class GitComparison:
    """Some processes at once, over a repository that is empty and that nobody writes to: the one
    of the sandbox may hold settings that make git run a program."""

    def __init__(self, root: int) -> None:
        program = shutil.which("git")
        if program is None:
            raise CannotSiftError
        self._program = program
        self._root = f"/proc/self/fd/{root}"
        self._trouble, self._trouble_end = os.pipe()
        self._running: list[subprocess.Popen[bytes]] = []
        self._written: list[int] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for process in self._running:
            if process.poll() is None:
                process.kill()
                process.wait()
        for memory in self._written:
            os.close(memory)
        os.close(self._trouble)
        if self._trouble_end >= 0:
            os.close(self._trouble_end)

    def ask(self, index: bytes) -> None:
        """Begin to compare the files of an index."""
        written = os.memfd_create("changed")
        self._written.append(written)
        told = os.memfd_create("index")
        try:
            with open(told, "wb", closefd=False) as file:
                file.write(index)
            self._running.append(self._start(told, written))
        finally:
            os.close(told)

    def _start(self, index: int, written: int) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [self._program, "diff-files", "--name-only", "--no-renames", "-z"],
            cwd=self._root,
            env=_SETTINGS | {"GIT_DIR": _empty(), "GIT_INDEX_FILE": f"/proc/self/fd/{index}"},
            pass_fds=(index,),
            stdin=subprocess.DEVNULL,
            stdout=written,
            stderr=self._trouble_end,
        )

    def answers(self) -> list[bytes]:
        """The paths of all files that changed. Raises CannotSiftError if anything went wrong."""
        os.close(self._trouble_end)
        self._trouble_end = -1
        # Comes back when all of them have ended.
        if os.read(self._trouble, 1) or any(process.wait() for process in self._running):
            raise CannotSiftError
        return [path for memory in self._written for path in _read(memory).split(b"\0") if path]


def _empty() -> str:
    return str(resources.files(__package__ or "").joinpath("empty.git"))


def _read(memory: int) -> bytes:
    with open(memory, "rb", buffering=0, closefd=False) as written:
        written.seek(0)
        return written.readall()
