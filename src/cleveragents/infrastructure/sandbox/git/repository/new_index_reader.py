"""What a git index says, read without git: as `git ls-files --stage -v -z` would list it.

For an index that was just made by us. The plain form only, version 2 without parts that a reader
must know: everything else (split, sparse, paths left out of the checkout) is a question for git.
Where a sandbox's index is captured and restored: `state.py`.
"""

import struct

_HEADER = struct.Struct(">4sII")
_EXTENSION = struct.Struct(">4sI")
# An entry has ten numbers about its file, one of them the mode, then its object and flags; a path
# follows, and 1 to 8 zero bytes up to the next multiple of 8.
_MODE = 24
_OBJECT = 40
_LENGTH = 0x0FFF  # all other flags say something that a new index does not


def entries_at(path: str) -> int:
    """How many paths an index names, of any version; 0 if there is none."""
    try:
        with open(path, "rb") as file:
            magic, _, count = _HEADER.unpack(file.read(_HEADER.size))
    except (OSError, struct.error):
        return 0
    return count if magic == b"DIRC" else 0


def listing_of(data: bytes, oid_bytes: int) -> bytes | None:
    """None where git has to be asked. `oid_bytes` is how long the name of an object is."""
    if len(data) < _HEADER.size + oid_bytes:
        return None
    magic, version, count = _HEADER.unpack_from(data)
    if (magic, version) != (b"DIRC", 2):
        return None
    lines: list[bytes] = []
    start = _HEADER.size
    entry = struct.Struct(f">I12x{oid_bytes}sH")
    for _ in range(count):
        mode, oid, flags = entry.unpack_from(data, start + _MODE)
        path = start + _OBJECT + oid_bytes + 2
        end = path + (flags & _LENGTH)
        if flags & _LENGTH == _LENGTH:  # or longer
            end = data.index(b"\0", path)
        if flags & ~_LENGTH:
            return None
        lines.append(b"H %06o %s 0\t%s\0" % (mode, oid.hex().encode(), data[path:end]))
        start += (end - start + 8) // 8 * 8
    return b"".join(lines) if _all_may_be_ignored(data, start, oid_bytes) else None


def _all_may_be_ignored(data: bytes, start: int, oid_bytes: int) -> bool:
    """The extensions after the entries, by their names: those in capitals need not be known."""
    while start < len(data) - oid_bytes:
        name, size = _EXTENSION.unpack_from(data, start)
        if not name[:1].isupper():
            return False
        start += _EXTENSION.size + size
    return True
