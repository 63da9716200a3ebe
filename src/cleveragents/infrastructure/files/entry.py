"""What a snapshot knows about one path, and when a later look may take it as unchanged.

That rule is `ManifestRow.still_is`: marks that a change is sure to move. Where one cannot be sure
(`RACY_NS`), a row promises nothing, and the file is read again.
"""

import os
import stat
from collections.abc import Sequence
from enum import IntEnum
from typing import Any, NamedTuple

from cleveragents.infrastructure.files.layers.overlay_marks import is_whiteout

# Kernel timestamps move in ticks of up to 10 ms: a file touched this close to the moment it was
# looked at may change again without a visible change of its times.
RACY_NS = 50_000_000
NEVER = -1


class Kind(IntEnum):
    GONE = 0
    FILE = 1
    DIR = 2
    LINK = 3
    WHITEOUT = 4


class Entry(NamedTuple):
    """One path of a tree. `mtime_ns`, `uid` and `gid` are brought back but are not state. The mode
    of a folder may have the bit `OPAQUE`."""

    path: bytes
    kind: Kind
    mode: int = 0
    size: int = 0
    mtime_ns: int = 0
    hash: bytes = b""
    target: bytes = b""
    uid: int = -1
    gid: int = -1


class ManifestRow(NamedTuple):
    """An entry with the marks by which a later look tells that it is still the same.

    `ctime_ns` is NEVER where no such promise can be made. A process begins by reading one for
    every path, so it is what a row of the table is, and an Entry only where one is asked for. Its
    kind is a plain number, because a member of an enumeration takes a database twice as long.
    """

    path: bytes
    kind: int
    mode: int = 0
    size: int = 0
    mtime_ns: int = 0
    hash: bytes = b""
    target: bytes = b""
    uid: int = -1
    gid: int = -1
    ctime_ns: int = NEVER
    ino: int = 0
    dev: int = 0

    @property
    def entry(self) -> Entry:
        return entry_of(self)

    def still_is(self, status: "StatInfo") -> bool:
        if self.kind == Kind.DIR:
            # All there is to a folder is in its status; its times only tell of its children.
            return status.kind is Kind.DIR and self.mode == status.mode
        return (
            self.ctime_ns == status.ctime_ns
            and self.mtime_ns == status.mtime_ns
            and self.size == status.size
            and self.mode == status.mode
            and self.kind == status.kind
            and self.ino == status.ino
            and self.dev == status.dev
        )


TreeEntry = Entry | ManifestRow
"""What a path is, whoever tells it."""


class StatInfo(NamedTuple):
    """The part of an lstat that matters; `kind` is None for sockets, pipes and devices.

    One is made for every path at every look, so it is of the kind that is made fastest.
    """

    kind: Kind | None
    mode: int
    size: int
    mtime_ns: int
    ctime_ns: int
    ino: int
    dev: int
    uid: int
    gid: int
    taken_ns: int
    links: int

    def seen(self, path: bytes, *, hash: bytes = b"", target: bytes = b"") -> ManifestRow:
        # In the order of the fields, as in `status_of`.
        return ManifestRow(
            path,
            int(self.kind or Kind.GONE),
            self.mode,
            self.size,
            self.mtime_ns,
            hash,
            target,
            self.uid,
            self.gid,
            _promised(self.ctime_ns, self.mtime_ns, self.taken_ns),
            self.ino,
            self.dev,
        )


def file_seen(found: os.stat_result, taken_ns: int, path: bytes, hash: bytes) -> ManifestRow:
    """What `status_of` and `StatInfo.seen` make of a file, in half the time."""
    mtime_ns, ctime_ns = found.st_mtime_ns, found.st_ctime_ns
    fields = (
        path,
        _FILE,
        found.st_mode & MODE_BITS,
        found.st_size,
        mtime_ns,
        hash,
        b"",
        found.st_uid,
        found.st_gid,
        _promised(ctime_ns, mtime_ns, taken_ns),
        found.st_ino,
        found.st_dev,
    )
    return ManifestRow._make(fields)


def _promised(ctime_ns: int, mtime_ns: int, taken_ns: int) -> int:
    """The time to compare with later, if one can be sure that a change will show in it."""
    border = taken_ns - RACY_NS
    return ctime_ns if ctime_ns < border and mtime_ns < border else NEVER


def entry_of(row: Sequence[Any]) -> Entry:
    """From a row of a table, or a ManifestRow, that begins with the fields of an entry."""
    path, kind, mode, size, mtime_ns, key, target, uid, gid = row[:9]
    return Entry(path, _KIND_OF[kind], mode, size, mtime_ns, key, target, uid, gid)


def status_of(found: os.stat_result, taken_ns: int) -> StatInfo:
    mode = found.st_mode
    kind = KINDS.get(mode & KIND_BITS)
    if kind is None and is_whiteout(found):
        kind = Kind.WHITEOUT
    # In the order of the fields: naming them would double the time.
    return StatInfo(
        kind,
        # The bits of a link mean nothing, and the size of a folder is the file system's business.
        mode & MODE_BITS if kind is Kind.FILE or kind is Kind.DIR else 0,
        found.st_size if kind is Kind.FILE else 0,
        found.st_mtime_ns,
        found.st_ctime_ns,
        found.st_ino,
        found.st_dev,
        found.st_uid,
        found.st_gid,
        taken_ns,
        found.st_nlink,
    )


_KIND_OF = tuple(Kind)
_FILE = int(Kind.FILE)
KIND_BITS = 0o170000
MODE_BITS = 0o7777
KINDS = {stat.S_IFREG: Kind.FILE, stat.S_IFDIR: Kind.DIR, stat.S_IFLNK: Kind.LINK}


def same_state(one: TreeEntry | None, other: TreeEntry | None) -> bool:
    if one is None or other is None:
        return one is other
    return (one.kind, one.mode, one.hash, one.target) == (
        other.kind,
        other.mode,
        other.hash,
        other.target,
    )


def shown(path: bytes) -> str:
    """A path for people: bytes that are not UTF-8 become \\xNN."""
    return path.decode("utf-8", "backslashreplace")


def parent_of(path: bytes) -> bytes:
    return path.rpartition(b"/")[0]
