"""Finds programs of others that were installed for the tests, and keeps them from the network."""

import fcntl
import os
import shutil
import socket
import struct
from pathlib import Path

import pytest

from cleveragents.infrastructure.confinement.syscalls import CLONE_NEWUSER, unshare

FOLDER = "CLEVERAGENTS_NEIGHBOURS"
_CLONE_NEWNET = 0x40000000
_SIOCGIFFLAGS, _SIOCSIFFLAGS, _IFF_UP = 0x8913, 0x8914, 1


def places() -> tuple[Path, ...]:
    """Where `nox -s neighbours` has put programs, those of Python's registry and of npm's."""
    top = os.environ.get(FOLDER)
    if not top:
        return ()
    return (*sorted(Path(top).glob("*/bin")), Path(top, "node/node_modules/.bin"))


def program(name: str) -> str:
    """Its path. Skips the test if it is not there."""
    path = os.pathsep.join([*map(str, places()), os.environ["PATH"]])
    found = shutil.which(name, path=path)
    if found is None:
        pytest.skip(f"{name} is not installed here; `nox -s neighbours` installs it")
    return found


def only_loopback() -> None:
    """From now on this process, and all that it starts, reach nothing beyond this machine."""
    user, group = os.geteuid(), os.getegid()
    unshare(_CLONE_NEWNET if user == 0 else CLONE_NEWUSER | _CLONE_NEWNET)
    if user != 0:
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
        Path("/proc/self/gid_map").write_text(f"{group} {group} 1")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as anything:
        wanted = struct.pack("16sh14x", b"lo", 0)
        flags = struct.unpack("16sh14x", fcntl.ioctl(anything, _SIOCGIFFLAGS, wanted))[1]
        fcntl.ioctl(anything, _SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", flags | _IFF_UP))
