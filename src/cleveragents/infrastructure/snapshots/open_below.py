"""Owns opening a file deep below a folder in one call to the kernel, with no link followed."""

import ctypes
import errno
import os
from functools import cache

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


def open_below(folder: int, path: bytes, flags: int) -> int:
    """A descriptor of what is at `path`; no part of it may be a link.

    Raises OSError, with ENOSYS where the system has no such call.
    """
    if b"\0" in path:
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
    how = _how(flags)
    place = (folder, path, ctypes.addressof(how), ctypes.sizeof(how))
    fd: int = _libc().syscall(_OPENAT2, *place)
    if fd < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return fd


@cache
def _how(flags: int) -> _How:
    return _How(flags, 0, _NO_LINKS | _BENEATH)


@cache
def _libc() -> ctypes.CDLL:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall.argtypes = (
        ctypes.c_long,
        ctypes.c_int,
        ctypes.c_char_p,
        ctypes.c_void_p,
        ctypes.c_size_t,
    )
    libc.syscall.restype = ctypes.c_long
    return libc
