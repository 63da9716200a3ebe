"""The rules of Landlock: where a process, and all that it starts, may write."""

import ctypes
import os
import stat
from collections.abc import Sequence

from cleveragents.infrastructure.confinement.syscalls import (
    LANDLOCK_ADD_RULE,
    LANDLOCK_CREATE_RULESET,
    LANDLOCK_RESTRICT_SELF,
    syscall,
)
from cleveragents.infrastructure.files.descriptors import opened

_ASK_VERSION = 1
_RULE_PATH_BENEATH = 1

# What only reads is not handled: it stays allowed everywhere.
_WRITE_FILE = 1 << 1
_REMOVE_AND_MAKE = (1 << 4) | (1 << 5) | (1 << 7) | (1 << 8) | (1 << 9) | (1 << 10) | (1 << 12)
_MAKE_DEVICE = (1 << 6) | (1 << 11)
_REFER = 1 << 13
_TRUNCATE = 1 << 14
_IOCTL_DEVICE = 1 << 15
_SINCE = {2: _REFER, 3: _TRUNCATE, 5: _IOCTL_DEVICE}
_OF_A_FILE = _WRITE_FILE | _TRUNCATE | _IOCTL_DEVICE

_SCOPES_SINCE = 6
_SCOPES = 0b11  # abstract sockets and signals

# Whatever is written here is gone at once, or only stirs the pot; the last is a process's own
# terminal, if it has one, and no other.
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty")


class _RulesetAttributes(ctypes.Structure):
    _fields_ = (
        ("handled_access_fs", ctypes.c_uint64),
        ("handled_access_net", ctypes.c_uint64),
        ("scoped", ctypes.c_uint64),
    )


class _PathBeneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed_access", ctypes.c_uint64), ("parent_fd", ctypes.c_int32))


def version() -> int:
    """Of the kernel's interface; 0 if there is none, or it is switched off."""
    try:
        return syscall(LANDLOCK_CREATE_RULESET, None, 0, _ASK_VERSION)
    except OSError:
        return 0


def make_ruleset(writable: Sequence[str], abi: int) -> int:
    """An open ruleset: writing only below these. The caller closes it. Raises OSError."""
    handled = _handled(abi)
    scopes = _SCOPES if abi >= _SCOPES_SINCE else 0
    attributes = _RulesetAttributes(handled, 0, scopes)
    size = ctypes.sizeof(attributes)
    ruleset = syscall(LANDLOCK_CREATE_RULESET, ctypes.byref(attributes), size, 0)
    try:
        for path in writable:
            # Devices are made by nobody: one in a sandbox would be a way to the disk.
            _allow(ruleset, path, handled & ~_MAKE_DEVICE)
        for path in _DEVICES:
            if os.path.exists(path):
                _allow(ruleset, path, handled)
    except BaseException:
        os.close(ruleset)
        raise
    return ruleset


def add_folders(ruleset: int, folders: Sequence[int], abi: int) -> None:  # pragma: no cover
    """Writing below these open folders too; they are closed. For a merged folder, whose files are
    none of those that it is merged from. Raises OSError."""
    rights = _handled(abi) & ~_MAKE_DEVICE
    for folder in folders:
        rule = _PathBeneath(rights, folder)
        syscall(LANDLOCK_ADD_RULE, ruleset, _RULE_PATH_BENEATH, ctypes.byref(rule), 0)
        os.close(folder)


def restrict_self(ruleset: int) -> None:  # pragma: no cover - in a new process
    """From now on, for this thread and all it starts. Needs no_new_privs."""
    syscall(LANDLOCK_RESTRICT_SELF, ruleset, 0)


def _handled(abi: int) -> int:
    newer = sum(right for since, right in _SINCE.items() if abi >= since)
    return _WRITE_FILE | _REMOVE_AND_MAKE | _MAKE_DEVICE | newer


def _allow(ruleset: int, path: str, rights: int) -> None:
    with opened(path, os.O_PATH | os.O_CLOEXEC) as place:
        if not stat.S_ISDIR(os.fstat(place).st_mode):
            rights &= _OF_A_FILE
        rule = _PathBeneath(rights, place)
        syscall(LANDLOCK_ADD_RULE, ruleset, _RULE_PATH_BENEATH, ctypes.byref(rule), 0)
