"""How a file is cut and hashed: pages that are stored, blocks that are looked at quickly.

Pages are 4096 bytes whatever the database's own page size is, so that any bytes can be captured.
"""

import hashlib
import os
from collections.abc import Iterator, Sequence

import xxhash

from cleveragents.infrastructure.files.entry import Kind
from cleveragents.infrastructure.files.tree_hash import SUM_MODULUS

PAGE = 4096
BLOCK_PAGES = 64
BLOCK = PAGE * BLOCK_PAGES
FAST = 16
STRONG = 32


def pages_in(size: int) -> int:
    return -(-size // PAGE)


def blocks_in(size: int) -> int:
    return -(-size // BLOCK)


def fast_hash(data: bytes | memoryview, seed: int) -> bytes:
    """Tells blocks of one file apart. The seed is random and private: nobody can aim at it."""
    return xxhash.xxh3_128_digest(data, seed=seed)


def fast_at(fast: bytes, block: int) -> bytes:
    return fast[block * FAST : (block + 1) * FAST]


def differing(old: bytes, new: bytes) -> Iterator[int]:
    """Numbers of the blocks whose fast hashes differ, or that only one side has."""
    if old == new:
        return
    for start in range(0, max(len(old), len(new)), FAST):
        if old[start : start + FAST] != new[start : start + FAST]:
            yield start // FAST


def read_block(fd: int, block: int, size: int) -> bytes:
    """The bytes of a block as far as the file of this size has any."""
    start = block * BLOCK
    return os.pread(fd, max(0, min(BLOCK, size - start)), start)


def strong_hash(page: bytes | memoryview) -> bytes:
    return hashlib.sha256(page).digest()


def strong_hashes(data: bytes) -> list[bytes]:
    """One hash per page of a block."""
    view = memoryview(data)
    return [strong_hash(view[start : start + PAGE]) for start in range(0, len(data), PAGE)]


def token(page: int, strong: bytes) -> int:
    """What a page adds to the sum over the whole file, modulo SUM_MODULUS."""
    return int.from_bytes(hashlib.sha256(page.to_bytes(8, "big") + strong).digest(), "big")


def tokens(first: int, hashes: Sequence[bytes]) -> int:
    return sum(token(first + index, strong) for index, strong in enumerate(hashes)) % SUM_MODULUS


def state_hash(total: int, kind: Kind, mode: int, size: int, target: bytes) -> str:
    facts = f"{kind.value} {mode} {size} ".encode() + target
    return "sha256:" + hashlib.sha256(total.to_bytes(32, "big") + facts).hexdigest()
