"""Owns compressing many contents at once, beside what whoever gave them does meanwhile."""

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor

import zstandard

# So much is compressed before a thread has begun.
_LITTLE_BYTES = 64 * 1024
_MOST_THREADS = 4
_LEVEL = 1


def packing(contents: list[bytes]) -> Callable[[], Iterable[bytes]]:
    """Begins; what it gives back waits for the end, and has each of them in this order."""
    packer = zstandard.ZstdCompressor(level=_LEVEL)
    little = len(contents) < 2 or sum(map(len, contents)) < _LITTLE_BYTES
    if little or "multi_compress_to_buffer" not in zstandard.backend_features:
        return lambda: map(packer.compress, contents)
    # One call for all, in which the interpreter is free: threads that come back to it after every
    # few contents keep everybody else waiting for longer than they gain.
    threads = max(1, min(_MOST_THREADS, len(os.sched_getaffinity(0)) - 1))
    pool = ThreadPoolExecutor(1)
    # A list of bytes is one of their kind, which the types of the library do not see.
    found = pool.submit(packer.multi_compress_to_buffer, contents, threads=threads)  # pyright: ignore[reportArgumentType]
    pool.shutdown(wait=False)
    return lambda: (segment.tobytes() for segment in found.result())
