"""What a git index says, read without git: as `git ls-files --stage -v -z` would list it.

For an index that was just made by us. The plain form only, version 2 without parts that a reader
must know: everything else (split, sparse, paths left out of the checkout) is a question for git.
Where a sandbox's index is captured and restored: `state.py`.
"""

import struct

from msgspec import Struct

from cleveragents.infrastructure.sandbox.git.proofs.index_entries import entries_of
from cleveragents.infrastructure.snapshots.tree.first_look import Proof

_HEADER = struct.Struct(">4sII")
_PLAIN = 2


class NewIndex(Struct, frozen=True):
    """Its entries, and as git would list them."""

    entries: dict[bytes, Proof]
    listing: bytes


def entries_at(path: str) -> int:
    """How many paths an index names, of any version; 0 if there is none."""
    try:
        with open(path, "rb") as file:
            magic, _, count = _HEADER.unpack(file.read(_HEADER.size))
    except (OSError, struct.error):
        return 0
    return count if magic == b"DIRC" else 0


def read_new_index(data: bytes, oid_bytes: int) -> NewIndex | None:
    """None where git has to be asked. `oid_bytes` is how long the name of an object is."""
    entries = entries_of(data, oid_bytes)
    if entries is None:
        return None
    _, version, count = _HEADER.unpack_from(data)
    if version != _PLAIN or len(entries) != count:
        return None
    lines = [
        b"H %06o %b 0\t%b\0" % (entry[6], entry[10].hex().encode(), path)
        for path, entry in entries.items()
    ]
    return NewIndex(entries, b"".join(lines))
