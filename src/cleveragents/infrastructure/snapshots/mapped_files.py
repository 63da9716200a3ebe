"""Owns asking the kernel which files one process has mapped to write through them."""

import ctypes
import errno
import fcntl
import struct
from io import FileIO

_ESCAPES = ((b"\\012", b"\n"), (b"\\134", b"\\"))
# PROCMAP_QUERY (Linux 6.11): the next mapping of one kind, while the text lists all of them.
_QUERY = struct.Struct("=9Q4I2Q")
_REQUEST = 3 << 30 | _QUERY.size << 16 | ord("f") << 8 | 17
_WRITABLE, _SHARED, _THIS_OR_NEXT, _OF_A_FILE = 0x02, 0x08, 0x10, 0x20
_WANTED = _WRITABLE | _SHARED | _THIS_OR_NEXT | _OF_A_FILE
_LONGEST = 4200
_OVER = (errno.ENOENT, errno.ESRCH)


def written_through(maps: FileIO) -> set[bytes]:
    """The files' real paths, from an open /proc/PID/maps. Raises OSError."""
    try:
        return _asked(maps)
    except OSError:
        # An older kernel, or a path longer than any other.
        return _read(maps)


def _asked(maps: FileIO) -> set[bytes]:
    name = ctypes.create_string_buffer(_LONGEST)
    found: set[bytes] = set()
    address = 0
    while True:
        query = bytearray(_query(address, ctypes.addressof(name)))
        try:
            fcntl.ioctl(maps, _REQUEST, query, True)  # noqa: FBT003 - the library's only way
        except OSError as error:
            if error.errno in _OVER:
                return found
            raise
        address, length = _QUERY.unpack(query)[4::7]
        found.add(name.raw[: length - 1])


def _query(address: int, name: int) -> bytes:
    results = (0,) * 6
    return _QUERY.pack(_QUERY.size, _WANTED, address, *results, 0, 0, _LONGEST, 0, name, 0)


def _read(maps: FileIO) -> set[bytes]:
    lines = [line for line in maps.read().split(b"\n") if b"s " in line]
    # Address, permissions, offset, device, inode, path.
    fields = (line.split(None, 5) for line in lines)
    return {_unescaped(f[5]) for f in fields if len(f) == 6 and f[1][1::2] == b"ws"}


def _unescaped(path: bytes) -> bytes:
    for escaped, plain in _ESCAPES:
        path = path.replace(escaped, plain)
    return path
