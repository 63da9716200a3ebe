"""Our side of the fork server: started with the first command, it starts all that follow.

A command is started by forking, twice, and a fork of ours copies the tables of all the memory that
a plan of a hundred thousand files takes. The server is a Python of its own with little in it.
"""

import os
import select
import socket
import subprocess
import sys
import threading
import weakref
from contextlib import suppress
from pathlib import Path

import msgspec
from msgspec import Struct

from cleveragents.infrastructure.confinement.enclosure import Enclosure
from cleveragents.infrastructure.processes.forking.orders import (
    MOST_FILES,
    PROCESS,
    READY,
    Order,
    OrderFiles,
    send,
)
from cleveragents.infrastructure.processes.program import Program

_PACKAGES = (str(Path(__file__).parents[4]), str(Path(msgspec.__file__).parents[1]))
# Without site packages and the user's settings. What msgspec can do without is not looked for.
_PROGRAM = (
    "import sys; sys.path[:0] = sys.argv[2:]; sys.modules['typing_extensions'] = None; "
    "from cleveragents.infrastructure.processes.forking.server import main; main(int(sys.argv[1]))"
)
_ARGV = (sys.executable, "-I", "-S", "-X", "utf8", "-c", _PROGRAM)
# Some of the files that can be sent with an order are the command's own.
_MOST_PASSED = MOST_FILES - 10
# It starts in a twentieth of a second, or something is wrong with it.
_PATIENCE_SECONDS = 5.0


class Forked(Struct, frozen=True, kw_only=True):
    """A process that was started, and a descriptor of it, which the caller closes."""

    pid: int
    handle: int


class ServerLostError(Exception):
    """The server died while it was told to start something: that may run, though not for long."""


class ForkServer:
    """One for each process of ours that starts commands; for every thread of it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._server: _RunningServer | None = None

    def serves(self, enclosure: Enclosure, program: Program) -> bool:
        """Whether it starts such commands: those that get a process table of their own, and are
        held by rules. Others, which few machines need, are started by ourselves; and so is what
        cannot be started, which we are told best."""
        return (
            enclosure.is_apart
            and enclosure.ruleset is not None
            and not program.controls
            and len(program.passed) < _MOST_PASSED
            and not any("\0" in word for word in (*program.argv, *program.environ.values()))
            and sys.getfilesystemencoding() == "utf-8"
        )

    def begin(self) -> bool:
        """Have one started, if there is none; whether there was one already."""
        with self._lock:
            if self._server is not None and self._server.is_ours():
                return True
            self._server = _new_server()
            return False

    def fork(self, order: Order, files: OrderFiles) -> Forked | None:
        """None if there is no server that could; then nothing was started. In the place of one that
        is gone there is a new one then, but for one that could not even start. Raises
        ServerLostError, and OSError if it could not fork."""
        with self._lock:
            server = self._server
            if server is None or not server.is_ours() or not server.has_begun():
                return None
            if server.has_ended():
                self._server = _new_server()
                return None
            try:
                return server.fork(order, files)
            except ServerLostError:
                self._server = None
                server.close()  # and what it may have started with it
                raise

    def close(self) -> None:
        """It ends; a second call changes nothing."""
        with self._lock:
            server, self._server = self._server, None
        if server is not None:
            server.close()


def _new_server() -> "_RunningServer | None":
    """None where Python itself may not be started any more, by whom we have become since; then
    ourselves start everything."""
    try:
        return _RunningServer()
    except (FileNotFoundError, PermissionError):
        return None


class _RunningServer:
    def __init__(self) -> None:
        self._owner = os.getpid()
        self._channel, theirs = socket.socketpair()
        self._has_begun = False
        self._patience = _PATIENCE_SECONDS
        with theirs:
            # In a session of its own, since an interruption is for us to handle.
            process = subprocess.Popen(
                [*_ARGV, str(self._owner), *_PACKAGES],
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd="/",
                env={},
                start_new_session=True,
            )
        self.close = weakref.finalize(self, _end, self._channel, process, self._owner)

    def is_ours(self) -> bool:
        """Not of a process of which this one is a copy."""
        return self._owner == os.getpid()

    def has_begun(self) -> bool:
        """Waits until it has, or is known not to; but not for ever, and only once."""
        if not self._has_begun and self._has_spoken(self._patience):
            with suppress(OSError):
                self._has_begun = self._channel.recv(len(READY)) == READY
        self._patience = 0.0
        return self._has_begun

    def has_ended(self) -> bool:
        """It says nothing that was not asked for; so all there could be is the end."""
        return self._has_spoken(0)

    def _has_spoken(self, seconds: float) -> bool:
        said = select.poll()
        said.register(self._channel, select.POLLIN)
        return bool(said.poll(seconds * 1000))

    def fork(self, order: Order, files: OrderFiles) -> Forked:
        try:
            send(self._channel, order, files)
            data, handles, _, _ = socket.recv_fds(self._channel, PROCESS.size, 1)
        except OSError as error:
            raise ServerLostError from error
        if len(data) < PROCESS.size:
            raise ServerLostError
        process: int = PROCESS.unpack(data)[0]
        if process < 0:
            raise OSError(-process, os.strerror(-process))
        if not handles:  # we have too many files open for one more
            raise ServerLostError
        return Forked(pid=process, handle=handles[0])


def _end(channel: socket.socket, process: "subprocess.Popen[bytes]", owner: int) -> None:
    if owner != os.getpid():
        return
    channel.close()
    process.wait()
