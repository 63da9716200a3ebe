"""How fast hashes are, and whether a second thread helps: `python benchmarks/hashing.py [MB]`.

The first table is hashing alone, in memory. The second reads a file that was written page by page,
as databases are, and hashes it with xxh3 by one and by two threads; best of five, since other work
can only make a turn slower.
"""

import hashlib
import os
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec

import xxhash

BLOCK = 256 << 10
PAGE = 4096
TURNS = 5


def main(megabytes: int) -> None:
    print(f"{megabytes} MB, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}; best of {TURNS}")
    data = memoryview(os.urandom(1 << 20) * megabytes)
    for name, hashed in _hashes().items():
        print(f"{name:<12} {_best(lambda hashed=hashed: hashed(data)):8.0f} ms")
    with tempfile.TemporaryFile() as file:
        for start in range(0, len(data), PAGE):
            os.pwrite(file.fileno(), data[start : start + PAGE], start)
        for threads in (1, 2):
            for what, work in (("read", _read), ("read + xxh3", _hash)):
                taken = _best(lambda n=threads, w=work: _shared(file.fileno(), len(data), n, w))
                print(f"{what:<12} {taken:8.0f} ms with {threads} threads")


def _hashes() -> dict[str, Callable[[memoryview], object]]:
    found: dict[str, Callable[[memoryview], object]] = {
        "xxh3": lambda data: xxhash.xxh3_128(data).digest(),
        "sha256": lambda data: hashlib.sha256(data).digest(),
        "blake2b": lambda data: hashlib.blake2b(data).digest(),
    }
    if find_spec("blake3") is not None:
        from blake3 import blake3  # pyright: ignore[reportMissingImports] - only compared with

        found["blake3"] = lambda data: blake3(data).digest()
    return found


def _shared(handle: int, size: int, threads: int, work: Callable[[int, int], object]) -> None:
    share = size // threads // BLOCK * BLOCK

    def part(number: int) -> None:
        end = size if number == threads - 1 else (number + 1) * share
        for start in range(number * share, end, BLOCK):
            work(handle, start)

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(part, range(threads)))


def _read(handle: int, start: int) -> bytes:
    return os.pread(handle, BLOCK, start)


def _hash(handle: int, start: int) -> bytes:
    return xxhash.xxh3_128(_read(handle, start)).digest()


def _best(task: Callable[[], object]) -> float:
    taken: list[float] = []
    for _ in range(TURNS):
        start = time.perf_counter()
        task()
        taken.append((time.perf_counter() - start) * 1000)
    return min(taken)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1024)
