"""The bytes of files: stored once by hash, compressed, in chunks, or left in git's keeping.

What is stored is there for all resources of a plan. What git keeps is there for those that have
its repository: a checkout, and the branches of it that child plans work on, which have its name.
Git's keeping is asked first, as what other resources have stored since may be damaged where that is
not; then the small and the large table of numbers. Large files are chunks, each a content of its
own, and a list of these under the hash of the whole. Every piece that is read is proven by its
hash, and a list by the hash over all of it, with its last piece. What nobody has read is named by
its blob (`blob_keys.py`), and is git's to keep.
What is not guaranteed: that a content is whole because it is there. Only `check` and a read know.
"""

import hashlib
import sqlite3
from collections.abc import Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import NamedTuple, Protocol

import zstandard
from msgspec import Struct

from cleveragents.domain.errors import SnapshotDamagedError
from cleveragents.infrastructure.files.read_path import CHUNK, hash_only
from cleveragents.infrastructure.snapshots.beside import Beside, beside
from cleveragents.infrastructure.snapshots.store.batching import in_sizes
from cleveragents.infrastructure.snapshots.store.blob_keys import (
    blob_id,
    is_blob_key,
    oid_of,
    same_bytes,
    size_of,
)
from cleveragents.infrastructure.snapshots.store.content_writer import (
    TABLES,
    Codec,
    ContentWriter,
    allocate_id,
    allocate_ids,
)

# Blobs come back from git whole; what is larger than this is stored here in chunks instead.
GIT_LIMIT = 8 * CHUNK
_BATCH_BYTES = 32 * CHUNK // 4
_BATCH_COUNT = 1000
# For fewer a thread would not pay.
_MANY = 32


class Blobs(Protocol):
    """An object database that outlives the snapshots and holds some files' bytes anyway."""

    @property
    def algorithm(self) -> str: ...

    def read(self, oids: Sequence[str]) -> Iterator[bytes | None]:
        """The bytes of each, in this order; None for one that is not there."""
        ...


class NoBlobs(Struct, frozen=True):
    algorithm: str = "sha1"

    def read(self, oids: Sequence[str]) -> Iterator[bytes | None]:
        return iter([None] * len(oids))


NO_BLOBS = NoBlobs()


class FirstNames(Protocol):
    """What the first contents of paths are called, where that is the name of a blob."""

    def prefetch(self, paths: Collection[bytes]) -> None:
        """One question for many."""
        ...

    def get(self, path: bytes) -> bytes | None: ...


class NoFirstNames(Struct, frozen=True):
    def prefetch(self, paths: Collection[bytes]) -> None:
        """Nothing to do."""

    def get(self, path: bytes) -> None:  # noqa: ARG002 - one of many
        return None


class _Row(NamedTuple):
    hash: bytes
    size: int
    codec: int
    data: bytes | None


class _InGit(NamedTuple):
    hash: bytes
    size: int
    oid: str


