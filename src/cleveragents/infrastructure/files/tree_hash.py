"""The hash that proves a tree: a sum over its entries, so that one change costs one step.

Each entry counts with the SHA-256 of its path, kind, mode, contents and target, added up modulo
2^256: the order does not matter, and a change is taken out and put in. After a restore, what was
written is read back and has to come to the hash of the snapshot
(`snapshots/tree/restore/whole.py`). It guards against accidents; who may choose contents
freely could find two trees with one sum, and reading back file by file shows that too.
"""

import hashlib
from functools import cache

from cleveragents.infrastructure.files.entry import TreeEntry

SUM_MODULUS = 1 << 256


@cache
def _length(of: int) -> bytes:
    return of.to_bytes(8, "big")


@cache
def _between(kind: int, mode: int, hash_length: int) -> bytes:
    return b"%b%c%b%b%b" % (
        _length(1),
        kind,
        _length(4),
        mode.to_bytes(4, "big"),
        _length(hash_length),
    )


def token(of: TreeEntry) -> int:
    """Its share of the tree's sum."""
    path, key = of.path, of.hash
    # Each part with its length before it, and the target last.
    between = _between(of.kind, of.mode, len(key))
    told = b"".join((_length(len(path)), path, between, key, of.target))
    return int.from_bytes(hashlib.sha256(told).digest(), "big")


def state_hash(total: int, identity: str) -> str:
    """The hash of a whole state: the sum over its entries, and what belongs to it beside files."""
    digest = hashlib.sha256(total.to_bytes(32, "big") + identity.encode("utf-8", "surrogateescape"))
    return "sha256:" + digest.hexdigest()
