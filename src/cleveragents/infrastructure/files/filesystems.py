"""What the kernel knows and does about a whole file system, which Python has no call for."""

import ctypes
import os
from collections.abc import Iterable
from functools import cache

# Only what is changed through this kernel is told to watchers; on these nothing else can change.
# On those of the first kind, whoever begins to write to a page through memory is stopped by the
# kernel for a moment, in which the file gets its times.
_TELLING = frozenset(
    {
        0xEF53,  # ext2, ext3, ext4
        0x58465342,  # xfs
        0x9123683E,  # btrfs
        0xF2F52010,  # f2fs
    }
)
_LOCAL = _TELLING | {
    0x01021994,  # tmpfs
    0x794C7630,  # overlayfs
    0x2FC12FC1,  # zfs
    0xCA451A4E,  # bcachefs
}


def is_local(fd: int) -> bool:
    """True if every change of what `fd` is open on goes through this kernel."""
    return _kind_of(fd) in _LOCAL


def tells_of_mapped_writes(fd: int) -> bool:
    """True if the times of a file change when somebody begins to write to it through memory."""
    return _kind_of(fd) in _TELLING


def _kind_of(fd: int) -> int:
    """0 if that is not to be had."""
    # `struct statfs` begins with the type as a long; the rest of it is much shorter than this.
    buffer = ctypes.create_string_buffer(512)
    if _libc().fstatfs(fd, buffer) != 0:
        return 0
    return ctypes.c_long.from_buffer(buffer).value & 0xFFFFFFFF


def sync_all(fd: int) -> None:
    """Make everything durable that was written to the file system which `fd` is open on."""
    if _libc().syncfs(fd) != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


def sync_places(folders: Iterable[str]) -> None:
    """Make everything durable that was written to the file systems of these folders, each of which
    is asked once. A folder that is gone has nothing to lose."""
    done: set[int] = set()
    for folder in folders:
        try:
            fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except FileNotFoundError:
            continue
        try:
            device = os.fstat(fd).st_dev
            if device not in done:
                sync_all(fd)
                done.add(device)
        finally:
            os.close(fd)


@cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)
