"""Owns writing down the status of many files as a git index, so that git can compare them with now.

Only the status in it is true: the objects that it names do not exist, and nobody asks for them.
"""

import hashlib
import struct
from collections.abc import Iterable
from typing import Any

from cleveragents.infrastructure.files.entry import NEVER, RACY_NS, Kind

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
