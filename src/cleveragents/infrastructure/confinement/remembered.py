"""What was found out about this machine, remembered between commands for people to be told.

To find out what the machine can hold inside takes two forks into new namespaces, which is most of
what `plan status` would do. So the answer is kept in the data folder, together with all that it
depends on: as soon as any of that is another, the machine is asked again.

Nothing is held inside by what is written here. Whoever starts a command asks the machine itself
(`confiner.py` knows nothing of this module), and refuses or reports as it finds; and then the
memory is put right. The worst that a wrong one can do is to tell what was true a moment ago.
"""

import os
from collections.abc import Callable
from contextlib import suppress

from msgspec import MsgspecError, Struct, json

from cleveragents import __version__
from cleveragents.domain.confinement import Abilities

_BOOT_ID = "/proc/sys/kernel/random/boot_id"
# What a machine can be told to forbid while it runs, or a process to have lost.
_TOLD = (
    "/proc/sys/kernel/unprivileged_userns_clone",
    "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
    "/proc/sys/user/max_user_namespaces",
    "/proc/sys/user/max_mnt_namespaces",
    "/proc/sys/user/max_pid_namespaces",
    "/proc/self/attr/current",
)
_RIGHTS = ("Uid", "Gid", "CapEff", "CapBnd", "NoNewPrivs", "Seccomp")
_NAMESPACES = ("user", "mnt", "pid")


class _Memory(Struct, frozen=True, kw_only=True):
    depends_on: list[str]
    abilities: Abilities


class RememberedMachine:
    """`ask` finds out; what it gives is kept in `file`."""

    def __init__(self, file: str, ask: Callable[[], Abilities]) -> None:
        self._file = file
        self._ask = ask

    def abilities(self) -> Abilities:
        state = _state()
        memory = self._read()
        if memory is not None and state and memory.depends_on == state:
            return memory.abilities
        return self._learnt(state, memory)

    def found_out(self) -> Abilities:
        """Whatever is remembered."""
        return self._learnt(_state(), self._read())

    def _learnt(self, state: list[str], before: _Memory | None) -> Abilities:
        now = _Memory(depends_on=state, abilities=self._ask())
        if state and now != before:
            with suppress(OSError):  # the next one asks again
                self._write(now)
        return now.abilities

    def _read(self) -> _Memory | None:
        try:
            with open(self._file, "rb") as file:
                return json.decode(file.read(), type=_Memory)
        except (OSError, MsgspecError, UnicodeDecodeError):
            return None

    def _write(self, memory: _Memory) -> None:
        """Whole, or not at all; it need not outlast the machine."""
        beside = f"{self._file}.{os.getpid()}"
        descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with open(descriptor, "wb") as file:
            file.write(json.encode(memory))
        os.replace(beside, self._file)


def _state() -> list[str]:
    """All that the answer depends on; nothing where the machine does not say since when it runs."""
    boot = _text(_BOOT_ID)
    if not boot:
        return []
    rights = [line for line in _text("/proc/self/status").split("\n") if line.startswith(_RIGHTS)]
    links = [os.readlink(f"/proc/self/ns/{name}") for name in _NAMESPACES]
    system = os.uname()
    told = [_text(path) for path in _TOLD]
    return [boot, __version__, system.release, system.version, *rights, *links, *told]


def _text(path: str) -> str:
    """Empty where there is none."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read().strip()
    except OSError:
        return ""
