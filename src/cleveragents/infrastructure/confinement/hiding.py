"""Hiding from a command what is kept for plans, but for what is its own (ADR 0045).

To read is enough to hold a lock: who may open a lock file or a database can keep everybody else
from working, and reads other plans' work and the user's keys. So the data folder is covered by an
empty one, in which the command's own places appear where they are.
"""

import os
import stat
from collections.abc import Sequence

from cleveragents.infrastructure.confinement.syscalls import (
    AT_RECURSIVE,
    MOVE_MOUNT,
    OPEN_TREE,
    mount,
    set_read_only,
    syscall,
)

_AT_FDCWD = -100
_CLONE_TREE = 1
_OF_THE_DESCRIPTOR = 0x4
_MS_NOSUID, _MS_NODEV, _MS_NOEXEC, _MS_BIND = 2, 4, 8, 0x1000
_NOTHING = b"/dev/null"


def hide(covered: str, shown: Sequence[str]) -> None:  # pragma: no cover - in a new process
    """A folder but for `shown`, of which those count that lie in it; or a file. Raises OSError."""
    place = os.fsencode(covered)
    if not os.path.isdir(place):
        mount(_NOTHING, place, _MS_BIND)
        set_read_only(place, recursive=False)
        return
    inside = outermost([os.fsencode(path) for path in shown], place)
    trees = [_copied(path) for path in inside]
    mount(b"none", place, _MS_NOSUID | _MS_NODEV | _MS_NOEXEC, b"tmpfs")
    for path, tree in zip(inside, trees, strict=True):
        _put(tree, path)
    set_read_only(place, recursive=False)


def outermost(paths: Sequence[bytes], folder: bytes) -> list[bytes]:
    """Those that lie in the folder, and in none of the others that do."""
    inside = sorted({path for path in paths if path.startswith(folder + b"/")})
    found: list[bytes] = []
    for path in inside:
        if not (found and path.startswith(found[-1] + b"/")):
            found.append(path)
    return found


def _copied(path: bytes) -> int:  # pragma: no cover - as above
    """The mounts from there on as they are, by a descriptor; not anywhere yet."""
    flags = _CLONE_TREE | AT_RECURSIVE | os.O_CLOEXEC
    return syscall(OPEN_TREE, _AT_FDCWD, path, flags)


def _put(tree: int, path: bytes) -> None:  # pragma: no cover - as above
    os.makedirs(os.path.dirname(path), 0o700, exist_ok=True)
    if stat.S_ISDIR(os.fstat(tree).st_mode):
        os.mkdir(path, 0o700)
    else:
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600))
    syscall(MOVE_MOUNT, tree, b"", _AT_FDCWD, path, _OF_THE_DESCRIPTOR)
    os.close(tree)
