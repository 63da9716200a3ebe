"""What proves that a copy is what its original was."""

import os
import stat
from typing import NamedTuple


class CopyProof(NamedTuple):
    """Of a copy that was found to have the kind, mode, size and time of its original.

    `of_...` are the marks of the original when it was read, the rest those of the finished copy.
    """

    mode: int
    size: int
    mtime_ns: int
    of_ctime_ns: int
    of_ino: int
    of_dev: int
    ctime_ns: int
    ino: int
    dev: int
    uid: int
    gid: int


def proof_of_copy(found: os.stat_result, made: os.stat_result) -> CopyProof | None:
    """None where the copy is not what the original was. Of a folder, size and time mean nothing."""
    mode, size, mtime = found.st_mode, found.st_size, found.st_mtime_ns
    told = (made.st_size, made.st_mtime_ns) == (size, mtime) or stat.S_ISDIR(mode)
    if not told or made.st_mode != mode:
        return None
    return CopyProof(
        *(mode, size, mtime, found.st_ctime_ns, found.st_ino, found.st_dev),
        *(made.st_ctime_ns, made.st_ino, made.st_dev, made.st_uid, made.st_gid),
    )
