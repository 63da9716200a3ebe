"""What a fork server is told to start, and how that and the open files of it are sent."""

import pickle
import socket
import struct
from collections.abc import Sequence

from msgspec import Struct

from cleveragents.infrastructure.confinement.enclosure import Enclosure
from cleveragents.infrastructure.processes.program import Program

READY = b"+"
# How a new process says why it did not come to run anything; nothing said: it runs.
NO_FOLDER, NO_FILES, NOT_BEGUN = b"c", b"f", b"x"
PROCESS = struct.Struct("=i")
_HEAD = struct.Struct("=I")
# The kernel passes no more in one message.
MOST_FILES = 250
_FILES_OF_OURS = 7


class Order(Struct, frozen=True, kw_only=True):
    """One command to be started. Its `enclosure` has numbers of files as the sender knows them, and
    so has `program`, which finds those that are passed on under the same ones."""

    enclosure: Enclosure
    program: Program
    folder: str
    most_processes: int

    @property
    def number_of_files(self) -> int:
        return _FILES_OF_OURS + len(self.program.passed)


class OrderFiles(Struct, frozen=True, kw_only=True):
    """The open files that go with an order: the streams of the program; where its supervisor
    reports, and where it is said why there is none; where the first process is asked; the rules it
    is held by; and what the program gets beside its streams."""

    stdin: int
    stdout: int
    stderr: int
    report: int
    begun: int
    asked: int
    ruleset: int
    passed: tuple[int, ...] = ()

    def as_list(self) -> list[int]:
        streams = (self.stdin, self.stdout, self.stderr)
        return [*streams, self.report, self.begun, self.asked, self.ruleset, *self.passed]


def files_of(numbers: Sequence[int]) -> OrderFiles:
    stdin, stdout, stderr, report, begun, asked, ruleset, *passed = numbers
    return OrderFiles(
        stdin=stdin,
        stdout=stdout,
        stderr=stderr,
        report=report,
        begun=begun,
        asked=asked,
        ruleset=ruleset,
        passed=tuple(passed),
    )


def send(channel: socket.socket, order: Order, files: OrderFiles) -> None:
    """Raises OSError."""
    # Not as JSON: paths may hold bytes that are no text. Both ends are ours, and nobody else has
    # them.
    data = pickle.dumps(order, pickle.HIGHEST_PROTOCOL)
    socket.send_fds(channel, [_HEAD.pack(len(data))], files.as_list())
    channel.sendall(data)


def received(channel: socket.socket) -> tuple[Order, list[int]] | None:
    """None if there is nobody any more who would send one. Of the files those come for which there
    is room. Raises OSError."""
    head, numbers, _, _ = socket.recv_fds(channel, _HEAD.size, MOST_FILES)
    if len(head) < _HEAD.size:
        return None
    left: int = _HEAD.unpack(head)[0]
    data = bytearray()
    while len(data) < left:
        chunk = channel.recv(left - len(data))
        if not chunk:
            return None
        data += chunk
    return pickle.loads(data), list(numbers)
