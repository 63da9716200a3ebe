"""Which files of a tree some living process may have written without an event.

What is written through a shared memory mapping is told by nothing until both the mapping and the
descriptor that it was made with are closed. Processes that were there before the first look and
had no mapping then are not looked at again, unless they are ours: those that work on a sandbox are
started by the plan, and few of them outlive their step.
In which order: who lives; what each has mapped for writing; what ours have open for writing. What
is mapped now, or was at the last look, is read again. So is what is only open, unless the file
system tells of mapped writes and its status has not moved. All stay named until they are stored.
What is not guaranteed: processes that we may not look into, and strangers from before the first
look that map a file of the sandbox later.
"""

import ctypes
import errno
import fcntl
import os
import stat
import struct
from collections.abc import Collection
from contextlib import suppress
from io import FileIO
from typing import NamedTuple

from cleveragents.infrastructure.files.filesystems import tells_of_mapped_writes
from cleveragents.infrastructure.files.layers.known_layers import known_layers
from cleveragents.infrastructure.files.rooted_folder import RootedFolder
from cleveragents.infrastructure.files.walk import status_at
from cleveragents.infrastructure.processes.process_tree import descendants
from cleveragents.infrastructure.snapshots.changes.tracker import ManifestView

_ESCAPES = ((b"\\012", b"\n"), (b"\\134", b"\\"))
# PROCMAP_QUERY (Linux 6.11): the next mapping of one kind, while the text lists all of them.
_QUERY = struct.Struct("=9Q4I2Q")
_END, _INODE, _LENGTH = 4, 8, 11
_REQUEST = 3 << 30 | _QUERY.size << 16 | ord("f") << 8 | 17
_WRITABLE, _SHARED, _THIS_OR_NEXT, _OF_A_FILE = 0x02, 0x08, 0x10, 0x20
_WANTED = _WRITABLE | _SHARED | _THIS_OR_NEXT | _OF_A_FILE
_LONGEST = 4200
_OVER = (errno.ENOENT, errno.ESRCH)
_PROCESSES = "/proc"


class Written(NamedTuple):
    """A file by the name that was used for it, which may be one of several."""

    path: bytes
    inode: int


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
        opened = {file for process in ours for file in opened_by(process)}
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
        return frozenset(path for file in files if (path := self._named(file)) is not None)

    def _named(self, file: Written) -> bytes | None:
        """A step sees its sandbox at the project's own path, and so the kernel names files by that:
        what an ending of it leads to in the sandbox is the same file, if its inode is. In a layer
        it may have another one, and then whatever has such an ending is read once too often."""
        if file.path.startswith(self._prefix):
            return file.path.removeprefix(self._prefix)
        parts = file.path.split(b"/")[1:]
        for first in range(len(parts)):
            path = b"/".join(parts[first:])
            with suppress(OSError, ValueError):
                found = os.lstat(self._prefix + path)
                if found.st_ino == file.inode or self._is_file_of_layer(path, found):
                    return path
        return None

    def _is_file_of_layer(self, path: bytes, found: os.stat_result) -> bool:
        if not stat.S_ISREG(found.st_mode) or b"/" not in path:
            return False
        layers = known_layers(os.fsdecode(self._prefix.rstrip(b"/")))
        return any(path.startswith(os.fsencode(layer) + b"/") for layer in layers)


def _alive() -> set[str]:
    return {name for name in os.listdir(_PROCESSES) if name.isdecimal()}


def _ours() -> set[str]:
    return {str(process) for process in descendants(os.getpid())}


# --- what the kernel says of one process --------------------------------------------------------


def mapped_by(process: str) -> set[Written]:
    """What it has mapped for writing, as far as we may know."""
    try:
        with open(f"{_PROCESSES}/{process}/maps", "rb", buffering=0) as maps:
            return _written_through(maps)
    except OSError:
        return set()  # over, or not ours to look at


