"""Who holds a lock: what an owner says of itself, whether it lives, and whose turn it is when it is
dead (`whose_turn`). It is taken over in `plan_locks.py`."""

import os
from enum import StrEnum

from msgspec import MsgspecError, Struct, json
from msgspec.structs import asdict

_LENGTH = 512
"""A record always takes this many bytes, so that it is replaced by one write and never torn."""
_STOPPED = ("T", "t")
_DEAD = ("Z", "X")


class LockOwner(Struct, frozen=True, kw_only=True):
    """`boot`, `space` and `started` tell a process from any other that has the same number."""

    pid: int
    started: str
    host: str
    boot: str
    space: str
    operation: str
    since: str
    beat: int = 0

    def to_bytes(self) -> bytes:
        from json import dumps  # noqa: PLC0415 - who only asks does not pay for it

        return dumps(asdict(self)).encode("ascii").ljust(_LENGTH - 1)[: _LENGTH - 1] + b"\n"

    def is_same(self, other: "LockOwner | None") -> bool:
        """The same hold, whatever has been heard of it since."""
        if other is None:
            return False
        return (self.pid, self.started, self.boot, self.since) == (
            other.pid,
            other.started,
            other.boot,
            other.since,
        )


def read_owner(descriptor: int) -> LockOwner | None:
    """None if nobody has signed, or not yet."""
    try:
        return LockOwner(**json.decode(os.pread(descriptor, _LENGTH, 0)))
    except (MsgspecError, ValueError, TypeError):
        return None


def ourselves(operation: str, since: str) -> LockOwner:
    pid = os.getpid()
    return LockOwner(
        pid=pid,
        started=_started(pid) or "",
        host=os.uname().nodename,
        boot=_text("/proc/sys/kernel/random/boot_id"),
        space=_link("/proc/self/ns/pid"),
        operation=operation,
        since=since,
    )


def is_alive(owner: LockOwner) -> bool:
    """Whether this very process lives, asked on the machine and in the name space it is in."""
    if os.path.isdir("/proc/self"):
        started = _started(owner.pid)
        return started is not None and owner.started in ("", started)
    try:
        os.kill(owner.pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def is_stopped(owner: LockOwner) -> bool:
    return (_stat(owner.pid) or [""])[0] in _STOPPED


class LockTurn(StrEnum):
    """What a process may do that finds somebody's name in a lock file."""

    TAKE = "take"
    REPLACE = "replace"
    WAIT = "wait"


class LockState(Struct, frozen=True, kw_only=True):
    """`held`: the kernel says that somebody has the file. `silence`: seconds since the last sign.

    `alive` is what is known of the owner's process if it is on this machine, and None if it is not.
    """

    owner: LockOwner | None
    held: bool
    silence: float
    alive: bool | None
    same_host: bool


def whose_turn(found: LockState, expiry: float) -> LockTurn:
    """The rule (ADR 0017). REPLACE: by a new file, which whoever had the old one will notice."""
    if found.owner is None:
        return LockTurn.WAIT if found.held else LockTurn.TAKE
    if found.alive is not None:
        # On one machine the kernel lets go with the last process that has the file. If it is held
        # although its owner is dead, a child has inherited it; an owner that lives is never
        # overtaken, however silent: two writers are worse than one refusal.
        if not found.held:
            return LockTurn.TAKE
        return LockTurn.WAIT if found.alive else LockTurn.REPLACE
    if found.same_host and not found.held:
        return LockTurn.TAKE  # the machine was started anew since
    return LockTurn.REPLACE if found.silence > expiry else LockTurn.WAIT


def find(owner: LockOwner | None, *, held: bool, silence: float) -> LockState:
    us = ourselves("", "")
    alive: bool | None = None
    if owner is not None and owner.boot == us.boot:
        if owner.space == us.space:
            alive = is_alive(owner)
        elif not held:
            alive = False  # another container of this machine, and the kernel says it let go
    return LockState(
        owner=owner,
        held=held,
        silence=silence,
        alive=alive,
        same_host=owner is not None and owner.host == us.host,
    )


def _started(pid: int) -> str | None:
    """When a process began, in ticks since the machine did; None if there is none, or its end."""
    fields = _stat(pid)
    return None if not fields or fields[0] in _DEAD else fields[19]


def _stat(pid: int) -> list[str]:
    """What Linux says of a process, from its state on; its name before that may hold anything."""
    return _text(f"/proc/{pid}/stat").rpartition(")")[2].split()


def _text(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read().strip()
    except OSError:
        return ""


def _link(path: str) -> str:
    try:
        return os.readlink(path)
    except OSError:
        return ""
