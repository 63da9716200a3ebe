"""Files of a sandbox written where they are, while nobody else has them open.

What: the bytes, the mode and the time of a regular file with one name become what they should be.
Nothing is made and nothing freed, which is what takes the time when many files are replaced.
In which order: the file is opened, and a lease taken on it, which the kernel gives only if nobody
else has it open or mapped, or executes it; whoever opens it after that waits until it is closed.
Then the bytes, the size, the mode, and the time last.
Why that is enough: the restore is on record, its contents are durable in the store, and what a kill
leaves has another ctime than any row that is believed, so it is read and restored again (ADR 0087).
What is not guaranteed: that a file is whole after a kill, before the restore was done again. So
this is for sandboxes only. Extended attributes, which no snapshot has, stay as they are.
"""

import os
import signal
import stat
from collections.abc import Iterable
from fcntl import F_SETLEASE, F_SETSIG, F_WRLCK, fcntl

from cleveragents.infrastructure.files.entry import MODE_BITS, Entry, Kind
from cleveragents.infrastructure.files.rooted_folder import RootedFolder, opener
from cleveragents.infrastructure.files.update.rooted_writer import FEW
from cleveragents.infrastructure.snapshots.tree.diff import PathDifference

# A pipe that somebody put there must not make anybody wait.
_FLAGS = os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_LARGEST = 4 * 1024 * 1024
_MOST_BYTES = 128 * 1024 * 1024


def fit_in_place(anchor: RootedFolder, differences: Iterable[PathDifference]) -> frozenset[bytes]:
    """The contents of files that stay files, as far as they fit into memory and onto the disk.

    Of a few files each is replaced: for them it is as fast, and nobody sees a half of one.
    """
    files = [
        new
        for _, old, new in differences
        if old is not None and new is not None and old.kind is new.kind is Kind.FILE
    ]
    if len(files) <= FEW:
        return frozenset()
    found: set[bytes] = set()
    space, needed = os.fstatvfs(anchor.folder(b"")), 0
    held = 0
    for entry in files:
        # Some file systems write what is written anew to another place.
        needed += entry.size + space.f_frsize
        if entry.size > _LARGEST or entry.hash in found:
            continue
        held += entry.size
        if held > _MOST_BYTES:
            break
        found.add(entry.hash)
    unlimited = not space.f_blocks
    return (
        frozenset(found) if unlimited or needed < space.f_bavail * space.f_frsize else frozenset()
    )


class InPlaceWriter:
    """Below one root, on its own file system."""

    def __init__(self, anchor: RootedFolder) -> None:
        root = anchor.folder(b"")
        self._open = opener(root, _FLAGS)
        self._device = os.fstat(root).st_dev

    def write(self, entry: Entry, data: bytes, time_ns: int) -> bool:
        """False if this file has to be replaced; then it is as it was. Raises OSError."""
        try:
            fd = self._open(entry.path)
        except OSError:
            return False  # not there, closed to us, executed, or a link is on the way
        try:
            found = os.fstat(fd)
            if not self._may_be_written(found, entry) or not _is_ours_alone(fd):
                return False
            _write(fd, data)
            if found.st_size > len(data):
                os.ftruncate(fd, len(data))
            if found.st_mode & MODE_BITS != entry.mode:
                os.fchmod(fd, entry.mode)
            os.utime(fd, ns=(time_ns, time_ns))
            return True
        finally:
            os.close(fd)

    def _may_be_written(self, found: os.stat_result, entry: Entry) -> bool:
        return (
            stat.S_ISREG(found.st_mode)
            and found.st_nlink == 1
            and found.st_dev == self._device
            and bool(found.st_mode & stat.S_IWUSR)
            # Writing takes the bits that lend rights away.
            and not (found.st_mode | entry.mode) & (stat.S_ISUID | stat.S_ISGID)
            and (found.st_uid, found.st_gid) == (entry.uid, entry.gid)
        )


def _is_ours_alone(fd: int) -> bool:
    """If it is, it stays so until it is closed: whoever opens it has to wait for that."""
    try:
        # We are told of those who wait by a signal, which would end us if it were the usual one.
        fcntl(fd, F_SETSIG, signal.SIGURG)
        fcntl(fd, F_SETLEASE, F_WRLCK)
    except OSError:
        return False  # somebody else has it open, or there are no leases here
    return True


def _write(fd: int, data: bytes) -> None:
    written = os.write(fd, data)
    while written < len(data):
        written += os.write(fd, data[written:])
