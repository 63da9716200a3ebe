"""Side files of SQLite as an attacker makes them."""

import os
import struct
from pathlib import Path

MAGIC = bytes.fromhex("d9d505f920a163d7")
_SECTOR = 512
_LOCK_BYTE = 0x40000000


def journal_naming(other: Path | str, database: Path) -> bytes:
    """A rollback journal that SQLite takes for one that a crash has left; it belongs to `other`,
    which SQLite removes once it has rolled back."""
    page = page_size(database)
    return _header(database, page) + super_record(other, page)


def journal_of(database: Path, pages: int | None = None) -> bytes:
    """The same without another journal's name; it says that there were so many pages before."""
    return _header(database, page_size(database), pages)


def super_record(other: Path | str, page: int) -> bytes:
    name = os.fsencode(other)
    # SQLite adds up signed characters.
    total = sum(byte if byte < 128 else byte - 256 for byte in name) & 0xFFFFFFFF
    lock_page = struct.pack(">I", _LOCK_BYTE // page + 1)
    return lock_page + name + struct.pack(">II", len(name), total) + MAGIC


def page_size(database: Path) -> int:
    size = int.from_bytes(database.read_bytes()[16:18], "big")
    return 65536 if size == 1 else size


def _header(database: Path, page: int, pages: int | None = None) -> bytes:
    before = database.stat().st_size // page if pages is None else pages
    return (MAGIC + struct.pack(">IIIII", 0, 1, before, _SECTOR, page)).ljust(_SECTOR, b"\0")
