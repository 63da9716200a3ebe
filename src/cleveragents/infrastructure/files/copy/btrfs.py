"""Subvolumes of btrfs: folders of which a copy is made at once, and takes no room (ADR 0026).

Everywhere else the same calls make plain folders, or say that they made nothing.
"""

import fcntl
import os
import stat
import struct
from contextlib import suppress

from cleveragents.infrastructure.files.copy.copy_proof import CopyProof, proof_of_copy
from cleveragents.infrastructure.files.descriptors import opened
from cleveragents.infrastructure.files.layers.overlay_marks import is_whiteout

_CREATE = 0x5000940E
_SNAPSHOT = 0x50009417
# A descriptor, where one is needed, then a name; of the second kind with flags between them.
_NAMED = struct.Struct("=q4088s")
_NAMED_WITH_FLAGS = struct.Struct("=qQQ32s4040s")
_COPIED = (stat.S_IFREG, stat.S_IFDIR, stat.S_IFLNK)
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def make_branchable(path: str, mode: int = 0o777) -> None:
    """A new folder, and where that is possible a subvolume. Raises OSError."""
    try:
        _ask_beside(path, _CREATE, _NAMED.pack(0, _name(path)))
    except OSError:
        os.mkdir(path, mode)
        return
    # The kernel has made it with all bits but those of the umask.
    os.chmod(path, stat.S_IMODE(os.lstat(path).st_mode) & mode)


def snapshot(source: str, target: str) -> bool:
    """Whether `target`, which is not there yet, has become a copy of all that is in `source`."""
    with suppress(OSError):
        with opened(source, _FOLDER) as fd:
            _ask_beside(target, _SNAPSHOT, _NAMED_WITH_FLAGS.pack(fd, 0, 0, b"", _name(target)))
        return True
    return False


def snapshot_marks(
    source: bytes, target: bytes, hidden: frozenset[bytes]
) -> dict[bytes, CopyProof]:
    """Of every path but `hidden` ones at the top, from the copy alone: it has the inodes and times
    of the original. Raises OSError if the copy is not all that a copy by hand would be.
    """
    marks: dict[bytes, CopyProof] = {}
    device = os.lstat(source).st_dev
    waiting = [b""]
    while waiting:
        folder = waiting.pop()
        if os.lstat(os.path.join(source, folder)).st_dev != device:
            raise OSError("a snapshot has nothing of a subvolume or mount inside")
        with os.scandir(os.path.join(target, folder)) as entries:
            found = {os.path.join(folder, e.name): e.stat(follow_symlinks=False) for e in entries}
        for path, status in found.items():
            if path not in hidden:
                marks[path] = _copied(status, device)
        waiting += [p for p, status in found.items() if stat.S_ISDIR(status.st_mode) and p in marks]
    return marks


def _copied(found: os.stat_result, device: int) -> CopyProof:
    marks = proof_of_copy(found, found)
    copied = stat.S_IFMT(found.st_mode) in _COPIED or is_whiteout(found)
    if marks is None or not copied:
        raise OSError("a snapshot has pipes and sockets too, which are not copied")
    return marks._replace(of_dev=device)


def _ask_beside(path: str, request: int, arguments: bytes) -> None:
    with opened(os.path.dirname(path), _FOLDER) as folder:
        # What can be changed may be longer than what cannot.
        fcntl.ioctl(folder, request, bytearray(arguments), True)  # noqa: FBT003 - the only way


def _name(path: str) -> bytes:
    return os.fsencode(os.path.basename(path))
