"""Owns which files of a tree some living process writes through a shared memory mapping.

No event tells of such writes until the mapping ends. Processes that were there before the first
look and had no mapping then are not looked at again: those that work on a sandbox are started
by the plan, and few of them outlive their step.
"""

import os

_PROCESSES = "/proc"
_ESCAPES = ((b"\\012", b"\n"), (b"\\134", b"\\"))


class LiveMappings:
    def __init__(self, root: bytes) -> None:
        # The kernel names files by their real path.
        self._prefix = os.path.realpath(root).rstrip(b"/") + b"/"
        # As the kernel would write it, without relying on what it does to backslashes.
        self._told_prefix = self._prefix.partition(b"\\")[0].partition(b"\n")[0]
        self._older = {p for p in _alive() if not self._of_process(p)} | {str(os.getpid())}

    def paths(self) -> set[bytes]:
        """Paths below the root that are mapped for writing now, as far as we may know."""
        alive = _alive()
        # A number may be given out again, and then to a process that we do not know.
        self._older &= alive
        return {path for process in alive - self._older for path in self._of_process(process)}

    def _of_process(self, process: str) -> set[bytes]:
        try:
            with open(f"{_PROCESSES}/{process}/maps", "rb", buffering=0) as maps:
                told = maps.read()
        except OSError:
            return set()  # over, or not ours to look at
        if self._told_prefix not in told:
            return set()  # nearly all of them
        lines = [line for line in told.split(b"\n") if b"s " in line]
        # Address, permissions, offset, device, inode, path.
        fields = (line.split(None, 5) for line in lines)
        named = (_unescaped(f[5]) for f in fields if len(f) == 6 and f[1][1::2] == b"ws")
        return {p.removeprefix(self._prefix) for p in named if p.startswith(self._prefix)}


def _alive() -> set[str]:
    return {name for name in os.listdir(_PROCESSES) if name.isdecimal()}


def _unescaped(path: bytes) -> bytes:
    for escaped, plain in _ESCAPES:
        path = path.replace(escaped, plain)
    return path
