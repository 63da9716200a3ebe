"""Names of contents that git keeps and that nobody has read: the blob's own name, and its size.

A content that was read is named by its SHA-256, which has 32 bytes. One that git has proven to be
in a file (ADR 0108) is named by its blob: by another number of bytes, so that one name cannot be
taken for the other. The same bytes at the same path must have one name, or a file that was brought
back by hand would look changed: whoever reads a file whose first version has such a name asks
`same_bytes` before it gives it another.
"""

import hashlib
from collections.abc import Iterable

# Of larger files, and of empty ones, renames are told by their hash alone (`rename_detection.py`),
# and so they are read.
LARGEST_BLOB = 4 * 1024 * 1024
_MARK = b"g"
_SIZE_BYTES = 6
_HEAD = len(_MARK) + _SIZE_BYTES
_ALGORITHMS = {_HEAD + 20: "sha1", _HEAD + 32: "sha256"}


def blob_key(oid: bytes, size: int) -> bytes:
    return b"%b%b%b" % (_MARK, size.to_bytes(_SIZE_BYTES, "big"), oid)


def is_blob_key(key: bytes) -> bool:
    return len(key) in _ALGORITHMS and key.startswith(_MARK)


def oid_of(key: bytes) -> str:
    return key[_HEAD:].hex()


def size_of(key: bytes) -> int:
    return int.from_bytes(key[len(_MARK) : _HEAD], "big")


def same_bytes(key: bytes, size: int, pieces: Iterable[bytes]) -> bool:
    """Whether these are the bytes of the blob that `key` names."""
    return size == size_of(key) and blob_id(_ALGORITHMS[len(key)], size, pieces) == oid_of(key)


def blob_id(algorithm: str, size: int, pieces: Iterable[bytes]) -> str:
    digest = hashlib.new(algorithm, b"blob %d\0" % size, usedforsecurity=False)
    for piece in pieces:
        digest.update(piece)
    return digest.hexdigest()
