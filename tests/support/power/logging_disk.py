"""A disk that writes down what reaches it, in order: writes, zeroing, flushes, and marks of ours.

    python -m tests.support.power.logging_disk FUSE_FD MARKS_FD SIZE LOG [IMAGE]

It is a FUSE file system whose root is one file, so the kernel's protocol is small enough to be
spoken here, and nothing has to be compiled or installed. A loop device lies on that file; file
systems lie on the loop device. One thread serves all: the log has one order, that of the disk.
"""

import contextlib
import ctypes
import errno
import mmap
import os
import select
import socket
import stat
import struct
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Self

# Requests of the kernel that a file which is there already can meet (linux/fuse.h).
_FORGET, _GETATTR, _SETATTR, _OPEN, _READ, _WRITE = 2, 3, 4, 14, 15, 16
_RELEASE, _FSYNC, _FLUSH, _INIT, _INTERRUPT, _DESTROY, _BATCH_FORGET = 18, 20, 25, 26, 36, 38, 42
_FALLOCATE = 43
_UNANSWERED = {_FORGET, _INTERRUPT, _BATCH_FORGET}
_REQUEST = struct.Struct("<IIQQIIII")
_ANSWER = struct.Struct("<IiQ")
_TRANSFER = struct.Struct("<QQIIQII")
_ZEROING = struct.Struct("<QQQII")
_BIG_WRITES, _MAX_PAGES, _DIRECT_IO = 1 << 5, 1 << 22, 1
_MOST = 1 << 20
_FALLOC_ZEROES = 0x02 | 0x10  # FALLOC_FL_PUNCH_HOLE, FALLOC_FL_ZERO_RANGE

DISK = "logging-disk"
WRITE, ZERO, FLUSH, MARK = b"WZFM"
ENTRY = struct.Struct("<B7xQQ")
"""What each entry of the log begins with: kind, length, offset. Writes and marks are followed by
their bytes."""


