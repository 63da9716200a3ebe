"""The filter of system calls that leaves a process without a socket to the outside.

No socket can be made: neither one for the network nor one for a service of the machine, which
could write in our place. Pairs of sockets between a process and its children stay possible.
"""

import ctypes
import errno
import struct

from cleveragents.infrastructure.confinement.syscalls import (
    PR_GET_SECCOMP,
    PR_SET_SECCOMP,
    Architecture,
    architecture,
    prctl,
)

_MODE_FILTER = 2
_ALLOW = 0x7FFF0000
_ERROR = 0x00050000
_LOAD, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_NUMBER_AT, _ARCHITECTURE_AT = 0, 4
# Makes sockets by a way of its own, which filters do not see.
_IO_URING_SETUP = 425
_X32 = 0x40000000


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("code", ctypes.c_void_p))


def is_supported() -> bool:
    if architecture() is None:
        return False
    try:
        return prctl(PR_GET_SECCOMP) >= 0
    except OSError:
        return False


def program() -> bytes:
    """The filter as the kernel reads it; only where it `is_supported`."""
    machine = architecture()
    assert machine is not None
    return _assembled(machine)


class SocketFilter:
    def __init__(self, code: bytes) -> None:
        self._code = ctypes.create_string_buffer(code, len(code))
        address = ctypes.addressof(self._code)
        self._program = _Program(len(code) // 8, address)

    def __reduce__(self) -> tuple[type["SocketFilter"], tuple[bytes]]:
        """Another process that is told of it has it somewhere else in its memory."""
        return SocketFilter, (self._code.raw,)

    def apply(self) -> None:  # pragma: no cover - in a new process
        """From now on, for this thread and all it starts. Needs no_new_privs."""
        prctl(PR_SET_SECCOMP, _MODE_FILTER, ctypes.addressof(self._program))


def _assembled(machine: Architecture) -> bytes:
    no_such_call, denied = _ERROR | errno.ENOSYS, _ERROR | errno.EACCES
    return b"".join(
        (
            _line(_LOAD, _ARCHITECTURE_AT),
            # A program for another processor has other numbers for its calls: it has none.
            _line(_EQUAL, machine.audit, 1, 0),
            _line(_RETURN, no_such_call),
            _line(_LOAD, _NUMBER_AT),
            _line(_AT_LEAST, _X32, 2, 0),
            _line(_EQUAL, machine.socket, 2, 0),
            _line(_EQUAL, _IO_URING_SETUP, 0, 2),
            _line(_RETURN, no_such_call),
            _line(_RETURN, denied),
            _line(_RETURN, _ALLOW),
        )
    )


def _line(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, value)
