"""Owns what a sieve is: the status of all files and folders of a tree at one time (ADR 0036)."""

import os
from collections.abc import Sequence
from typing import NamedTuple

from cleveragents.infrastructure.files.entry import RACY_NS

_NEVER = -1


class Mark(NamedTuple):
    """What tells of a folder that nothing came to it or went from it."""

    path: bytes
    ino: int
    dev: int
    ctime_ns: int


class Sieve(NamedTuple):
    """Folders, parents first, and the files as two git indexes; `border` begins the second half."""

    folders: Sequence[Mark]
    border: bytes
    halves: tuple[bytes, bytes]


class Draft(NamedTuple):
    """The folders of a sieve. All that is known was compared with the tree at `since_ns` or
    later."""

    folders: Sequence[Mark]
    since_ns: int


def draft(root: int, folders: Sequence[bytes], since_ns: int) -> Draft:
    """`folders` were listed at `since_ns` or later. Raises OSError."""
    marks: list[Mark] = []
    for path in folders:
        found = folder_status(root, path)
        # One that changed while it was listed, or a moment before, may have changed again.
        old = found.st_ctime_ns < since_ns - RACY_NS
        ctime_ns = found.st_ctime_ns if old else _NEVER
        marks.append(Mark(path, found.st_ino, found.st_dev, ctime_ns))
    return Draft(marks, since_ns)


def folder_status(root: int, path: bytes) -> os.stat_result:
    return os.lstat(path, dir_fd=root) if path else os.fstat(root)
