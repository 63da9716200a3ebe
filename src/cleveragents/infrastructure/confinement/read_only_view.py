"""The view of the machine that a command gets: read-only but for a few folders, and with no
processes but its own.

Landlock does not stop who changes modes, owners or times; a read-only mount does.
"""

import os
import resource

from msgspec import Struct

from cleveragents.infrastructure.confinement.hiding import hide
from cleveragents.infrastructure.confinement.places import Places
from cleveragents.infrastructure.confinement.syscalls import (
    CLONE_NEWNS,
    CLONE_NEWPID,
    CLONE_NEWUSER,
    mount,
    set_read_only,
    set_writable,
    unshare,
)

_MS_NOSUID, _MS_NODEV, _MS_NOEXEC = 2, 4, 8
_MS_BIND, _MS_REC, _MS_PRIVATE = 0x1000, 0x4000, 0x40000
# The kernel refuses more processes only some way beyond the limit: whoever counts is to see
# that it was passed, and to say so. It counts threads too, and those who keep watch.
_ROOM_TO_SEE = 500


class ReadOnlyView(Struct, frozen=True, kw_only=True):
    """`apart`: with a process table of its own, whose first process takes all the others with it
    when it ends.

    In a user namespace the kernel counts its processes alone, so that they can be limited.
    """

    places: Places
    most_processes: int
    apart: bool = False

    def separate(self) -> None:  # pragma: no cover - in a new process, like all that follows
        """By a process with one thread: its next child is the first process of a new table."""
        _own_namespace(CLONE_NEWPID, self.most_processes)

    def enter(self) -> None:  # pragma: no cover
        """For a process with one thread; with `apart`, the first one. Raises OSError where the
        machine does not allow it."""
        if self.apart:
            unshare(CLONE_NEWNS)
        else:
            _own_namespace(CLONE_NEWNS, self.most_processes)
        mount(b"none", b"/", _MS_REC | _MS_PRIVATE)
        if self.apart:
            mount(b"proc", b"/proc", _MS_NOSUID | _MS_NODEV | _MS_NOEXEC, b"proc")
        places = [os.fsencode(path) for path in self.places.writable]
        for place in places:
            mount(place, place, _MS_BIND | _MS_REC)
        set_read_only(b"/")
        for place in places:
            set_writable(place)
        for place in map(os.fsencode, self.places.closed):
            mount(place, place, _MS_BIND | _MS_REC)
            set_read_only(place)
        for covered in self.places.hidden:
            hide(covered, self.places.shown)
        os.chdir(self.places.folder)  # the one it stands in is of the view that it had before


def _own_namespace(kind: int, most_processes: int) -> None:  # pragma: no cover
    """Root needs no user namespace for it, and keeps its users and groups without one."""
    user, group = os.geteuid(), os.getegid()
    if user == 0:
        try:
            unshare(kind)
        except PermissionError:  # root of a container, which may not
            pass
        else:
            return
    unshare(CLONE_NEWUSER | kind)
    _put("/proc/self/setgroups", "deny")
    _put("/proc/self/uid_map", f"{user} {user} 1")
    _put("/proc/self/gid_map", f"{group} {group} 1")
    _, hard = resource.getrlimit(resource.RLIMIT_NPROC)
    limit = most_processes + _ROOM_TO_SEE
    limit = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
    resource.setrlimit(resource.RLIMIT_NPROC, (limit, limit))


def _put(path: str, text: str) -> None:  # pragma: no cover
    place = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(place, text.encode())
    finally:
        os.close(place)
