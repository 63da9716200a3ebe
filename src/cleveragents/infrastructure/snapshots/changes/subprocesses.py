"""Programs that look at a tree for us: several at once, each writing its answer to memory.

Nobody has to wake up while they write. One that fails, or says anything beside its answer, is not
believed, and then none of them is.
"""

import os
import subprocess
from collections.abc import Mapping, Sequence
from typing import Self


class CommandFailedError(Exception):
    """A program failed or complained."""


class ParallelCommands:
    """All in one folder, which is named by descriptor: whatever its path leads to by now, this is
    the one meant."""

    def __init__(self, folder: int) -> None:
        self._folder = f"/proc/self/fd/{folder}"
        self._trouble, self._trouble_end = os.pipe()
        self._running: list[subprocess.Popen[bytes]] = []
        self._written: list[int] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._running:
            if process.poll() is None:
                process.kill()
                process.wait()
        for memory in self._written:
            os.close(memory)
        os.close(self._trouble)
        if self._trouble_end >= 0:
            os.close(self._trouble_end)

    def start(
        self, argv: Sequence[str | bytes], env: Mapping[str, str], passed: Sequence[int] = ()
    ) -> None:
        """`passed` are descriptors that the program uses. Raises OSError."""
        memory = os.memfd_create("answer")
        self._written.append(memory)
        process = subprocess.Popen(
            argv,
            cwd=self._folder,
            env={"LC_ALL": "C", **env},
            pass_fds=passed,
            stdin=subprocess.DEVNULL,
            stdout=memory,
            stderr=self._trouble_end,
        )
        self._running.append(process)

    def answers(self) -> list[bytes]:
        """In the order in which they were started. Raises CommandFailedError."""
        os.close(self._trouble_end)
        self._trouble_end = -1
        # Comes back when all of them have ended.
        if os.read(self._trouble, 1) or any(process.wait() for process in self._running):
            raise CommandFailedError
        return [_read(memory) for memory in self._written]


def _read(memory: int) -> bytes:
    with open(memory, "rb", buffering=0, closefd=False) as written:
        written.seek(0)
        return written.readall()
