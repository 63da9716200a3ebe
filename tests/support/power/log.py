"""The log of a disk, and the images that a power cut at some place of it can leave behind."""

import os
import random
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from tests.support.power.logging_disk import ENTRY, FLUSH, MARK, WRITE, ZERO, data_of

PIECE = 4096
_MOST = 1 << 20


class Mode(StrEnum):
    """What became of that which was written after the last flush: a piece is whole or lost."""

    LOST = "lost"
    HALF = "half"
    ALL = "all"


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of the log."""

    kind: int
    offset: int
    length: int
    data: bytes

    def pieces(self) -> Iterator[tuple[int, bytes]]:
        """What a cut takes or leaves by itself."""
        if self.kind == ZERO:
            yield self.offset, bytes(self.length)
        for first in range(0, len(self.data) if self.kind == WRITE else 0, PIECE):
            yield self.offset + first, self.data[first : first + PIECE]


@dataclass(frozen=True, slots=True)
class Log:
    """All entries of a recording, in the order of the disk."""

    entries: tuple[Entry, ...]
    flushes: tuple[int, ...]

    @staticmethod
    def read(path: Path) -> "Log":
        entries: list[Entry] = []
        with path.open("rb") as file:
            while len(head := file.read(ENTRY.size)) == ENTRY.size:
                kind, length, offset = ENTRY.unpack(head)
                data = file.read(length) if kind in (WRITE, MARK) else b""
                entries.append(Entry(kind, offset, length, data))
        flushes = tuple(i for i, entry in enumerate(entries) if entry.kind == FLUSH)
        return Log(tuple(entries), flushes)

    def __len__(self) -> int:
        return len(self.entries)

    def marks(self, first: int = 0, last: int | None = None) -> list[tuple[int, str]]:
        part = enumerate(self.entries[first:last], first)
        return [(i, entry.data.decode()) for i, entry in part if entry.kind == MARK]

    def flushed(self, point: int) -> int:
        """All before this entry is on the disk for certain when the power goes at `point`."""
        at = bisect_left(self.flushes, point)
        return self.flushes[at - 1] if at else 0

    def window(self, point: int) -> list[tuple[int, bytes]]:
        """The pieces that may or may not have reached the disk."""
        unsure = self.entries[self.flushed(point) : point]
        return [piece for entry in unsure for piece in entry.pieces()]


class Images:
    """Images of one log after a cut. `begin` is what the disk held before the first entry."""

    def __init__(self, log: Log, scratch: Path, size: int, begin: Path | None = None) -> None:
        self._log = log
        self._begin = begin
        self._size = size
        self._flushed = scratch / "flushed"
        self._at: int | None = None
        self.cut_one = scratch / "cut"

    def cut(self, point: int, mode: Mode, seed: str) -> Path:
        """The disk as the next boot finds it."""
        self._advance(self._log.flushed(point))
        copy_sparse(self._flushed, self.cut_one, self._size)
        chance = random.Random(seed)
        fd = os.open(self.cut_one, os.O_RDWR)
        for offset, data in self._log.window(point):
            if mode is Mode.ALL or (mode is Mode.HALF and chance.random() < 0.5):
                os.pwrite(fd, data, offset)
        os.close(fd)
        return self.cut_one

    def _advance(self, flushed: int) -> None:
        if self._at is None or flushed < self._at:
            self._start_anew()
        fd = os.open(self._flushed, os.O_RDWR)
        for entry in self._log.entries[self._at : flushed]:
            for offset, data in entry.pieces():
                os.pwrite(fd, data, offset)
        os.close(fd)
        self._at = flushed

    def _start_anew(self) -> None:
        self._at = 0
        if self._begin is not None:
            copy_sparse(self._begin, self._flushed, self._size)
            return
        with self._flushed.open("wb") as file:
            file.truncate(self._size)


def copy_sparse(source: Path, target: Path, size: int) -> None:
    with source.open("rb", buffering=0) as old, target.open("wb", buffering=0) as new:
        new.truncate(size)
        for first, last in data_of(old.fileno()):
            for at in range(first, last, _MOST):
                data = os.pread(old.fileno(), min(_MOST, last - at), at)
                os.pwrite(new.fileno(), data, at)
