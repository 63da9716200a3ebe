"""Copying one file or link with its mode, its times and, where we may give it away, its owner."""

import os
import stat
from contextlib import suppress

from cleveragents.infrastructure.files.closed_files import open_closed
from cleveragents.infrastructure.files.copy.clone_bytes import ByteCopy
from cleveragents.infrastructure.files.descriptors import opened
from cleveragents.infrastructure.files.layers.overlay_marks import is_whiteout, make_whiteout

_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def copy_one(source: int, name: bytes, target: int, new_name: bytes, *, synced: bool) -> None:
    """From one open folder to another, where nothing has the new name. If it is `synced`, the
    bytes of a file are durable then."""
    found = os.lstat(name, dir_fd=source)
    if stat.S_ISLNK(found.st_mode):
        os.symlink(os.readlink(name, dir_fd=source), new_name, dir_fd=target)
        times = (found.st_atime_ns, found.st_mtime_ns)
        os.utime(new_name, ns=times, dir_fd=target, follow_symlinks=False)
        return
    if is_whiteout(found):
        make_whiteout(new_name, dir_fd=target)
        return
    one = _opened(source, name)
    try:
        with opened(new_name, _NEW, 0o600, dir_fd=target) as two:
            ByteCopy().copy(one, two, os.fstat(one))
            dress(two, found)
            if synced:
                os.fsync(two)
    finally:
        os.close(one)


def dress(fd: int, found: os.stat_result) -> None:
    """Owner where we may give it away, then the mode, which that can change, then the times."""
    give(fd, found.st_uid, found.st_gid)
    os.fchmod(fd, stat.S_IMODE(found.st_mode))
    os.utime(fd, ns=(found.st_atime_ns, found.st_mtime_ns))


def give(fd: int, uid: int, gid: int) -> None:
    """To this owner and group, where we may."""
    found = os.fstat(fd)
    if (found.st_uid, found.st_gid) != (uid, gid):
        with suppress(PermissionError):
            os.fchown(fd, uid, gid)


def _opened(folder: int, name: bytes) -> int:
    try:
        return os.open(name, _READ, dir_fd=folder)
    except PermissionError:
        return open_closed(folder, name, _READ)
