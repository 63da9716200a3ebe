"""Owns opening a file deep below a folder in one call to the kernel, with no link followed."""

import ctypes
import errno
import os
from collections.abc import Callable
from functools import cache
from typing import Any

# openat2 has the same number on every architecture.
_OPENAT2 = 437
_NO_LINKS = 0x04
_BENEATH = 0x08


class _How(ctypes.Structure):
    _fields_ = (
        ("flags", ctypes.c_uint64),
        ("mode", ctypes.c_uint64),
        ("resolve", ctypes.c_uint64),
    )


def opener(folder: int, flags: int) -> Callable[[bytes], int]:
    """Gives a descriptor of what is at a path below `folder`; no part of it may be a link.

    What it gives raises OSError, with ENOSYS where the system has no such call.
    """
    # Made once, because for each file it would take as long as the call itself.
    how = _How(flags, 0, _NO_LINKS | _BENEATH)
    number, place, size = ctypes.c_long(_OPENAT2), ctypes.c_long(folder), ctypes.sizeof(how)
    behind = ctypes.byref(how), ctypes.c_size_t(size)
    syscall = _syscall()

    def open_below(path: bytes) -> int:
        if b"\0" in path:
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        fd: int = syscall(number, place, path, *behind)
        if fd < 0:
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code))
        return fd

    return open_below


@cache
def _syscall() -> Any:
    syscall = ctypes.CDLL(None, use_errno=True).syscall
    syscall.restype = ctypes.c_long
    return syscall
