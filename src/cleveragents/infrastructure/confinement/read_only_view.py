"""The view of the machine that a command gets: read-only but for a few folders.

It has no processes in it but its own, where the machine can do that. Landlock does not stop who
changes modes, owners or times; a read-only mount does.
In which order: namespaces; mounts made private, so that nothing here shows outside; with a process
table, its `/proc`; each writable place as a mount of its own; all read-only; those writable again;
the closed places in them; the sandboxes over their projects (`covers.py`); last what is hidden, of
which what stays shown is picked up before.
Why: a place can be exempt only as a mount, and later mounts lie over earlier ones. The folder that
the process stands in is entered anew: the open one still belongs to the view of before.
What is not guaranteed: that it can be done. OSError says so, and then the command is not started.
"""

import os
import resource
import stat
from collections.abc import Sequence

from msgspec import Struct

from cleveragents.infrastructure.confinement.covers import clone_mounts, move_mount, put_on
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

    def enter(self) -> list[int]:  # pragma: no cover
        """For a process with one thread; with `apart`, the first one. Gives a descriptor of each
        merged folder, which are no part of what they are merged from. Raises OSError where the
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
        merged = put_on(self.places.covers, self.places.kept)
        for covered in self.places.hidden:
            hide(covered, self.places.shown)
        os.chdir(self.places.folder)  # the one it stands in is of the view that it had before
        return merged


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


# --- what is kept for plans (ADR 0045) ------------------------------------------------------------

# To read is enough to hold a lock: who may open a lock file or a database can keep everybody else
# from working, and reads other plans' work and the user's keys. So the data folder is covered by an
# empty one, in which the command's own places appear where they are.

_NOTHING = b"/dev/null"


def hide(covered: str, shown: Sequence[str]) -> None:  # pragma: no cover - in a new process
    """A folder but for `shown`, of which those count that lie in it; or a file. Raises OSError."""
    place = os.fsencode(covered)
    if not os.path.isdir(place):
        mount(_NOTHING, place, _MS_BIND)
        set_read_only(place, recursive=False)
        return
    inside = outermost([os.fsencode(path) for path in shown], place)
    trees = [clone_mounts(path) for path in inside]
    mount(b"none", place, _MS_NOSUID | _MS_NODEV | _MS_NOEXEC, b"tmpfs")
    for path, tree in zip(inside, trees, strict=True):
        _put_mount(tree, path)
    set_read_only(place, recursive=False)


def outermost(paths: Sequence[bytes], folder: bytes) -> list[bytes]:
    """Those that lie in the folder, and in none of the others that do."""
    inside = sorted({path for path in paths if path.startswith(folder + b"/")})
    found: list[bytes] = []
    for path in inside:
        # Not only the last one: `code.git` sorts between `code` and `code/docs`.
        if not any(path.startswith(other + b"/") for other in found):
            found.append(path)
    return found


def _put_mount(tree: int, path: bytes) -> None:  # pragma: no cover - as above
    os.makedirs(os.path.dirname(path), 0o700, exist_ok=True)
    if stat.S_ISDIR(os.fstat(tree).st_mode):
        os.mkdir(path, 0o700)
    else:
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600))
    move_mount(tree, path)
