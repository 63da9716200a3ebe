"""The helper that opens what its owner has closed to himself: one process, and how it is asked."""

import errno
import marshal
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Sequence
from itertools import count

from cleveragents.infrastructure.files import closed_process
from cleveragents.infrastructure.files.closed_process import MOST, Answer, Question


class _Helper:
    """Ends with the last end of its channel, and so with us."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._numbers = count()
        self._channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            # -I and -S: nothing of the user's is loaded, and it starts in half the time. In a
            # session of its own, since an interruption is for us to handle.
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", closed_process.__file__],
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd="/",
                start_new_session=True,
            )

    def is_ready(self) -> bool:
        """False where the machine allows no such process."""
        if self._channel.recv(MOST):
            return True
        self._process.wait()
        return False

    def ask(
        self, what: str, name: bytes, flags: int, passed: Sequence[int]
    ) -> tuple[int, list[int]]:
        """Raises _EndedError, or the helper's OSError."""
        with self._lock:
            number = next(self._numbers)
            question: Question = (number, what, name, flags)
            try:
                socket.send_fds(self._channel, [marshal.dumps(question)], passed)
                result, fds = self._answer(number)
            except OSError as error:
                raise _EndedError from error
        if result < 0:
            raise OSError(-result, os.strerror(-result))
        return result, fds

    def _answer(self, number: int) -> tuple[int, list[int]]:
        """Of whoever was interrupted while he waited, the answer may still be there."""
        while True:
            told, fds, _, _ = socket.recv_fds(self._channel, MOST, 1)
            if not told:
                raise OSError(errno.EPIPE, os.strerror(errno.EPIPE))
            answer: Answer = marshal.loads(told)
            if answer[0] == number:
                return answer[1], fds
            for fd in fds:
                os.close(fd)


class _Helpers:
    """One for each process that needs one: a fork must not talk on the channel of its parent."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pid = 0
        self._helper: _Helper | None = None

    def ask(
        self, what: str, name: bytes, flags: int, passed: Sequence[int]
    ) -> tuple[int, list[int]]:
        for _ in range(2):
            helper = self._mine()
            if helper is None:
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
            try:
                return helper.ask(what, name, flags, passed)
            except _EndedError:
                self._pid = 0  # somebody killed it; another one is soon made
        raise PermissionError(errno.EACCES, "the helper that opens closed files was killed")

    def _mine(self) -> _Helper | None:
        with self._lock:
            if self._pid != os.getpid():
                self._helper = _started()
                self._pid = os.getpid()
            return self._helper


class _EndedError(Exception):
    """The helper does not answer any more."""


def _started() -> _Helper | None:
    try:
        helper = _Helper()
        return helper if helper.is_ready() else None
    except OSError:
        return None


HELPERS = _Helpers()
