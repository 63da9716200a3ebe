"""What the store says about room and rights: how much is taken, what to do when refused."""

import errno
import os
import sqlite3

from cleveragents.domain.errors import SnapshotFailedError

_DISK_RESERVE = 1 << 20
_HINTS = {
    **dict.fromkeys(
        (errno.ENOSPC, errno.EDQUOT),
        "free some space on the disk of {}, then run the command again",
    ),
    **dict.fromkeys(
        (errno.EACCES, errno.EPERM, errno.EROFS),
        "make {} readable and writable for yourself, then run the command again",
    ),
    **dict.fromkeys(
        (errno.ENOTDIR, errno.EEXIST, errno.EISDIR, errno.ELOOP),
        "something else is in its place: `ls -ld {}`; move it away, then run the command again",
    ),
    errno.EFBIG: "files of this size are not allowed: see `ulimit -f`; raise it for {}",
    errno.EMFILE: "too many files are open: raise `ulimit -n`, then run the command again",
}
_ANY_HINT = "check the disk and the permissions of {}, then run the command again"


def refused(what: str, path: str, error: OSError) -> SnapshotFailedError:
    """The error for a file or folder of the store that the system does not let us use."""
    reason = error.strerror or str(error)
    return SnapshotFailedError(f"{what}: {path}: {reason}", hint_for(error.errno, path))


def hint_for(number: int | None, path: str) -> str:
    return _HINTS.get(number or 0, _ANY_HINT).format(path)


def keep_within(db: sqlite3.Connection, path: str, limit_bytes: int) -> None:
    """Let the store's files altogether not grow beyond this, by means of the one at `path`."""
    if not limit_bytes:
        return
    folder, name = os.path.split(path)
    page_size = db.execute("PRAGMA page_size").fetchone()[0]
    pages = (limit_bytes - bytes_of_others(folder, name)) // page_size
    db.execute(f"PRAGMA max_page_count={max(1, pages)}")


def bytes_of_others(folder: str, ours: str) -> int:
    """What the files of `folder` take whose names do not begin with `ours`."""
    with os.scandir(folder) as found:
        return sum(size_of(entry) for entry in found if not entry.name.startswith(ours))


def size_of(entry: os.DirEntry[str]) -> int:
    """Other processes come and go: their journals are there one moment and gone the next."""
    try:
        return entry.stat(follow_symlinks=False).st_size
    except FileNotFoundError:
        return 0


def has_room(folder: str) -> bool:
    """Whether it was our limit that was reached, and not the end of the disk."""
    disk = os.statvfs(folder)
    return disk.f_bavail * disk.f_frsize > _DISK_RESERVE
