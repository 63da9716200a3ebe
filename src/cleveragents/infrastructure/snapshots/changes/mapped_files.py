"""Asking the kernel which files one process can write to without anybody being told: those
that it has mapped for it, and those that it has open for writing and may map at any time."""

import ctypes
import errno
import fcntl
import os
import struct
from contextlib import suppress
from io import FileIO
from typing import NamedTuple

_ESCAPES = ((b"\\012", b"\n"), (b"\\134", b"\\"))
# PROCMAP_QUERY (Linux 6.11): the next mapping of one kind, while the text lists all of them.
_QUERY = struct.Struct("=9Q4I2Q")
_END, _INODE, _LENGTH = 4, 8, 11
_REQUEST = 3 << 30 | _QUERY.size << 16 | ord("f") << 8 | 17
_WRITABLE, _SHARED, _THIS_OR_NEXT, _OF_A_FILE = 0x02, 0x08, 0x10, 0x20
_WANTED = _WRITABLE | _SHARED | _THIS_OR_NEXT | _OF_A_FILE
_LONGEST = 4200
_OVER = (errno.ENOENT, errno.ESRCH)
_PROCESSES = "/proc"


class Written(NamedTuple):
    """A file by the name that was used for it, which may be one of several."""

    path: bytes
    inode: int


def mapped_by(process: str) -> set[Written]:
    """What it has mapped for writing, as far as we may know."""
    try:
        with open(f"{_PROCESSES}/{process}/maps", "rb", buffering=0) as maps:
            return _written_through(maps)
    except OSError:
        return set()  # over, or not ours to look at


def opened_by(process: str, prefix: bytes) -> set[Written]:
    """What it has open for writing, of the files whose real paths begin so."""
    folder = f"{_PROCESSES}/{process}/fd"
    try:
        numbers = os.listdir(folder)
    except OSError:
        return set()
    found: set[Written] = set()
    for number in numbers:
        with suppress(OSError):  # closed since then
            place = f"{folder}/{number}"
            path = os.fsencode(os.readlink(place))
            if path.startswith(prefix) and _is_for_writing(process, number):
                found.add(Written(path, os.stat(place).st_ino))
    return found


def _is_for_writing(process: str, number: str) -> bool:
    with open(f"{_PROCESSES}/{process}/fdinfo/{number}", "rb", buffering=0) as info:
        flags = next(line for line in info.read(4096).split(b"\n") if line.startswith(b"flags:"))
    return int(flags.split()[1], 8) & os.O_ACCMODE != os.O_RDONLY


def _written_through(maps: FileIO) -> set[Written]:
    """The files' real paths, from an open /proc/PID/maps. Raises OSError."""
    try:
        return _asked(maps)
    except OSError:
        # An older kernel, or a path longer than any other.
        return _read(maps)


def _asked(maps: FileIO) -> set[Written]:
    name = ctypes.create_string_buffer(_LONGEST)
    found: set[Written] = set()
    address = 0
    while True:
        query = bytearray(_query(address, ctypes.addressof(name)))
        try:
            fcntl.ioctl(maps, _REQUEST, query, True)  # noqa: FBT003 - the library's only way
        except OSError as error:
            if error.errno in _OVER:
                return found
            raise
        told = _QUERY.unpack(query)
        address = told[_END]
        found.add(Written(name.raw[: told[_LENGTH] - 1], told[_INODE]))


def _query(address: int, name: int) -> bytes:
    results = (0,) * 6
    return _QUERY.pack(_QUERY.size, _WANTED, address, *results, 0, 0, _LONGEST, 0, name, 0)


def _read(maps: FileIO) -> set[Written]:
    lines = [line for line in maps.read().split(b"\n") if b"s " in line]
    # Address, permissions, offset, device, inode, path.
    fields = (line.split(None, 5) for line in lines)
    return {
        Written(_unescaped(f[5]), int(f[4])) for f in fields if len(f) == 6 and f[1][1::2] == b"ws"
    }


def _unescaped(path: bytes) -> bytes:
    for escaped, plain in _ESCAPES:
        path = path.replace(escaped, plain)
    return path