def opened_by(process: str) -> set[Written]:
    """The files that it has open for writing."""
    folder = f"{_PROCESSES}/{process}/fd"
    try:
        numbers = os.listdir(folder)
    except OSError:
        return set()
    found: set[Written] = set()
    for number in numbers:
        with suppress(OSError):  # closed since then
            place = f"{folder}/{number}"
            path = os.fsencode(os.readlink(place))
            if path.startswith(b"/") and _is_for_writing(process, number):
                found.add(Written(path, os.stat(place).st_ino))
    return found


def _is_for_writing(process: str, number: str) -> bool:
    with open(f"{_PROCESSES}/{process}/fdinfo/{number}", "rb", buffering=0) as info:
        flags = next(line for line in info.read(4096).split(b"\n") if line.startswith(b"flags:"))
    return int(flags.split()[1], 8) & os.O_ACCMODE != os.O_RDONLY


def _written_through(maps: FileIO) -> set[Written]:
    """The files' real paths, from an open /proc/PID/maps. Raises OSError."""
    try:
        return _asked(maps)
    except OSError:
        # An older kernel, or a path longer than any other.
        return _read(maps)


def _asked(maps: FileIO) -> set[Written]:
    name = ctypes.create_string_buffer(_LONGEST)
    found: set[Written] = set()
    address = 0
    while True:
        query = bytearray(_query(address, ctypes.addressof(name)))
        try:
            fcntl.ioctl(maps, _REQUEST, query, True)  # noqa: FBT003 - the library's only way
        except OSError as error:
            if error.errno in _OVER:
                return found
            raise
        told = _QUERY.unpack(query)
        address = told[_END]
        found.add(Written(name.raw[: told[_LENGTH] - 1], told[_INODE]))


def _query(address: int, name: int) -> bytes:
    results = (0,) * 6
    return _QUERY.pack(_QUERY.size, _WANTED, address, *results, 0, 0, _LONGEST, 0, name, 0)


def _read(maps: FileIO) -> set[Written]:
    lines = [line for line in maps.read().split(b"\n") if b"s " in line]
    # Address, permissions, offset, device, inode, path.
    fields = (line.split(None, 5) for line in lines)
    return {
        Written(_unescaped(f[5]), int(f[4])) for f in fields if len(f) == 6 and f[1][1::2] == b"ws"
    }


def _unescaped(path: bytes) -> bytes:
    for escaped, plain in _ESCAPES:
        path = path.replace(escaped, plain)
    return path


class QuietWrites:
    """Which known paths of a tree a living process may have changed without a sign of it.

    For one tree as long as this process works on it, however often it is compared anew: who
    came after the first look stays known. `mapped` are the paths that were found mapped for writing
    by the last look.
    """

    def __init__(self, root: bytes, bystanders: ProcessesWithoutMappings) -> None:
        self._root = root
        self._bystanders = bystanders
        self._mappings: LiveMappings | None = None
        self.mapped: frozenset[bytes] = frozenset()
        self._pending: set[bytes] = set()

    def begin(self) -> LiveMappings:
        """Find out who is there already; takes a while at the first time."""
        if self._mappings is None:
            self._mappings = LiveMappings(self._root, self._bystanders)
        return self._mappings

    def look(
        self, anchor: RootedFolder, known: ManifestView, linked: Collection[bytes]
    ) -> set[bytes]:
        """Those since the last `acknowledge`. `linked` are files with several names, of
        which another one may be mapped."""
        before, writers = self.mapped, self.begin().now()
        twins = {p for p in linked if (s := known.seen.get(p)) and s.ino in writers.inodes}
        self.mapped = writers.mapped | twins
        # What is written while it is mapped need not show in its status, and may have been written
        # until it was not mapped any more. That somebody maps it does, where the file system is
        # told when he begins to write.
        doubtful = self.mapped | before
        opened = writers.opened - doubtful
        if opened and tells_of_mapped_writes(anchor.folder(b"")):
            opened = {path for path in opened if _differs(anchor, known, path)}
        self._pending |= {path for path in doubtful | opened if path in known.seen}
        return set(self._pending)

    def acknowledge(self) -> None:
        """What was found is stored."""
        self._pending.clear()


def _differs(anchor: RootedFolder, known: ManifestView, path: bytes) -> bool:
    seen, status = known.seen.get(path), status_at(anchor, path)
    return seen is None or status is None or not seen.still_is(status)
