"""The index of a sandbox as its checkout wrote it, made ready to be compared with.

It says what the base holds, so that git needs not read files which are as they were. Git alone
would be wrong about them: it compares whole seconds, and reads what was made in the last one.
So the statuses are compared here, to the nanosecond; of every file that has another one the entry
gets a status that no file has, and git reads it.
"""

import hashlib
import os
import struct

from cleveragents.infrastructure.files.durable_files import read_file
from cleveragents.infrastructure.sandbox.git.proofs.index_entries import is_whole

_HEADER = struct.Struct(">4sII")
_PLAIN = (b"DIRC", 2)
_ENTRY = struct.Struct(">10I")
# How long the times are, which come first, and where the size begins, which comes last.
_TIMES, _SIZE = 16, 36
_NAME_LENGTH = 0x0FFF
_SHORT = 0xFFFFFFFF
_SECOND = 1_000_000_000
_GITLINK = 0o160000
_ALGORITHMS = {20: "sha1", 32: "sha256"}


def put_first_index(source: str, top: str, target: str, oid_bytes: int) -> bool:
    """Whether `target` is now an index that git can go on from. `source` is the first one, `top`
    the folder that it was of, and `oid_bytes` how long the name of an object is."""
    folder, name = os.path.split(source)
    data = read_file(folder, name)
    if data is None or not is_whole(data, oid_bytes):
        return False
    magic, version, count = _HEADER.unpack_from(data)
    if (magic, version) != _PLAIN:  # further flags say that paths are left out of the checkout
        return False
    content = bytearray(data)
    newest = _doubt_changed(content, os.fsencode(top) + b"/", count, oid_bytes)
    body = memoryview(content)[:-oid_bytes]
    digest = hashlib.new(_ALGORITHMS[oid_bytes], body, usedforsecurity=False).digest()
    body.release()
    content[-oid_bytes:] = digest
    with open(target, "wb") as file:
        file.write(content)
    # Later than every file that it vouches for, so that git need not be in doubt about the second.
    os.utime(target, (newest + 1, newest + 1))
    return True


def _doubt_changed(content: bytearray, top: bytes, count: int, oid_bytes: int) -> int:
    """Gives the latest second in which one of the files was written that are as they were."""
    start, head, newest = _HEADER.size, _ENTRY.size + oid_bytes, 0
    for _ in range(count):
        fields = _ENTRY.unpack_from(content, start)
        path = start + head + 2
        length = int.from_bytes(content[path - 2 : path], "big") & _NAME_LENGTH
        end = path + length if length < _NAME_LENGTH else content.index(0, path)
        if _is_as_it_was(top + content[path:end], fields):
            newest = max(newest, fields[2])
        elif fields[6] != _GITLINK:
            content[start : start + _TIMES] = bytes(_TIMES)
            content[start + _SIZE : start + _ENTRY.size] = bytes(_ENTRY.size - _SIZE)
        start += (end - start + 8) // 8 * 8  # 1 to 8 zero bytes
    return newest


def _is_as_it_was(path: bytes, fields: tuple[int, ...]) -> bool:
    try:
        found = os.lstat(path)
    except OSError:
        return False
    return (
        found.st_ctime_ns == fields[0] * _SECOND + fields[1]
        and found.st_mtime_ns == fields[2] * _SECOND + fields[3]
        and found.st_ino & _SHORT == fields[5]
        and found.st_size & _SHORT == fields[9]
    )
