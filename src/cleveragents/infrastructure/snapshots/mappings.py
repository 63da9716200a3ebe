"""Owns which files of a tree some living process writes through a shared memory mapping.

No event tells of such writes until the mapping ends. Processes that were there before the first
look and had no mapping then are not looked at again: those that work on a sandbox are started
by the plan, and few of them outlive their step.
"""

import os

from cleveragents.infrastructure.snapshots.mapped_files import written_through

_PROCESSES = "/proc"


class Bystanders:
    """Processes that wrote to no file in this way when they were first seen.

    Nearly all of them, and reading what one of them has mapped takes the system long: so this is
    found out once for all trees.
    """

    def __init__(self) -> None:
        self._known: set[str] = set()

    def among(self, alive: set[str]) -> set[str]:
        known = self._known & alive
        # Another thread may do the same at the same time, which is only more work.
        self._known = known | {p for p in alive - known if not _written_by(p)}
        return self._known & alive


class LiveMappings:
    def __init__(self, root: bytes, bystanders: Bystanders) -> None:
        # The kernel names files by their real path.
        self._prefix = os.path.realpath(root).rstrip(b"/") + b"/"
        alive = _alive()
        idle = bystanders.among(alive)
        others = {p for p in alive - idle if not self._of_process(p)}
        self._older = idle | others | {str(os.getpid())}

    def paths(self) -> set[bytes]:
        """Paths below the root that are mapped for writing now, as far as we may know."""
        alive = _alive()
        # A number may be given out again, and then to a process that we do not know.
        self._older &= alive
        return {path for process in alive - self._older for path in self._of_process(process)}

    def _of_process(self, process: str) -> set[bytes]:
        named = _written_by(process)
        return {p.removeprefix(self._prefix) for p in named if p.startswith(self._prefix)}


def _written_by(process: str) -> set[bytes]:
    try:
        with open(f"{_PROCESSES}/{process}/maps", "rb", buffering=0) as maps:
            return written_through(maps)
    except OSError:
        return set()  # over, or not ours to look at


def _alive() -> set[str]:
    return {name for name in os.listdir(_PROCESSES) if name.isdecimal()}
