"""The index of a sandbox as its checkout wrote it, made ready to be compared with.

It says what the base holds, so that git needs not read files which are as they were. Git alone
would be wrong about them: it compares whole seconds, and reads what was made in the last one.
So the statuses are compared here, to the nanosecond; of every file that has another one the entry
gets a status that no file has, and git reads it. An index with any entry that git would believe
without a look, or that is not all of one, is of no use.
What is not guaranteed: that a change shows which a step makes in the very tick of the clock in
which the checkout wrote the file. None does: a snapshot lies between the two. Where a file system
counts whole seconds, files of the last one are read.
"""

import hashlib
import os
import struct
from typing import NamedTuple

from cleveragents.infrastructure.files.durable_files import read_file
from cleveragents.infrastructure.sandbox.git.proofs.index_entries import ALGORITHMS

_HEADER = struct.Struct(">4sII")
_PLAIN = (b"DIRC", 2)
_ENTRY = struct.Struct(">10I")
# How long the times are, which come first, and where the size begins, which comes last.
_TIMES, _SIZE = 16, 36
_NAME_LENGTH = 0x0FFF
_SHORT = 0xFFFFFFFF
_SECOND = 1_000_000_000
_GITLINK = 0o160000


class FirstIndex(NamedTuple):
    """`source` is where the index was kept, `top` the folder that it was of, and `oid_bytes` how
    long the name of an object is."""

    source: str
    top: str
    oid_bytes: int

    def put(self, target: str) -> bool:
        """Whether `target` is now an index that git can go on from."""
        kept = self._read()
        if kept is None:
            return False
        data, written_ns = kept
        content = bytearray(data)
        try:
            newest = self._doubt_changed(content, written_ns // _SECOND)
        except (_OfNoUseError, struct.error, IndexError, ValueError):
            return False
        content[-self.oid_bytes :] = self._hash(bytes(content[: -self.oid_bytes]))
        with open(target, "wb") as file:
            file.write(content)
        # Later than every file that it vouches for, so that git need not be in doubt about it.
        os.utime(target, (newest + 1, newest + 1))
        return True

    def _read(self) -> tuple[bytes, int] | None:
        """The index, if it is all of one, and when it was written."""
        folder, name = os.path.split(self.source)
        data = read_file(folder, name)
        if data is None or len(data) < _HEADER.size + self.oid_bytes:
            return None
        if data[-self.oid_bytes :] != self._hash(data[: -self.oid_bytes]):
            return None
        return data, os.lstat(self.source).st_mtime_ns

    def _hash(self, data: bytes) -> bytes:
        return hashlib.new(ALGORITHMS[self.oid_bytes], data, usedforsecurity=False).digest()

    def _doubt_changed(self, content: bytearray, written: int) -> int:
        """Gives the latest second in which one of the files was written that are as they were;
        `written` is that of the index."""
        magic, version, count = _HEADER.unpack_from(content)
        if (magic, version) != _PLAIN:  # further flags say that paths are left out of the checkout
            raise _OfNoUseError
        top = os.fsencode(self.top) + b"/"
        start, head, newest = _HEADER.size, _ENTRY.size + self.oid_bytes, 0
        for _ in range(count):
            fields = _ENTRY.unpack_from(content, start)
            path = start + head + 2
            flags = int.from_bytes(content[path - 2 : path], "big")
            if flags & ~_NAME_LENGTH:  # in dispute, or to be believed without a look
                raise _OfNoUseError
            end = path + flags if flags < _NAME_LENGTH else content.index(0, path)
            found = _status(top + content[path:end])
            if found is not None and is_as_it_was(found, fields, written):
                newest = max(newest, fields[2])
            elif fields[6] != _GITLINK:
                content[start : start + _TIMES] = bytes(_TIMES)
                content[start + _SIZE : start + _ENTRY.size] = bytes(_ENTRY.size - _SIZE)
            start += (end - start + 8) // 8 * 8  # 1 to 8 zero bytes
        return newest


class _OfNoUseError(Exception):
    pass


def is_as_it_was(found: os.stat_result, fields: tuple[int, ...], written: int) -> bool:
    """Whether a file has the status of an entry; `written` is the second of the index."""
    return (
        found.st_ctime_ns == fields[0] * _SECOND + fields[1]
        and found.st_mtime_ns == fields[2] * _SECOND + fields[3]
        and found.st_ino & _SHORT == fields[5]
        and found.st_size & _SHORT == fields[9]
        # In whole seconds, a change could hide in the one in which the file was made.
        and (fields[1] != 0 or fields[0] < written)
    )


def _status(path: bytes) -> os.stat_result | None:
    try:
        return os.lstat(path)
    except OSError:
        return None
