"""What a stat index is: the status of all files and folders of a tree at one time (ADR 0036).

A file may be skipped by it if the second in which it last changed was over when it was compared
with the manifest (`CERTAIN`): a change since then shows in its status. When one path counts as
unchanged: `ManifestRow.still_is` in `files/entry.py`. The other ways to know:
`changes/__init__.py`.
"""

import hashlib
import os
import struct
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from cleveragents.infrastructure.files.entry import NEVER, RACY_NS, Kind
from cleveragents.infrastructure.processes.on_path import program_on_path
from cleveragents.infrastructure.snapshots.changes.subprocesses import ParallelCommands

_HEADER = struct.Struct(">4sII")
_STATUS = struct.Struct(">10I20sH")
_SECOND = 1_000_000_000
_WORD = 0xFFFFFFFF
_LONGEST = 0xFFF
# Git takes an empty file for one that was never looked at, unless it is known to be empty.
_EMPTY = "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"
_SOME = "01" * 20
# From one to eight zeros, so that the next record begins at a multiple of eight.
_ENDS = [b"\0" * (8 - (_STATUS.size + length) % 8) for length in range(8)]

# Git compares whole seconds. So a path is certain if the second in which it changed was over when
# it was compared, by a clock that may be behind by a tick.
_OVER = f"(ctime_ns / {_SECOND} + 1) * {_SECOND} + {RACY_NS}"
CERTAIN = f"(ctime_ns <> {NEVER} AND {_OVER} < :since_ns)"
_LINK = f"kind = {int(Kind.LINK)}"
# What is not certain gets a time that no file has. All are columns of the table `entries`.
FIELDS = f"""
    path,
    CASE WHEN {CERTAIN} THEN ctime_ns / {_SECOND} & {_WORD} ELSE 0 END,
    ctime_ns % {_SECOND} & {_WORD},
    mtime_ns / {_SECOND} & {_WORD},
    mtime_ns % {_SECOND} & {_WORD},
    dev & {_WORD},
    ino & {_WORD},
    CASE WHEN {_LINK} THEN {0o120000} WHEN mode & {0o100} THEN {0o100755} ELSE {0o100644} END,
    uid & {_WORD},
    gid & {_WORD},
    CASE WHEN {_LINK} THEN length(target) ELSE size & {_WORD} END,
    CASE WHEN {_LINK} OR size THEN x'{_SOME}' ELSE x'{_EMPTY}' END,
    min(length(path), {_LONGEST})
"""


def index_of(rows: Iterable[tuple[Any, ...]]) -> bytes:
    """The index of files and links, each with its FIELDS, in the order of their paths."""
    pack = _STATUS.pack
    parts = [pack(*row[1:]) + row[0] + _ENDS[len(row[0]) % 8] for row in rows]
    told = _HEADER.pack(b"DIRC", 2, len(parts)) + b"".join(parts)
    return told + hashlib.sha1(told, usedforsecurity=False).digest()


# The repository is an empty one of ours, and nobody writes to it: the one of the sandbox may hold
# settings that make git run a program.
_SETTINGS = {
    "GIT_WORK_TREE": ".",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_OPTIONAL_LOCKS": "0",
}


class CannotSiftError(Exception):
    """Too much changed, or git cannot be asked: look at everything."""


def compare(programs: ParallelCommands, index: bytes) -> None:
    """Begin to compare the files of an index. Raises CannotSiftError or OSError."""
    git = program_on_path("git")
    if git is None:
        raise CannotSiftError
    told = os.memfd_create("index")
    try:
        with open(told, "wb", closefd=False) as file:
            file.write(index)
        env = {**_SETTINGS, "GIT_DIR": _empty(), "GIT_INDEX_FILE": f"/proc/self/fd/{told}"}
        programs.start([git, "diff-files", "--name-only", "--no-renames", "-z"], env, (told,))
    finally:
        os.close(told)


def paths_in(answer: bytes) -> list[bytes]:
    """The files that changed."""
    return answer.split(b"\0")[:-1]


def _empty() -> str:
    return os.path.join(os.path.dirname(__file__), "empty.git")


_NEVER = -1
# Of 10 000 files, 1 000 to look at cost a command 24 ms, and two lists of all of them 20 ms.
_FEW_TOUCHED = 300
_TOUCHED_SHARE = 50


class FolderStamp(NamedTuple):
    """What tells of a folder that nothing came to it or went from it."""

    path: bytes
    ino: int
    dev: int
    ctime_ns: int


class StatIndex(NamedTuple):
    """Folders, parents first, and the files as two git indexes; `border` begins the second half."""

    folders: Sequence[FolderStamp]
    border: bytes
    halves: tuple[bytes, bytes]

    def is_worn(self, touched: int) -> bool:
        """Whether looking at so many paths each time costs more than making it anew."""
        files = sum(_HEADER.unpack_from(half)[2] for half in self.halves)
        return touched > max(_FEW_TOUCHED, files // _TOUCHED_SHARE)


class StatIndexDraft(NamedTuple):
    """The folders of a stat index. All that is known was compared with the tree at `since_ns` or
    later."""

    folders: Sequence[FolderStamp]
    since_ns: int


def draft(root: int, folders: Sequence[bytes], since_ns: int) -> StatIndexDraft:
    """`folders` were listed at `since_ns` or later. Raises OSError."""
    marks: list[FolderStamp] = []
    for path in folders:
        found = folder_status(root, path)
        # One that changed while it was listed, or a moment before, may have changed again.
        old = found.st_ctime_ns < since_ns - RACY_NS
        ctime_ns = found.st_ctime_ns if old else _NEVER
        marks.append(FolderStamp(path, found.st_ino, found.st_dev, ctime_ns))
    return StatIndexDraft(marks, since_ns)


def folder_status(root: int, path: bytes) -> os.stat_result:
    return os.lstat(path, dir_fd=root) if path else os.fstat(root)