class ContentStore:
    """Contents of one plan's snapshots. `base` maps paths to blobs that `blobs` keeps for good."""

    def __init__(self, db: sqlite3.Connection, resource: str, blobs: Blobs = NO_BLOBS) -> None:
        self.db = db
        self.resource = resource
        self.blobs = blobs
        self.base: Mapping[bytes, str] = {}
        # By path, the name of its first content where that is a blob's.
        self.first: FirstNames = NoFirstNames()
        self.stored_bytes = 0
        self.stored: set[bytes] = set()
        self.decompressor = zstandard.ZstdDecompressor()
        self._waiting = ContentWriter(db, resource)
        self._asked: tuple[Sequence[str], Beside[list[bytes | None]]] | None = None

    def put_file(self, chunks: Iterable[bytes], path: bytes, size: int) -> bytes:
        """Store a file that comes in chunks of CHUNK bytes; gives back its hash, or the name that
        its bytes have already."""
        key, chunks = self._named(chunks, path, size)
        if key:
            return key
        if size > CHUNK:
            return self._put_large(chunks, path, size)
        return self._put_small(b"".join(chunks), self.base.get(path))

    def put(self, data: bytes) -> bytes:
        """Store some bytes, and nothing is put off."""
        key = self.put_later(data)
        self.flush()
        return key

    def put_later(self, data: bytes) -> bytes:
        """The same with the next `flush`."""
        pieces = (data[start : start + CHUNK] for start in range(0, len(data), CHUNK))
        return self.put_file(pieces, b"", len(data))

    def hash_file(self, chunks: Iterable[bytes], path: bytes, size: int) -> bytes:
        """What `put_file` gives back; nothing is stored."""
        key, chunks = self._named(chunks, path, size)
        return key or hash_only(chunks, path, size)

    def _named(
        self, chunks: Iterable[bytes], path: bytes, size: int
    ) -> tuple[bytes, Iterable[bytes]]:
        """The name of a blob if these are its bytes, and the chunks to go on with if not."""
        key = self.first.get(path)
        if key is None or size_of(key) != size:
            return b"", chunks
        chunks = list(chunks)
        return (key if same_bytes(key, size, chunks) else b""), chunks

    def begin_flush(self) -> None:
        """Begin to compress what was put off, beside all that comes before `flush`."""
        self._waiting.begin()

    def flush(self) -> None:
        """Store what was put off."""
        new = self._waiting.store()
        self.stored_bytes += sum(new.values())
        self.stored.update(new)

    def read(self, wanted: Mapping[bytes, str]) -> Iterator[tuple[bytes, Iterator[bytes]]]:
        """Each content, by hash, with the name to give it in an error.

        The pieces must be used up before the next one is asked for. Raises SnapshotDamagedError at
        the latest with the last piece.
        """
        # First of git: what others have stored since then may be damaged where this is not.
        in_git = self._in_git([key for key in wanted if not is_blob_key(key)])
        missing = [key for key in wanted if key not in in_git]
        for table in TABLES:
            found: set[bytes] = set()
            for row in self._stored(table, missing):
                found.add(row.hash)
                yield row.hash, self._pieces(row, wanted[row.hash])
            missing = [key for key in missing if key not in found]
        # Of a blob something is stored only where git has lost it (`renew`).
        blobs = {key: _InGit(key, size_of(key), oid_of(key)) for key in missing if is_blob_key(key)}
        if len(blobs) < len(missing):
            lost = next(key for key in missing if key not in blobs)
            raise self._damaged(wanted[lost], "is missing")
        in_git |= blobs
        for batch in _batches(list(in_git.values())):
            yield from self._read_git(batch, wanted)

    @contextmanager
    def asked(self, wanted: Collection[bytes]) -> Generator[None]:
        """What git alone can have of these is asked of it beside all that is done before `read`,
        if there is enough of it."""
        blobs = [_InGit(key, size_of(key), oid_of(key)) for key in wanted if is_blob_key(key)]
        if len(blobs) < _MANY:
            yield
            return
        oids = [blob.oid for blob in next(iter(_batches(blobs)))]
        with beside(lambda: list(self.blobs.read(oids))) as answer:
            self._asked = oids, answer
            try:
                yield
            finally:
                self._asked = None

    def check(self, wanted: Mapping[bytes, str]) -> None:
        """Read all of it; raises SnapshotDamagedError."""
        for _, pieces in self.read(wanted):
            for _ in pieces:
                pass

    def damaged(self, wanted: Mapping[bytes, str]) -> list[bytes]:
        """Those of them that are not there whole; halves are looked at until it is known which."""
        try:
            self.check(wanted)
        except SnapshotDamagedError:
            items, middle = list(wanted.items()), len(wanted) // 2
            if not middle:
                return list(wanted)
            halves = (dict(items[:middle]), dict(items[middle:]))
            return [key for half in halves for key in self.damaged(half)]
        return []

    def renew(self, chunks: Iterable[bytes], path: bytes, size: int) -> bytes:
        """Store a file in place of what is stored of it, which is damaged; gives back its hash."""
        key, chunks = self._named(chunks, path, size)
        if key:
            self._forget(key)
            self._is_new(_Row(key, size, Codec.RAW, b"".join(chunks)))
            return key
        digest = hashlib.sha256()
        keys: list[bytes] = []
        for chunk in chunks:
            digest.update(chunk)
            self._forget(hashlib.sha256(chunk).digest())
            keys.append(self._put_small(chunk, None))
            self.flush()
        if size <= CHUNK:
            return keys[0]
        key = digest.digest()
        self._forget(key)
        self._list_chunks(key, size, keys)
        return key

    def get(self, key: bytes, name: str) -> bytes:
        return b"".join(piece for _, pieces in self.read({key: name}) for piece in pieces)

    def _put_small(self, data: bytes, known_oid: str | None) -> bytes:
        key = hashlib.sha256(data).digest()
        if known_oid is not None and known_oid == blob_id(self.blobs.algorithm, len(data), [data]):
            self._waiting.add_in_git(key, len(data), known_oid)
        else:
            self._waiting.add(key, data)
            if self._waiting.size > _BATCH_BYTES:
                self.flush()
        return key

    def _put_large(self, chunks: Iterable[bytes], path: bytes, size: int) -> bytes:
        # Most large files of a first snapshot are as git has them, and need not be stored; that
        # shows only at the end, so they are gathered, up to a limit that keeps memory flat.
        known_oid = self.base.get(path)
        if known_oid is not None and size <= GIT_LIMIT:
            gathered = list(chunks)
            if known_oid == blob_id(self.blobs.algorithm, size, gathered):
                return self._put_in_git(gathered, known_oid, size)
            chunks = iter(gathered)
        digest = hashlib.sha256()
        keys: list[bytes] = []
        for chunk in chunks:
            digest.update(chunk)
            keys.append(self._put_small(chunk, None))
        key = digest.digest()
        self._list_chunks(key, size, keys)
        return key

    def _list_chunks(self, key: bytes, size: int, keys: Sequence[bytes]) -> None:
        if self._is_new(_Row(key, size, Codec.CHUNKS, None)):
            rows = [(key, position, chunk) for position, chunk in enumerate(keys)]
            self.db.executemany("INSERT INTO file_chunks VALUES (?, ?, ?)", rows)

    def _forget(self, key: bytes) -> None:
        for table in TABLES:
            # Of a content that is gone the number may be another one's by now.
            ids = f"(SELECT id FROM {table} WHERE hash=:key)"
            self.db.execute(f"DELETE FROM contents WHERE id IN {ids} AND hash=:key", {"key": key})
            self.db.execute(f"DELETE FROM {table} WHERE hash=?", (key,))
        self.db.execute("DELETE FROM file_chunks WHERE hash=?", (key,))
        self.db.execute(
            "DELETE FROM git_contents WHERE resource=? AND hash=?", (self.resource, key)
        )

    def _put_in_git(self, pieces: Iterable[bytes], oid: str, size: int) -> bytes:
        digest = hashlib.sha256()
        for piece in pieces:
            digest.update(piece)
        key = digest.digest()
        self._waiting.add_in_git(key, size, oid)
        return key

    def _is_new(self, row: _Row) -> bool:
        """If it is, then it is stored now."""
        if is_blob_key(row.hash):
            numbers = allocate_id(self.db, row.hash)
        else:
            numbers = allocate_ids(self.db, self.resource, (row.hash,))
        for number in numbers.values():
            self.db.execute("INSERT INTO contents VALUES (?, ?, ?, ?, ?)", (number, *row))
        return bool(numbers)

    def _in_git(self, keys: Sequence[bytes]) -> dict[bytes, _InGit]:
        found: dict[bytes, _InGit] = {}
        for some in in_sizes(keys):
            rows = self.db.execute(
                "SELECT hash, size, oid FROM git_contents"
                f" WHERE resource=? AND hash IN ({_marks(some)})",
                (self.resource, *some),
            )
            found.update((row[0], _InGit(*row)) for row in rows)
        return found

    def _stored(self, table: str, keys: Sequence[bytes]) -> Iterator[_Row]:
        """Those that have a number there. One at a time, since each may be large."""
        for some in in_sizes(keys):
            rows = self.db.execute(
                f"SELECT c.hash, c.size, c.codec, c.data FROM {table} i"
                f" JOIN contents c ON c.id=i.id WHERE i.hash IN ({_marks(some)})",
                some,
            )
            yield from map(_Row._make, rows)

    def _pieces(self, row: _Row, name: str) -> Iterator[bytes]:
        if row.codec != Codec.CHUNKS:
            yield self._verified(self._unpacked(row, name), row.hash, name)
            return
        digest = hashlib.sha256()
        keys = self.db.execute(
            "SELECT chunk FROM file_chunks WHERE hash=? ORDER BY position", (row.hash,)
        ).fetchall()
        for (key,) in keys:
            piece = self._verified(self._chunk(key, name), key, name)
            digest.update(piece)
            yield piece
        if digest.digest() != row.hash:
            raise self._damaged(name, "lacks a part")

    def _chunk(self, key: bytes, name: str) -> bytes:
        # A file of the base commit may happen to be what this part of a large one is.
        return b"".join(piece for _, each in self.read({key: name}) for piece in each)

    def _unpacked(self, row: _Row, name: str) -> bytes:
        data = row.data or b""
        if row.codec == Codec.RAW:
            return data
        try:
            return self.decompressor.decompress(data, max_output_size=row.size)
        except zstandard.ZstdError as error:
            raise self._damaged(name, "cannot be unpacked") from error

    def _read_git(
        self, batch: Sequence[_InGit], names: Mapping[bytes, str]
    ) -> Iterator[tuple[bytes, Iterator[bytes]]]:
        oids = [row.oid for row in batch]
        found: Iterable[bytes | None] = self.blobs.read(oids)
        if self._asked is not None and self._asked[0] == oids:
            found = self._asked[1].result()
        for row, data in zip(batch, found, strict=True):
            name = names[row.hash]
            if data is None:
                raise self._damaged(name, f"is missing in git ({row.oid})")
            yield row.hash, iter((self._verified(data, row.hash, name),))

    def _verified(self, data: bytes, key: bytes, name: str) -> bytes:
        if is_blob_key(key):
            whole = same_bytes(key, len(data), [data])
        else:
            whole = hashlib.sha256(data).digest() == key
        if not whole:
            raise self._damaged(name, "has other bytes than were stored")
        return data

    def _damaged(self, name: str, what: str) -> SnapshotDamagedError:
        return SnapshotDamagedError(self.resource, f"the content of {name!r} {what}")


def _marks(keys: Sequence[bytes]) -> str:
    return ",".join("?" * len(keys))


def _batches(rows: Sequence[_InGit]) -> Iterator[Sequence[_InGit]]:
    batch: list[_InGit] = []
    size = 0
    for row in rows:
        if batch and (size + row.size > _BATCH_BYTES or len(batch) == _BATCH_COUNT):
            yield batch
            batch, size = [], 0
        batch.append(row)
        size += row.size
    if batch:
        yield batch
