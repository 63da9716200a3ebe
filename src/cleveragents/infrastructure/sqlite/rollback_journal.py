"""A rollback journal in SQLite's own format: while it lies beside a database, the old pages count.

Whoever opens the database next rolls it back, be it SQLite or we. So a file that is changed page by
page is the old one until its journal is removed, and the new one from then on, to everybody.
In which order: the old pages, synced; the header, by which it begins to count, synced; its name.
Why: a journal that is cut short before its header is there is none.
"""

import os
import secrets
import struct
from collections.abc import Collection, Iterable

from cleveragents.infrastructure.sqlite.side_files import JOURNAL, PENDING

MAGIC = b"SQLite format 3\0"
_JOURNAL_MAGIC = bytes.fromhex("d9d505f920a163d7")
_SECTOR = 512
_STRIDE = 200
_USUAL_PAGE = 4096
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def page_size_of(fd: int) -> int | None:
    """Of an open database; None of what SQLite would not take for one. An empty file is one."""
    size = os.fstat(fd).st_size
    if not size:
        return _USUAL_PAGE
    head = os.pread(fd, 18, 0)
    if not head.startswith(MAGIC) or len(head) < 18:
        return None
    said = int.from_bytes(head[16:18], "big")
    page = 65536 if said == 1 else said
    is_one = page >= 512 and page & (page - 1) == 0
    return page if is_one and size % page == 0 else None


def covered(ranges: Iterable[tuple[int, int]], page: int, size: int) -> list[int]:
    """The numbers of the pages that these ranges of bytes touch, as far as a file of this size has
    them; the first is 1. The page of SQLite's locks has no content, and no journal may have it."""
    lock_page = PENDING // page + 1
    last = size // page
    found: set[int] = set()
    for start, end in ranges:
        found.update(range(start // page + 1, min(-(-end // page), last) + 1))
    return sorted(found - {lock_page})


def write_journal(path: str, fd: int, page: int, numbers: Collection[int]) -> None:
    """Of the database at `path`, which is open as `fd` and which nobody else writes: durable when
    this returns. There is no journal yet; raises FileExistsError otherwise."""
    nonce = secrets.randbits(32)
    status = os.fstat(fd)
    journal = os.open(path + JOURNAL, _NEW, 0o600)
    try:
        os.fchmod(journal, status.st_mode & 0o777)
        offset = _SECTOR
        for number in numbers:
            data = os.pread(fd, page, (number - 1) * page)
            offset += os.pwrite(journal, _record(number, data, nonce), offset)
        os.fsync(journal)
        header = struct.pack(
            ">8sIIIII", _JOURNAL_MAGIC, len(numbers), nonce, status.st_size // page, _SECTOR, page
        )
        os.pwrite(journal, header.ljust(_SECTOR, b"\0"), 0)
        os.fsync(journal)
    finally:
        os.close(journal)


def _record(number: int, data: bytes, nonce: int) -> bytes:
    # SQLite adds up every 200th byte, from the end on, and leaves out the first one.
    total = nonce + sum(data[i] for i in range(len(data) - _STRIDE, 0, -_STRIDE))
    return struct.pack(">I", number) + data + struct.pack(">I", total & 0xFFFFFFFF)
