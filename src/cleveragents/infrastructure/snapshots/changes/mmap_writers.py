"""Which files of a tree some living process may have written without an event.

What is written through a shared memory mapping is told by nothing until both the mapping and the
descriptor that it was made with are closed. Processes that were there before the first look and
had no mapping then are not looked at again, unless they are ours: those that work on a sandbox are
started by the plan, and few of them outlive their step.
"""

import os
from collections.abc import Collection
from typing import NamedTuple

from cleveragents.infrastructure.processes.process_tree import descendants
from cleveragents.infrastructure.snapshots.changes.mapped_files import (
    Written,
    mapped_by,
    opened_by,
)

_PROCESSES = "/proc"


class ProcessesWithoutMappings:
    """Processes that wrote to no file in this way when they were first seen.

    Nearly all of them, and reading what one of them has mapped takes the system long: so this is
    found out once for all trees.
    """

    def __init__(self) -> None:
        self._known: set[str] = set()

    def among(self, strangers: set[str]) -> set[str]:
        """Not to be asked about those that are ours: they may begin to at any time."""
        known = self._known & strangers
        # Another thread may do the same at the same time, which is only more work.
        self._known = known | {p for p in strangers - known if not mapped_by(p)}
        return self._known & strangers


class MmapWriters(NamedTuple):
    """Paths below the root that are `mapped` for writing now, as far as we may know, and those
    that are only `opened`, by processes of ours. `inodes` are those of all files that are mapped,
    whatever they are called."""

    mapped: frozenset[bytes]
    opened: frozenset[bytes]
    inodes: frozenset[int]


class LiveMappings:
    def __init__(self, root: bytes, bystanders: ProcessesWithoutMappings) -> None:
        # The kernel names files by their real path.
        self._prefix = os.path.realpath(root).rstrip(b"/") + b"/"
        self._ours = _ours()
        strangers = _alive() - self._ours
        idle = bystanders.among(strangers)
        others = {p for p in strangers - idle if not self._below(mapped_by(p))}
        self._older = idle | others | {str(os.getpid())}
        self._judged = strangers | self._ours

    def now(self) -> MmapWriters:
        alive = _alive()
        # A number may be given out again, and then to a process that we do not know.
        self._older &= alive
        self._judge(alive)
        living = alive - self._older
        mapped = {file for process in living for file in mapped_by(process)}
        ours = living & self._ours
        opened = {file for process in ours for file in opened_by(process, self._prefix)}
        return MmapWriters(
            mapped=self._below(mapped),
            opened=self._below(opened) - self._below(mapped),
            inodes=frozenset(file.inode for file in mapped),
        )

    def _judge(self, alive: set[str]) -> None:
        """Who is ours is asked once for each: nobody becomes it later."""
        self._judged &= alive
        if alive - self._judged:
            self._ours = _ours()
        self._judged = alive

    def _below(self, files: Collection[Written]) -> frozenset[bytes]:
        prefix = self._prefix
        paths = (file.path for file in files)
        return frozenset(path.removeprefix(prefix) for path in paths if path.startswith(prefix))


def _alive() -> set[str]:
    return {name for name in os.listdir(_PROCESSES) if name.isdecimal()}


def _ours() -> set[str]:
    return {str(process) for process in descendants(os.getpid())}