@dataclass(frozen=True, slots=True)
class _Server:
    """The kernel's requests on one side, marks on the other."""

    fuse: int
    marks: socket.socket
    disk: mmap.mmap
    log: BinaryIO

    def serve(self) -> None:
        poll = select.poll()
        poll.register(self.fuse, select.POLLIN)
        poll.register(self.marks, select.POLLIN)
        while True:
            ready = {fd for fd, _ in poll.poll()}
            # What has reached the disk comes before a mark that says something of it.
            if not self._requests():
                return
            if self.marks.fileno() in ready and not self._mark():
                return

    def _requests(self) -> bool:
        while True:
            try:
                request = os.read(self.fuse, _MOST + 4096)
            except BlockingIOError:
                return True
            except OSError as error:
                if error.errno == errno.ENODEV:
                    return False  # nobody has it mounted any more
                if error.errno in (errno.ENOENT, errno.EINTR):
                    continue  # given up by whoever had asked
                raise
            self._request(memoryview(request))

    def _request(self, request: memoryview) -> None:
        _, kind, unique, *_ = _REQUEST.unpack_from(request)
        if kind in _UNANSWERED:
            return
        try:
            error, answer = 0, self._answer(kind, request[_REQUEST.size :])
        except OSError as refused:
            error, answer = -(refused.errno or errno.EIO), b""
        head = _ANSWER.pack(_ANSWER.size + len(answer), error, unique)
        with contextlib.suppress(FileNotFoundError):  # interrupted meanwhile
            os.writev(self.fuse, [head, answer])

    def _answer(self, kind: int, asked: memoryview) -> bytes | memoryview:
        works = {
            _INIT: self._welcome,
            _GETATTR: self._attributes,
            _SETATTR: self._attributes,
            _READ: self._read,
            _WRITE: self._write,
            _FSYNC: self._flush,
            _FALLOCATE: self._zero,
        }
        if kind in works:
            return works[kind](asked)
        if kind == _OPEN:
            return struct.pack("<QII", 1, _DIRECT_IO, 0)
        if kind in (_RELEASE, _FLUSH, _DESTROY):
            return b""
        raise OSError(errno.ENOSYS, "not needed by a loop device")

    def _read(self, asked: memoryview) -> memoryview:
        _, offset, length, *_ = _TRANSFER.unpack_from(asked)
        return memoryview(self.disk)[offset : offset + length]

    def _flush(self, _: memoryview) -> bytes:
        self._put(FLUSH, 0, 0)
        return b""

    def _welcome(self, asked: memoryview) -> bytes:
        major, minor, ahead, _ = struct.unpack_from("<IIII", asked)
        flags = _BIG_WRITES | _MAX_PAGES
        pages = _MOST // mmap.PAGESIZE
        limits = struct.pack("<HHIIHH", 16, 12, _MOST, 1, pages, 0)
        return struct.pack("<IIII", major, min(minor, 31), ahead, flags) + limits + bytes(32)

    def _attributes(self, _: memoryview) -> bytes:
        size, mode = len(self.disk), stat.S_IFREG | 0o600
        known = struct.pack("<6Q10I", 1, size, size // 512, *[0] * 6, mode, 1, *[0] * 3, 4096, 0)
        return struct.pack("<QII", 3600, 0, 0) + known

    def _write(self, asked: memoryview) -> bytes:
        _, offset, length, *_ = _TRANSFER.unpack_from(asked)
        data = asked[_TRANSFER.size : _TRANSFER.size + length]
        if offset + length > len(self.disk):
            raise OSError(errno.ENOSPC, "the disk is smaller")
        self.disk[offset : offset + length] = data
        self._put(WRITE, length, offset, data)
        return struct.pack("<II", length, 0)

    def _zero(self, asked: memoryview) -> bytes:
        _, offset, length, mode, _ = _ZEROING.unpack_from(asked)
        if not mode & _FALLOC_ZEROES:
            raise OSError(errno.EOPNOTSUPP, "room is never lacking")
        self.disk[offset : offset + length] = bytes(length)
        self._put(ZERO, length, offset)
        return b""

    def _mark(self) -> bool:
        text = self.marks.recv(65536)
        if text:
            self._put(MARK, len(text), 0, text)
            self.marks.send(b"!")
        return bool(text)

    def _put(self, kind: int, length: int, offset: int, data: bytes | memoryview = b"") -> None:
        self.log.write(ENTRY.pack(kind, length, offset))
        self.log.write(data)


class LoggingDisk:
    """One such disk, for as long as the context lasts; `place` is its file."""

    def __init__(self, place: Path, log: Path, size: int, image: Path | None = None) -> None:
        self.place = place
        self._log = log
        self._size = size
        self._image = image

    def __enter__(self) -> Self:
        self.place.touch()
        fuse = os.open("/dev/fuse", os.O_RDWR | os.O_NONBLOCK)
        self._marks, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        options = f"fd={fuse},rootmode=100600,user_id=0,group_id=0"
        mount(DISK, self.place, "fuse", options)
        more = [str(self._image)] if self._image else []
        with theirs:
            self._server = subprocess.Popen(
                [
                    *(sys.executable, "-m", "tests.support.power.logging_disk", str(fuse)),
                    *(str(theirs.fileno()), str(self._size), str(self._log), *more),
                ],
                pass_fds=(fuse, theirs.fileno()),
                cwd=Path(__file__).parents[3],
            )
        os.close(fuse)
        return self

    def mark(self, text: str) -> None:
        """Returns when it is in the log, behind all that had reached the disk."""
        self._marks.send(text.encode())
        assert self._marks.recv(1), "the disk has ended"

    def __exit__(self, *_: object) -> None:
        # Somebody else's view of the mounts may hold it longer; nobody writes to it any more.
        unmount(self.place)
        self._marks.close()
        assert self._server.wait(60) == 0, "the disk has failed"
        self.place.unlink()


def mount(source: str, place: Path, kind: str, options: str) -> None:
    """By the system call: `mount` would look for a helper of FUSE, which need not be there."""
    libc = ctypes.CDLL(None, use_errno=True)
    words = [os.fsencode(word) for word in (source, place, kind)]
    if libc.mount(*words, ctypes.c_ulong(0), options.encode()):
        code = ctypes.get_errno()
        raise OSError(code, f"mount of {kind}: {os.strerror(code)}", str(place))


def unmount(place: Path) -> None:
    """A loop device or a process may take a moment to let go of it."""
    deadline = time.monotonic() + 300
    while (done := subprocess.run(["umount", place], capture_output=True, text=True)).returncode:
        assert time.monotonic() < deadline, done.stderr
        time.sleep(0.05)


def main(argv: list[str]) -> int:
    fuse, marks, size = (int(word) for word in argv[:3])
    disk = mmap.mmap(-1, size)
    if argv[4:]:
        _load(disk, argv[4])
    with Path(argv[3]).open("wb") as log, socket.socket(fileno=marks) as heard:
        _Server(fuse, heard, disk, log).serve()
    return 0


def _load(disk: mmap.mmap, image: str) -> None:
    """Only what is there: most of an image is a hole."""
    with Path(image).open("rb") as file:
        for first, last in data_of(file.fileno()):
            disk[first:last] = os.pread(file.fileno(), last - first, first)


def data_of(fd: int) -> list[tuple[int, int]]:
    """The parts of a sparse file that are no holes."""
    parts: list[tuple[int, int]] = []
    last = 0
    while True:
        try:
            first = os.lseek(fd, last, os.SEEK_DATA)
        except OSError as error:
            if error.errno == errno.ENXIO:
                return parts
            raise
        last = os.lseek(fd, first, os.SEEK_HOLE)
        parts.append((first, last))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
