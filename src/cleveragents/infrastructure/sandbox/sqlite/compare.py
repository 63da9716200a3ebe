"""Database files as pages of bytes: comparing them, and what their header says."""

import os

from cleveragents.infrastructure.files.copy.clone_bytes import copy_bytes
from cleveragents.infrastructure.files.descriptors import opened

_STEP = 1024 * 1024
_JOURNAL_MODE = 18
# In the header, what writing or copying changes although the content stays: the journal mode, the
# change counter, the schema cookie, and by which version of SQLite it was written.
_MASKED = ((18, 20), (24, 28), (40, 44), (92, 100))
# On the page of this byte SQLite keeps its locks; it has no content.
_LOCK_BYTE = 0x40000000


def same_content(one: int, two: int) -> bool:
    """Of two open files that nobody changes meanwhile."""
    size = os.fstat(one).st_size
    if size != os.fstat(two).st_size:
        return False
    lock_page = _lock_page(one)
    for start in range(0, size, _STEP):
        first, second = os.pread(one, _STEP, start), os.pread(two, _STEP, start)
        if first != second and _masked(first, start, lock_page) != _masked(
            second, start, lock_page
        ):
            return False
    return True


def shares_change(present: int, old: int, new: int) -> bool:
    """Whether a page that is not the same in `old` and `new` is in `present` the new one."""
    if _page_size(present) != _page_size(new):
        return False
    if _page_size(old) != _page_size(new):
        return True
    size = _page_size(new)
    for start in range(0, os.fstat(new).st_size, size):
        wanted = _masked(os.pread(new, size, start), start, _lock_page(new))
        if _masked(os.pread(old, size, start), start, _lock_page(new)) == wanted:
            continue
        if _masked(os.pread(present, size, start), start, _lock_page(new)) == wanted:
            return True
    return False


def pages_of(path: str) -> int:
    """How many there are, going by the size of the file."""
    with opened(path, os.O_RDONLY | os.O_CLOEXEC) as fd:
        return os.fstat(fd).st_size // _page_size(fd)


def copy_without_log(source: str, target: str) -> None:
    """A new file with the same pages, whose header does not ask for a write-ahead log."""
    new = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    with opened(source, os.O_RDONLY | os.O_CLOEXEC) as one, opened(target, new, 0o600) as two:
        copy_bytes(one, two, os.fstat(one).st_size)
        os.pwrite(two, b"\1\1", _JOURNAL_MODE)


def _page_size(fd: int) -> int:
    size = int.from_bytes(os.pread(fd, 2, 16), "big")
    return 65536 if size == 1 else size or 4096


def _lock_page(fd: int) -> tuple[int, int]:
    size = _page_size(fd)
    start = _LOCK_BYTE - _LOCK_BYTE % size
    return start, start + size


def _masked(data: bytes, start: int, lock_page: tuple[int, int]) -> bytes:
    copy = bytearray(data)
    for first, last in (*_MASKED, lock_page):
        low, high = max(first - start, 0), min(last - start, len(copy))
        if low < high:
            copy[low:high] = bytes(high - low)
    return bytes(copy)
