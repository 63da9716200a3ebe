"""The first look at a tree of which git has proven most: rows without reading a byte (ADR 0108).

What: a file whose status is, to the nanosecond, what the index has of it holds the blob that the
index names. Its row is made of both: size, times, owner and blob from the index, and from the
listing, which was taken a moment ago, mode and the whole numbers of inode and device.
Who says which entries of the index may be believed at all is the state beside the files
(`ExtraState.proven`): where bytes are changed between file and blob, none is.
What is not guaranteed: that a file is among them. All others are read.
"""

from collections.abc import Mapping
from functools import cache
from typing import NamedTuple

from cleveragents.infrastructure.files.entry import NEVER, RACY_NS, Kind, ManifestRow
from cleveragents.infrastructure.snapshots.changes.listing import FILE, TreeListing, records
from cleveragents.infrastructure.snapshots.store.blob_keys import blob_key

_FILE = int(Kind.FILE)
_SHORT = 0xFFFFFFFF
_SECOND = 1_000_000_000
# INO DEV SIZE CTIME, as in a record of a listing.
_STATUS = b"%d %d %d %d.%09d0"


class Proof(NamedTuple):
    """The status that a file had when it held the blob `oid`, as an index has it: of the numbers of
    device and inode the last 32 bits, and of the mode whether it may be executed."""

    ctime: int
    ctime_rest: int
    mtime: int
    mtime_rest: int
    dev: int
    ino: int
    mode: int
    uid: int
    gid: int
    size: int
    oid: bytes
    flags: int

    @property
    def is_file(self) -> bool:
        return self.mode >> 12 == 0o10


def proven_rows(
    listing: TreeListing, proofs: Mapping[bytes, Proof], taken_ns: int
) -> dict[bytes, ManifestRow]:
    """`taken_ns` is a time before the listing was begun."""
    border = taken_ns - RACY_NS
    found: dict[bytes, ManifestRow] = {}
    for part in listing.parts:
        for record in records(part.text):
            if record[:1] != FILE:
                continue
            told, _, path = record.partition(b" ./")
            proof = proofs.get(path)
            if proof is None:
                continue
            mode, _, status = told.partition(b" ")
            # As text, which takes half as long; only of large numbers there is not enough of it.
            if status == _STATUS % (proof[5], proof[4], proof[9], proof[0], proof[1]):
                found[path] = _row(path, mode, proof, border)
            elif whole := _whole(status, proof):
                found[path] = _row(path, mode, whole, border)
    return found


def _row(path: bytes, mode: bytes, proof: Proof, border: int) -> ManifestRow:
    ctime, ctime_rest, mtime, mtime_rest, dev, ino, _, uid, gid, size, oid, _ = proof
    ctime_ns, mtime_ns = ctime * _SECOND + ctime_rest, mtime * _SECOND + mtime_rest
    certain = ctime_ns if ctime_ns < border and mtime_ns < border else NEVER
    key = blob_key(oid, size)
    fields = (path, _FILE, _mode(mode), size, mtime_ns, key, b"", uid, gid, certain, ino, dev)
    return ManifestRow._make(fields)


def _whole(status: bytes, proof: Proof) -> Proof | None:
    """With the numbers that the file has, if they end like those of the proof."""
    ino, dev, *rest = status.split(b" ")
    cut = b"%d %d %b" % (int(ino) & _SHORT, int(dev) & _SHORT, b" ".join(rest))
    if cut != _STATUS % (proof.ino, proof.dev, proof.size, proof.ctime, proof.ctime_rest):
        return None
    return proof._replace(ino=int(ino), dev=int(dev))


@cache
def _mode(told: bytes) -> int:
    return int(told[1:], 8)
