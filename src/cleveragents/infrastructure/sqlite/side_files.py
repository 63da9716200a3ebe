"""What lies beside a database file, looked at as bytes: its journals, and what only poses as one.

Both sides import this, so it imports next to nothing.
"""

import fcntl
import os
import stat
import struct

LOG, INDEX, JOURNAL = "-wal", "-shm", "-journal"
SIDE_FILES = (LOG, INDEX, JOURNAL)
_OPEN = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_MAGIC = bytes.fromhex("d9d505f920a163d7")
# Where SQLite itself locks: the pending byte, the reserved byte and 510 shared ones.
PENDING, RESERVED, SHARED, LAST = 0x40000000, 0x40000001, 0x40000002, 0x400001FF
# At the end of a journal that belongs to another one: the length of that one's name, a sum, and
# the magic; before them the name, and before that the number of a page.
_ENDING, _NUMBER, _LONGEST_NAME = 16, 4, 1 << 16


def posing(path: str) -> tuple[str, ...]:
    """Suffixes of what SQLite cannot have made: links, pipes, folders, files of several names.

    SQLite would wait for a pipe for ever, and write through to the other name of a file.
    """
    found: list[str] = []
    for suffix in SIDE_FILES:
        try:
            status = os.lstat(path + suffix)
        except FileNotFoundError:
            continue
        if not stat.S_ISREG(status.st_mode) or status.st_nlink != 1:
            found.append(suffix)
    return tuple(found)


def is_quiet(path: str) -> bool:
    """No journal holds anything, so that the file is all there is."""
    return not _size(path + LOG) and not is_hot(path)


def is_alone(path: str) -> bool:
    """The same, and nobody has it open with a log, whose content may go anywhere at any time."""
    return is_quiet(path) and not os.path.lexists(path + INDEX)


def is_hot(path: str) -> bool:
    """There is a rollback journal that begins with something, as it does until it is done with."""
    if not _size(path + JOURNAL):
        return False
    try:
        fd = os.open(path + JOURNAL, os.O_RDONLY | _OPEN)
    except FileNotFoundError:
        return False
    except OSError:
        return True  # whatever it is, it is there
    try:
        return os.read(fd, 1) != b"\0"
    except OSError:
        return True
    finally:
        os.close(fd)


def owner_named(path: str) -> str:
    """The other journal that a database's journal says it belongs to, or nothing.

    SQLite removes the file of that name after it has rolled back, whatever it is.
    """
    try:
        fd = os.open(path + JOURNAL, os.O_RDONLY | _OPEN)
    except OSError:
        return ""
    try:
        return os.fsdecode(_named(fd)[0])
    finally:
        os.close(fd)


def disown(path: str) -> str:
    """Take the name out of a hot journal, so that SQLite can do with it all that it would, but for
    removing the other one; gives the name back.

    One whose other journal is gone has been committed with it, and is removed here as SQLite does.
    """
    try:
        database = os.open(path, os.O_RDWR | _OPEN)
    except OSError:
        return ""
    try:
        # Whoever writes just now still needs it as it is, and keeps SQLite from touching it.
        if not is_hot(path) or posing(path) or lock_of(database, RESERVED, RESERVED):
            return ""
        return _disowned(path + JOURNAL)
    finally:
        os.close(database)


def _disowned(journal: str) -> str:
    fd = os.open(journal, os.O_RDWR | _OPEN)
    try:
        owner, end = _named(fd)
        name = owner
        while name:
            os.ftruncate(fd, end)
            name, end = _named(fd)
        if owner and not _exists(owner):
            os.unlink(journal)
        return os.fsdecode(owner)
    finally:
        os.close(fd)


def _named(fd: int) -> tuple[bytes, int]:
    """The name at the end of a journal, and where the journal would end without it."""
    size = os.fstat(fd).st_size
    end = size - _ENDING
    if end <= 0:
        return b"", size
    length, total, magic = struct.unpack(">II8s", os.pread(fd, _ENDING, end))
    if magic != _MAGIC or not 0 < length <= min(end, _LONGEST_NAME):
        return b"", size
    name = os.pread(fd, length, end - length)
    # SQLite adds up characters, which have a sign on some machines and none on others.
    sums = {sum(name), sum(byte if byte < 128 else byte - 256 for byte in name) & 0xFFFFFFFF}
    path = name.partition(b"\0")[0]
    return (path, max(0, end - length - _NUMBER)) if path and total in sums else (b"", size)


def _exists(path: bytes) -> bool:
    """As SQLite asks it: a file without content counts as gone."""
    try:
        found = os.stat(path)
    except OSError:
        return False
    return found.st_size > 0 or not stat.S_ISREG(found.st_mode)


def lock_of(fd: int, first: int, last: int, kind: int = fcntl.F_RDLCK) -> bool:
    """Whether somebody else has locked any of these bytes for writing; or at all, if one asks for a
    lock of that kind."""
    found = fcntl.fcntl(fd, fcntl.F_OFD_GETLK, lock_request(kind, first, last))
    return struct.unpack_from("h", found)[0] != fcntl.F_UNLCK


def lock_request(kind: int, first: int, last: int) -> bytes:
    return struct.pack("hhqqi4x", kind, os.SEEK_SET, first, last - first + 1, 0)


def _size(path: str) -> int:
    try:
        return os.lstat(path).st_size
    except FileNotFoundError:
        return 0
