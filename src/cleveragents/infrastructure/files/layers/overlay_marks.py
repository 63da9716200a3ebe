"""What the upper part of a layer says of the lower one: "gone", and "nothing of it" (ADR 0084).

A whiteout is a character device with the number 0/0: what has this name below is not there. Any
user may make one, and opening it gives nothing. A folder is opaque, by an attribute, if all that
the lower one has in its place is not there. Both are state like any other.
"""

import os
import stat
from contextlib import suppress

# In the mode of an entry, beyond the bits that a system has: the folder is opaque.
OPAQUE = 0o10000
_NAME = "user.overlay.opaque"
_YES = b"y"


def is_whiteout(found: os.stat_result) -> bool:
    return stat.S_ISCHR(found.st_mode) and not found.st_rdev


def make_whiteout(name: bytes, *, dir_fd: int) -> None:
    """Raises OSError."""
    os.mknod(name, stat.S_IFCHR, 0, dir_fd=dir_fd)


def opaque_bit(folder: int, name: bytes) -> int:
    """`OPAQUE` if the folder of this name, in an open one, is; 0 if not, or nobody can tell."""
    place = b"/proc/self/fd/%d/%b" % (folder, name)
    with suppress(OSError):
        if os.getxattr(place, _NAME, follow_symlinks=False) == _YES:
            return OPAQUE
    return 0


def is_opaque(folder: int) -> bool:
    with suppress(OSError):
        return os.getxattr(folder, _NAME) == _YES
    return False


def set_opaque(folder: int, *, wanted: bool) -> None:
    """Raises OSError."""
    if is_opaque(folder) == wanted:
        return
    if wanted:
        os.setxattr(folder, _NAME, _YES)
    else:
        os.removexattr(folder, _NAME)
