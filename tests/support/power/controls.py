"""Two ways to take syncs away from the commands that are recorded: the harness has to notice."""

import ctypes
import struct
from collections.abc import Callable, Mapping
from pathlib import Path

# sync, fsync, fdatasync, msync, sync_file_range, syncfs; by the machine's own numbers.
_NUMBERS = {
    "x86_64": (0xC000003E, (162, 74, 75, 26, 277, 306)),
    "aarch64": (0xC00000B7, (81, 82, 83, 227, 84, 267)),
}
_SET_SECCOMP, _FILTER = 22, 2
_ALLOW, _SUCCEED = 0x7FFF0000, 0x00050000
_LOAD, _EQUAL, _RETURN = 0x20, 0x15, 0x06


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_char_p))


def no_syncs(machine: str) -> Callable[[], None]:
    """Every call that syncs returns at once as if it had; for a process and all it starts."""
    arch, calls = _NUMBERS[machine]
    lines = [(_LOAD, 0, 0, 4), (_EQUAL, 0, len(calls) + 1, arch), (_LOAD, 0, 0, 0)]
    lines += [(_EQUAL, len(calls) - at, 0, call) for at, call in enumerate(calls)]
    lines += [(_RETURN, 0, 0, _ALLOW), (_RETURN, 0, 0, _SUCCEED)]
    filters = b"".join(struct.pack("<HBBI", *line) for line in lines)
    libc = ctypes.CDLL(None, use_errno=True)

    def start() -> None:
        program = _Program(len(lines), filters)
        if libc.prctl(_SET_SECCOMP, _FILTER, ctypes.byref(program), 0, 0):
            raise OSError(ctypes.get_errno(), "seccomp")

    return start


def one_sync_less() -> Mapping[str, str]:
    """The metadata database does not sync each commit: the one sync that stores a record."""
    return {"PYTHONPATH": str(Path(__file__).with_name("one_sync_less"))}
