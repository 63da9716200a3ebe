"""Opening files for another process, with rights that only this one has: run by itself.

In a user namespace of its own, a process may open whatever belongs to its user, whatever the mode
says. Only modules that every Python brings along: it has to be at work within milliseconds.
"""

import ctypes
import errno
import marshal
import os
import socket

Question = tuple[int, str, bytes, int]
"""A number; `open` or `watch`; a name in the folder that comes along, and flags. To watch, a queue
comes along and what to watch, and the flags say what for."""
Answer = tuple[int, int]
"""The number of the question, and what came of it; below 0 an error of the system."""

MOST = 8192
_CLONE_NEWUSER = 0x10000000
_LIBC = ctypes.CDLL(None, use_errno=True)


def _serve(channel: socket.socket) -> None:
    while True:
        told, fds, _, _ = socket.recv_fds(channel, MOST, 2)
        if not told:
            return
        question: Question = marshal.loads(told)
        made: list[int] = []
        try:
            result = _do(question, fds, made)
        except OSError as error:
            result = -(error.errno or errno.EIO)
        answer: Answer = (question[0], result)
        socket.send_fds(channel, [marshal.dumps(answer)], made)
        for fd in (*fds, *made):
            os.close(fd)


def _do(question: Question, fds: list[int], made: list[int]) -> int:
    """What was opened is put on the list."""
    _, what, name, flags = question
    if what == "open":
        made.append(os.open(name, flags | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=fds[0]))
        return 0
    place = b"/proc/self/fd/%d" % fds[1]
    return _checked(_LIBC.inotify_add_watch(fds[0], place, ctypes.c_uint32(flags)))


def _enter() -> None:
    user, group = os.geteuid(), os.getegid()
    _checked(_LIBC.unshare(_CLONE_NEWUSER))
    for file, text in (
        ("setgroups", "deny"),
        ("uid_map", f"{user} {user} 1"),
        ("gid_map", f"{group} {group} 1"),
    ):
        place = os.open(f"/proc/self/{file}", os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.write(place, text.encode())
        finally:
            os.close(place)


def _checked(result: int) -> int:
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result


def _help() -> None:
    """The channel is the standard input. It says one word once it is ready."""
    with socket.socket(fileno=0) as channel:
        try:
            _enter()
        except OSError:
            return  # whoever waits for the word sees that there will be none
        channel.send(marshal.dumps(0))
        _serve(channel)


if __name__ == "__main__":
    _help()
