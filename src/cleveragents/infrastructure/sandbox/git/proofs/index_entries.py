"""What a git index says of each path, with the status of its file, read without git.

For who wants to know which files git has proven to hold which blob (ADR 0108). Versions 2 to 4;
an index that is split, sparse or not whole gives nothing, and is a question for git.
Its listing, for one that was just made: `new_index_reader.py`.
"""

import hashlib
import struct

from cleveragents.infrastructure.snapshots.tree.first_look import Proof

_HEADER = struct.Struct(">4sII")
_EXTENSION = struct.Struct(">4sI")
ALGORITHMS = {20: "sha1", 32: "sha256"}
_NAME_LENGTH = 0x0FFF
_EXTENDED = 0x4000
# One of several in a merge, or one that the user says to be unchanged.
_DOUBTED = 0x3000 | 0x8000
# Of further flags: not checked out, or to be added later.
_ABSENT = 0x4000 | 0x2000


def entries_of(data: bytes, oid_bytes: int) -> dict[bytes, Proof] | None:
    """Those that say what is in a file, or a link: not what is assumed, left out, intended or in
    dispute. None where git has to be asked. `oid_bytes` is how long the name of an object is."""
    if not _is_whole(data, oid_bytes):
        return None
    magic, version, count = _HEADER.unpack_from(data)
    if magic != b"DIRC" or version not in (2, 3, 4):
        return None
    layout = struct.Struct(f">10I{oid_bytes}sH")
    walk = _prefixed if version == 4 else _padded
    try:
        found, end = walk(data, layout, count)
        return found if _may_be_read(data, end, oid_bytes) else None
    except (struct.error, ValueError, IndexError):
        return None


_Found = tuple[dict[bytes, Proof], int]
"""What each path is, and where the last one ends."""


def _padded(data: bytes, layout: struct.Struct, count: int) -> _Found:
    start, unpack, head = _HEADER.size, layout.unpack_from, layout.size
    found: dict[bytes, Proof] = {}
    for _ in range(count):
        fields = unpack(data, start)
        flags, path, more = fields[11], start + head, 0
        if flags & _EXTENDED:
            more = int.from_bytes(data[path : path + 2], "big")
            path += 2
        length = flags & _NAME_LENGTH
        end = path + length if length < _NAME_LENGTH else data.index(b"\0", path)
        start += (end - start + 8) // 8 * 8  # 1 to 8 zero bytes
        if not (flags & _DOUBTED or more & _ABSENT):
            found[data[path:end]] = Proof._make(fields)
    return found, start


def _prefixed(data: bytes, layout: struct.Struct, count: int) -> _Found:
    """Each path as what it has in common with the one before, and what comes after that."""
    start, before = _HEADER.size, b""
    found: dict[bytes, Proof] = {}
    for _ in range(count):
        fields = layout.unpack_from(data, start)
        flags, start, more = fields[11], start + layout.size, 0
        if flags & _EXTENDED:
            more = int.from_bytes(data[start : start + 2], "big")
            start += 2
        dropped, start = _number(data, start)
        end = data.index(b"\0", start)
        before = before[: len(before) - dropped] + data[start:end]
        start = end + 1
        if not (flags & _DOUBTED or more & _ABSENT):
            found[before] = Proof._make(fields)
    return found, start


def _number(data: bytes, start: int) -> tuple[int, int]:
    """Seven bits a byte, each but the last one more than it says; and where it ends."""
    byte = data[start]
    value, start = byte & 0x7F, start + 1
    while byte & 0x80:
        byte = data[start]
        value, start = (value + 1 << 7) | byte & 0x7F, start + 1
    return value, start


def _may_be_read(data: bytes, start: int, oid_bytes: int) -> bool:
    """Whether no extension behind the entries says that these are not all: those in small letters
    have to be known."""
    while start < len(data) - oid_bytes:
        name, size = _EXTENSION.unpack_from(data, start)
        if not name[:1].isupper():
            return False
        start += _EXTENSION.size + size
    return True


def _is_whole(data: bytes, oid_bytes: int) -> bool:
    """Whether this is all of an index, by the hash at its end; zeroes stand there where the user
    has switched that off."""
    if len(data) < _HEADER.size + oid_bytes:
        return False
    told = data[-oid_bytes:]
    if not any(told):
        return True
    body = memoryview(data)[:-oid_bytes]
    return hashlib.new(ALGORITHMS[oid_bytes], body, usedforsecurity=False).digest() == told
