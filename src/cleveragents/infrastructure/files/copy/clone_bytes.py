"""Copying the bytes of one open file: shared blocks, a copy by the kernel, or plain reads.

In this order, each where the one before cannot be had: sharing costs nothing, the kernel copies
without us, and reading works everywhere. What does not work on a device is not tried there again.
Holes stay holes. What is not guaranteed: a file that is written meanwhile is copied as it happens
to be; whoever calls compares its status before and after.
"""

import errno
import fcntl
import os
from collections.abc import Iterator

from msgspec import Struct, field

from cleveragents.infrastructure.files.copy.copy_worker import CANNOT, FICLONE

_PIECE = 16 * 1024 * 1024
_BLOCK = 512


def copy_bytes(source: int, target: int, size: int) -> None:
    """Fill an empty file with so many bytes. Raises OSError if there are fewer."""
    ByteCopy().copy(source, target, os.fstat(source))
    if min(os.fstat(source).st_size, os.fstat(target).st_size) < size:
        raise OSError(errno.EIO, "the file ended while it was copied")
    os.ftruncate(target, size)


class ByteCopy(Struct):
    """Remembers by source device what does not work there, so that it is tried only once."""

    _no_clone: set[int] = field(default_factory=set[int])
    _no_range: set[int] = field(default_factory=set[int])

    def copy(self, source: int, target: int, found: os.stat_result) -> None:
        """`target` is empty; it gets the length of `found` and its holes."""
        size = found.st_size
        if not size or self._clone(source, target, found.st_dev):
            return
        sparse = found.st_blocks * _BLOCK < size
        for start, end in _extents(source, size) if sparse else ((0, size),):
            self._copy_range(source, target, (start, end), found.st_dev)
        if sparse:
            os.ftruncate(target, size)

    def _clone(self, source: int, target: int, device: int) -> bool:
        if device in self._no_clone:
            return False
        try:
            fcntl.ioctl(target, FICLONE, source)
        except OSError as error:
            if error.errno not in CANNOT:
                raise
            self._no_clone.add(device)
            return False
        return True

    def _copy_range(self, source: int, target: int, span: tuple[int, int], device: int) -> None:
        start, end = span
        while start < end and device not in self._no_range:
            try:
                done = os.copy_file_range(source, target, end - start, start, start)
            except OSError as error:
                if error.errno not in CANNOT:
                    raise
                self._no_range.add(device)
                break
            if not done:
                break  # shorter than it was, or a file system that only plain reading works on
            start += done
        _copy_plainly(source, target, start, end)


def _copy_plainly(source: int, target: int, start: int, end: int) -> None:
    while start < end:
        piece = os.pread(source, min(_PIECE, end - start), start)
        if not piece:
            return  # it has become shorter, which whoever compares its status will see
        done = 0
        while done < len(piece):
            done += os.pwrite(target, piece[done:], start + done)
        start += done


def _extents(source: int, size: int) -> Iterator[tuple[int, int]]:
    """The parts that hold data."""
    start = 0
    while start < size:
        try:
            data = os.lseek(source, start, os.SEEK_DATA)
            hole = os.lseek(source, data, os.SEEK_HOLE)
        except OSError as error:
            if error.errno == errno.ENXIO:
                return  # nothing but a hole is left
            if error.errno != errno.EINVAL:
                raise
            data, hole = start, size
        yield data, min(hole, size)
        start = hole
