"""Owns compressing contents beside other work: one lot in the background while the next is read."""

import os
import threading
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import zstandard

# So many are compressed before threads have begun.
_FEW = 64
_MOST_THREADS = 4
_LEVEL = 1


class Piece(NamedTuple):
    key: bytes
    data: bytes


class Packing:
    """Takes lots of contents, and gives all of them back compressed at the end."""

    def __init__(self) -> None:
        self._given: list[Piece] = []
        self._begun = 0
        self._packed: dict[bytes, bytes] = {}
        self._worker: threading.Thread | None = None

    def add(self, lot: Sequence[Piece]) -> None:
        """Returns at once. A lot is as large as it pays to begin a thread for."""
        self._given += lot
        if self._worker is not None and self._worker.is_alive():
            return  # with the next lot
        work, self._begun = self._given[self._begun :], len(self._given)
        # Whoever reads the next lot needs a processor too.
        self._worker = threading.Thread(target=self._pack, args=(work, _processors() - 1))
        self._worker.start()

    def finish(self, last: Sequence[Piece]) -> dict[bytes, bytes]:
        """All of them by key, with what is given now."""
        self._given += last
        self._pack(self._given[self._begun :], _processors())
        if self._worker is not None:
            self._worker.join()
        # A thread cannot tell anybody that it failed; whoever called can be told.
        self._pack([piece for piece in self._given if piece.key not in self._packed], 1)
        packed = self._packed
        self._given, self._begun, self._packed, self._worker = [], 0, {}, None
        return packed

    def _pack(self, lot: Sequence[Piece], threads: int) -> None:
        packed = _compressed([piece.data for piece in lot], max(1, threads))
        self._packed.update(zip((piece.key for piece in lot), packed, strict=True))


def _processors() -> int:
    return min(_MOST_THREADS, len(os.sched_getaffinity(0)))


def _compressed(contents: list[bytes], threads: int) -> Iterable[bytes]:
    packer = zstandard.ZstdCompressor(level=_LEVEL)
    if len(contents) < _FEW or "multi_compress_to_buffer" not in zstandard.backend_features:
        return map(packer.compress, contents)
    # A list of bytes is one of their kind, which the types of the library do not see.
    found = packer.multi_compress_to_buffer(contents, threads=threads)  # pyright: ignore[reportArgumentType]
    return (found[number].tobytes() for number in range(len(found)))
