"""The process that opens closed files for us, by itself: what it opens, and what it refuses."""

import errno
import marshal
import os
import socket
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path

import pytest

from cleveragents.infrastructure.files.closed_process import MOST, Question

# As a module and with the test's own settings, by which it is measured; by its path it has none.
PROGRAM = "from cleveragents.infrastructure.files.closed_process import _help; _help()"
FOLDER = os.O_RDONLY | os.O_DIRECTORY
IN_MODIFY = 2


class Helper:
    def __init__(self) -> None:
        self.channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            argv = [sys.executable, "-c", PROGRAM]
            self.process = subprocess.Popen(argv, stdin=theirs.fileno())

    def ask(self, question: Question, *passed: int) -> tuple[int, list[int]]:
        socket.send_fds(self.channel, [marshal.dumps(question)], passed)
        told, fds, _, _ = socket.recv_fds(self.channel, MOST, 1)
        number, result = marshal.loads(told)
        assert number == question[0]
        return result, list(fds)


@pytest.fixture(scope="module")
def helper() -> Generator[Helper]:
    made = Helper()
    if not made.channel.recv(MOST):
        pytest.skip("this machine gives nobody a user namespace")
    yield made
    made.channel.close()
    assert made.process.wait(60) == 0


@pytest.fixture
def folder(tmp_path: Path) -> Generator[int]:
    (tmp_path / "closed").write_text("inside")
    (tmp_path / "closed").chmod(0)
    (tmp_path / "link").symlink_to("closed")
    opened = os.open(tmp_path, FOLDER)
    yield opened
    os.close(opened)


def test_it_opens_what_its_owner_has_closed(helper: Helper, folder: int) -> None:
    result, (fd,) = helper.ask((1, "open", b"closed", os.O_RDONLY), folder)

    with os.fdopen(fd) as file:
        assert (result, file.read()) == (0, "inside")


@pytest.mark.parametrize(
    ("name", "code"), [(b"link", errno.ELOOP), (b"nothing", errno.ENOENT)], ids=["link", "nothing"]
)
def test_what_cannot_be_opened_is_told_by_its_number(
    helper: Helper, folder: int, name: bytes, code: int
) -> None:
    assert helper.ask((2, "open", name, os.O_RDONLY), folder) == (-code, [])


def test_it_watches_for_us(helper: Helper, folder: int, tmp_path: Path) -> None:
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    queue = libc.inotify_init1(os.O_CLOEXEC | os.O_NONBLOCK)
    seen = os.open(tmp_path / "open", os.O_WRONLY | os.O_CREAT)

    watch, _ = helper.ask((3, "watch", b"", IN_MODIFY), queue, seen)

    assert watch > 0
    os.write(seen, b"x")
    assert os.read(queue, 4096)
    os.close(seen)
    os.close(queue)


def test_what_cannot_be_watched_is_told_by_its_number(helper: Helper, folder: int) -> None:
    assert helper.ask((4, "watch", b"", IN_MODIFY), folder, folder) == (-errno.EINVAL, [])
