"""Contents on their way into the store: put off, compressed beside other work, numbered.

In which order: contents gather under their hashes; `begin` compresses them all in the background;
`store` gives numbers to those that are not there yet, and writes them in the order of the numbers.
Why: many at once cost a fraction of one by one, and numbers that go up fill the table at its end,
where hashes would lie anywhere. To ask beforehand which are new would take longer than to compress.
What is not guaranteed: anything before `store`, which its caller does inside the transaction of
the snapshot that needs them. More than a batch in memory is stored on the way.
"""

import os
import sqlite3
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Final

import zstandard
from msgspec import Struct, field

from cleveragents.infrastructure.snapshots.store.batching import insert_all
from cleveragents.infrastructure.snapshots.store.recent_rows import fits_recent

# So much is compressed before a thread has begun.
_LITTLE_BYTES = 64 * 1024
_MOST_THREADS = 4
_LEVEL = 1


class Codec:
    """In which form the bytes of a content are stored.

    Plain numbers: a member of an enumeration takes a database twice as long to store.
    """

    RAW: Final = 0
    ZSTD: Final = 1
    CHUNKS: Final = 2


def packing(contents: list[bytes]) -> Callable[[], Iterable[bytes]]:
    """Begins; what it gives back waits for the end, and has each of them in this order."""
    packer = zstandard.ZstdCompressor(level=_LEVEL)
    little = len(contents) < 2 or sum(map(len, contents)) < _LITTLE_BYTES
    if little or "multi_compress_to_buffer" not in zstandard.backend_features:
        return lambda: map(packer.compress, contents)
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 - little needs none

    # One call for all, in which the interpreter is free: threads that come back to it after every
    # few contents keep everybody else waiting for longer than they gain.
    threads = max(1, min(_MOST_THREADS, len(os.sched_getaffinity(0)) - 1))
    pool = ThreadPoolExecutor(1)
    # A list of bytes is one of their kind, which the types of the library do not see.
    found = pool.submit(packer.multi_compress_to_buffer, contents, threads=threads)  # pyright: ignore[reportArgumentType]
    pool.shutdown(wait=False)
    return lambda: (segment.tobytes() for segment in found.result())


# All keys in one value, one behind the other: a mark for each would be read and bound for longer
# than it takes to look for them. Those that have a number, or that git keeps, are left out.
_CLAIM = """
INSERT INTO {table} WITH RECURSIVE places(place) AS (
    VALUES (0) UNION ALL SELECT place + 1 FROM places WHERE (place + 1) * 32 < length(:keys)
)
SELECT substr(:keys, place * 32 + 1, 32) AS key, :first + place FROM places
WHERE NOT EXISTS (SELECT 1 FROM {other} WHERE hash=key)
AND NOT EXISTS (SELECT 1 FROM git_contents WHERE resource=:resource AND hash=key)
ON CONFLICT DO NOTHING RETURNING hash, id
"""
TABLES = ("recent_content_ids", "content_ids")


class ContentWriter(Struct):
    """Of some it may turn out that they are stored already."""

    db: sqlite3.Connection
    resource: str
    size: int = 0
    _data: dict[bytes, bytes] = field(default_factory=dict[bytes, bytes])
    _in_git: dict[bytes, tuple[int, str]] = field(default_factory=dict[bytes, tuple[int, str]])
    _begun: Callable[[], dict[bytes, bytes]] | None = None

    def add(self, key: bytes, data: bytes) -> None:
        if key not in self._data:
            self._data[key] = data
            self.size += len(data)

    def add_in_git(self, key: bytes, size: int, oid: str) -> None:
        """Git keeps the bytes, for this resource; only that it does is stored."""
        self._in_git[key] = size, oid

    def begin(self) -> None:
        """Begin to compress them all, beside whatever comes before `store`.

        To find out first which of them are stored would take longer than it saves.
        """
        self._begun = _begin(self._data)

    def store(self) -> dict[bytes, int]:
        """Gives back what was new, and how many bytes each took. Together, in the order of the
        table, they take far less time than one by one."""
        data, in_git, begun = self._data, self._in_git, self._begun
        self._data, self._in_git, self._begun, self.size = {}, {}, None, 0
        kept = [(key, size, oid) for key, (size, oid) in sorted(in_git.items())]
        insert_all(self.db, "INSERT OR IGNORE INTO git_contents", kept, (self.resource,))
        numbers = allocate_ids(self.db, self.resource, data)
        packed = begun() if begun and numbers else {}
        late = numbers.keys() - packed.keys()
        packed.update(_begin({key: data[key] for key in late})())
        rows = [(number, key, *_smaller(data[key], packed[key])) for key, number in numbers.items()]
        insert_all(self.db, "INSERT INTO contents", rows)
        return {row[1]: len(row[4]) for row in rows}


def allocate_ids(
    db: sqlite3.Connection, resource: str, keys: Collection[bytes]
) -> dict[bytes, int]:
    """The contents that the resource cannot read yet, each with its number from now on."""
    if not keys:
        return {}
    tables = TABLES if fits_recent(db, len(keys)) else TABLES[::-1]
    first = db.execute("SELECT IFNULL(MAX(id), 0) + 1 FROM contents").fetchone()[0]
    rows = db.execute(
        _CLAIM.format(table=tables[0], other=tables[1]),
        {"keys": b"".join(sorted(keys)), "first": first, "resource": resource},
    )
    return dict(rows.fetchall())


def allocate_id(db: sqlite3.Connection, key: bytes) -> dict[bytes, int]:
    """The same for one that is named by its blob, and that git has lost."""
    number = db.execute("SELECT IFNULL(MAX(id), 0) + 1 FROM contents").fetchone()[0]
    rows = db.execute(
        "INSERT INTO content_ids VALUES (?, ?) ON CONFLICT DO NOTHING RETURNING hash, id",
        (key, number),
    )
    return dict(rows.fetchall())


def _begin(data: Mapping[bytes, bytes]) -> Callable[[], dict[bytes, bytes]]:
    """What it gives back waits until they are compressed."""
    keys, packed = tuple(data), packing(list(data.values()))
    return lambda: dict(zip(keys, packed(), strict=True))


def _smaller(whole: bytes, packed: bytes) -> tuple[int, int, bytes]:
    """Size, codec and data."""
    if len(packed) >= len(whole):
        return len(whole), Codec.RAW, whole
    return len(whole), Codec.ZSTD, packed
