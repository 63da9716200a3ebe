"""The calls of the Linux kernel for which Python has no name.

They are made by a new process before it becomes its program, so everything is looked up here,
and each call is one call.
"""

import ctypes
import os
import platform
import sys
from collections.abc import Iterable

from msgspec import Struct

IS_LINUX = sys.platform == "linux"

PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4
PR_GET_SECCOMP = 21
PR_SET_SECCOMP = 22
PR_CAPBSET_DROP = 24
PR_SET_CHILD_SUBREAPER = 36
PR_SET_NO_NEW_PRIVS = 38

LANDLOCK_CREATE_RULESET = 444
LANDLOCK_ADD_RULE = 445
LANDLOCK_RESTRICT_SELF = 446
OPEN_TREE = 428
MOVE_MOUNT = 429
MOUNT_SETATTR = 442
CLOSE_RANGE = 436

CLONE_NEWNS = 0x00020000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000

AT_RECURSIVE = 0x8000
_AT_FDCWD = -100
_READ_ONLY = 1
_MNT_DETACH = 2

_LIBC = ctypes.CDLL(None, use_errno=True)
_PRCTL = getattr(_LIBC, "prctl", None)
_SYSCALL = getattr(_LIBC, "syscall", None)
_UNSHARE = getattr(_LIBC, "unshare", None)
_MOUNT = getattr(_LIBC, "mount", None)
_UMOUNT = getattr(_LIBC, "umount2", None)
_SIGNALFD = getattr(_LIBC, "signalfd", None)
_BYTES_OF_A_SIGNAL_SET = 128


class Architecture(Struct, frozen=True, kw_only=True):
    """How system calls are told apart: the kernel's name for the processor, and `socket`."""

    audit: int
    socket: int


_ARCHITECTURES = {
    "x86_64": Architecture(audit=0xC000003E, socket=41),
    "aarch64": Architecture(audit=0xC00000B7, socket=198),
}


def architecture() -> Architecture | None:
    """None for a processor that is not known, or a 32-bit Python on a 64-bit kernel."""
    if not IS_LINUX or ctypes.sizeof(ctypes.c_void_p) != 8:
        return None
    return _ARCHITECTURES.get(platform.machine())


def prctl(option: int, *arguments: int) -> int:
    """Raises OSError."""
    words = [ctypes.c_ulong(argument) for argument in (*arguments, 0, 0, 0, 0)[:4]]
    return _checked(_PRCTL(option, *words) if _PRCTL else _unknown())


def syscall(number: int, *arguments: object) -> int:
    """Raises OSError. Numbers are passed as the machine's words."""
    words = [ctypes.c_long(item) if isinstance(item, int) else item for item in arguments]
    return _checked(_SYSCALL(ctypes.c_long(number), *words) if _SYSCALL else _unknown())


def unshare(flags: int) -> None:
    _checked(_UNSHARE(flags) if _UNSHARE else _unknown())


def mount(
    source: bytes, target: bytes, flags: int, kind: bytes | None = None, data: bytes | None = None
) -> None:
    made = _MOUNT(source, target, kind, ctypes.c_ulong(flags), data) if _MOUNT else _unknown()
    _checked(made)


def unmount(target: bytes) -> None:
    """What is mounted there, as soon as nobody uses it any more."""
    _checked(_UMOUNT(target, _MNT_DETACH) if _UMOUNT else _unknown())


class _MountAttributes(ctypes.Structure):
    _fields_ = (
        ("set", ctypes.c_uint64),
        ("clear", ctypes.c_uint64),
        ("propagation", ctypes.c_uint64),
        ("user_namespace", ctypes.c_uint64),
    )


def set_read_only(place: bytes, *, recursive: bool = True) -> None:
    """What is mounted there, and with `recursive` in it."""
    _change_mounts(place, _MountAttributes(set=_READ_ONLY), recursive=recursive)


def set_writable(place: bytes, *, recursive: bool = True) -> None:
    _change_mounts(place, _MountAttributes(clear=_READ_ONLY), recursive=recursive)


def _change_mounts(place: bytes, attributes: _MountAttributes, *, recursive: bool) -> None:
    size, flags = ctypes.sizeof(attributes), AT_RECURSIVE if recursive else 0
    syscall(MOUNT_SETATTR, _AT_FDCWD, place, flags, ctypes.byref(attributes), size)


def signalfd(numbers: Iterable[int]) -> int:
    """Where signals, which have to be blocked, are read like messages; the caller closes it."""
    wanted = sum(1 << (number - 1) for number in numbers)
    signals = wanted.to_bytes(_BYTES_OF_A_SIGNAL_SET, "little")
    return _checked(_SIGNALFD(-1, signals, os.O_CLOEXEC) if _SIGNALFD else _unknown())


def _checked(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


def _unknown() -> int:
    ctypes.set_errno(38)  # ENOSYS
    return -1
