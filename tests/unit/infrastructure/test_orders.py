"""What a fork server is told, how it is sent with its open files, and what is reported back."""

import errno
import os
import socket
from collections.abc import Generator
from pathlib import Path

import pytest

from cleveragents.infrastructure.confinement.enclosure import Enclosure
from cleveragents.infrastructure.processes.forking import server
from cleveragents.infrastructure.processes.forking.orders import (
    PROCESS,
    Order,
    OrderFiles,
    files_of,
    received,
    send,
)
from cleveragents.infrastructure.processes.program import Program
from cleveragents.infrastructure.processes.reports import (
    NotEnded,
    NotHeld,
    NotRun,
    Report,
    Said,
    not_inside,
    read_report,
)

Channel = tuple[socket.socket, socket.socket]
NAME = os.fsdecode(b"/no/text/\xff")


@pytest.fixture
def channel() -> Generator[Channel]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield ours, theirs


@pytest.fixture
def null() -> Generator[int]:
    number = os.open(os.devnull, os.O_RDWR)
    yield number
    os.close(number)


def _order(*passed: int) -> Order:
    return Order(
        enclosure=Enclosure(argv=["true"], environ={"A": NAME}),
        program=Program(argv=["true", NAME], environ={"A": NAME}, passed=passed),
        folder=NAME,
        most_processes=7,
    )


def _files(number: int, *passed: int) -> OrderFiles:
    return files_of([number] * 7 + list(passed))


def test_an_order_arrives_as_it_was_sent_with_its_files(channel: Channel, null: int) -> None:
    ours, theirs = channel
    reading, writing = os.pipe()
    order, files = _order(writing), _files(null, writing)
    assert files.passed == (writing,)

    send(ours, order, files)
    os.close(writing)
    told = received(theirs)

    assert told is not None
    assert told[0] == order
    assert len(told[1]) == order.number_of_files == 8
    os.write(files_of(told[1]).passed[0], b"through")
    for number in told[1]:
        os.close(number)
    assert os.read(reading, 64) == b"through"
    assert os.read(reading, 64) == b""  # nobody has the other end any more
    os.close(reading)


@pytest.mark.parametrize("begun", [b"", b"\x09\0\0\0half"])
def test_who_ends_in_the_middle_of_an_order_sends_none(channel: Channel, begun: bytes) -> None:
    ours, theirs = channel
    ours.sendall(begun)
    ours.close()
    assert received(theirs) is None


def test_a_server_that_nobody_asks_any_more_ends(channel: Channel) -> None:
    ours, theirs = channel
    ours.close()
    assert server._serve(theirs) is False  # the rest of it is a process


def test_an_order_without_all_its_files_starts_nothing(channel: Channel, null: int) -> None:
    ours, theirs = channel
    send(ours, _order(null), _files(null))  # one is missing
    before = len(list(Path("/proc/self/fd").iterdir()))
    assert server._serve(theirs) is True  # as above
    assert PROCESS.unpack(ours.recv(64)) == (-errno.EMFILE,)
    assert len(list(Path("/proc/self/fd").iterdir())) == before


# --- what is reported ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "said",
    [
        Report(code=-9, left=2, too_many=True),
        Report(code=3),
        NotHeld(reason="no room inside"),
        NotRun(errno=errno.ENOENT),
        NotEnded(),
    ],
)
def test_what_is_reported_is_read_and_what_follows_is_not(said: Said) -> None:
    assert read_report(said.as_bytes() + b"0 0 0\n") == said
    assert read_report(said.as_bytes()[:-1]) is None  # killed while it told


def test_what_there_is_no_more_of_is_no_fault_of_the_means() -> None:
    full = OSError(errno.EMFILE, os.strerror(errno.EMFILE))
    assert not_inside(full) == NotRun(errno=errno.EMFILE)
    assert NotRun(errno=errno.EMFILE).reason == "Too many open files"
    forbidden = OSError(errno.EPERM, os.strerror(errno.EPERM))
    assert not_inside(forbidden) == NotHeld(reason="Operation not permitted")
    assert not_inside(OSError("in words")) == NotHeld(reason="in words")
