"""Talking to the kernel's inotify: watches by descriptor, events in their order."""

import ctypes
import errno
import os
import struct
import threading
import weakref
from functools import cache
from typing import NamedTuple

from cleveragents.infrastructure.files.closed_files import watch_closed

MODIFY = 0x2
ATTRIB = 0x4
CLOSE_WRITE = 0x8
MOVED_FROM = 0x40
MOVED_TO = 0x80
CREATE = 0x100
DELETE = 0x200
DELETE_SELF = 0x400
MOVE_SELF = 0x800
UNMOUNT = 0x2000
OVERFLOW = 0x4000
IGNORED = 0x8000
IS_FOLDER = 0x40000000
WRITTEN = MODIFY | CLOSE_WRITE
_ONLY_FOLDERS = 0x1000000
_NOT_THROUGH_LINKS = 0x2000000
# The end of a write is asked for too: what was written through a mapping shows only then.
FOLDER_EVENTS = (
    (MODIFY | ATTRIB | CLOSE_WRITE | MOVED_FROM | MOVED_TO | CREATE | DELETE)
    | (DELETE_SELF | MOVE_SELF)
    | _ONLY_FOLDERS
)

_HEADER = struct.Struct("iIII")
_BUFFER = 256 * 1024
_CLOSING: set[threading.Thread] = set()


class Event(NamedTuple):
    """`wd` is -1 for an overflow; `name` is empty if the folder itself is meant."""

    wd: int
    mask: int
    name: bytes


class Inotify:
    """One queue for any number of watches. Raises OSError where the system has none to give."""

    def __init__(self) -> None:
        self._fd = _checked(_libc().inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC))
        self._close = weakref.finalize(self, os.close, self._fd)

    def watch(self, fd: int, mask: int) -> int:
        """Watch what is open as `fd`, and nothing that a path might lead to instead."""
        place = b"/proc/self/fd/%d" % fd
        try:
            return _checked(_libc().inotify_add_watch(self._fd, place, mask))
        except PermissionError:
            return watch_closed(self._fd, fd, mask)

    def watch_below(self, fd: int, path: bytes, mask: int) -> int:
        """Watch what is there by name. A link at its end is refused, one on the way is not."""
        place = b"/proc/self/fd/%d/%b" % (fd, path)
        return _checked(_libc().inotify_add_watch(self._fd, place, mask | _NOT_THROUGH_LINKS))

    def unwatch(self, wd: int) -> None:
        """Also if the kernel has dropped it by itself already."""
        _libc().inotify_rm_watch(self._fd, wd)

    def read(self) -> list[Event]:
        """What is in the queue now, as far as it fits; empty if nothing is."""
        try:
            return _events(os.read(self._fd, _BUFFER))
        except BlockingIOError:
            return []

    def close(self) -> None:
        """By a thread of its own: the kernel takes 10 to 300 ms to let go of what was watched."""
        if self._close.detach():
            closing = threading.Thread(target=os.close, args=(self._fd,), daemon=True)
            _CLOSING.add(closing)
            closing.start()


def wait_until_closed() -> None:
    """Until the kernel has let go of all that was closed, and no thread of it is left."""
    for closing in list(_CLOSING):
        closing.join()
        _CLOSING.discard(closing)


def _events(data: bytes) -> list[Event]:
    """Each once, writing and the end of it too: what happened twice is looked at once."""
    found: dict[tuple[int, int, bytes], None] = {}
    end, size, unpack = 0, _HEADER.size, _HEADER.unpack_from
    while end < len(data):
        wd, mask, _, length = unpack(data, end)
        start = end + size
        end = start + length
        found[wd, mask if mask & ~WRITTEN else WRITTEN, data[start:end]] = None
    return [Event(wd, mask, name.rstrip(b"\0")) for wd, mask, name in found]


def _checked(result: int) -> int:
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result


@cache
def _libc() -> ctypes.CDLL:
    libc = ctypes.CDLL(None, use_errno=True)
    if not hasattr(libc, "inotify_init1"):
        raise OSError(errno.ENOSYS, "this system has no inotify")
    # Thousands of watches are added at once, and knowing the types saves a tenth of that.
    libc.inotify_add_watch.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_uint32)
    return libc
