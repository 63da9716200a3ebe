"""What is done about an ignored folder where the machine refuses layers (ADR 0084).

It is copied with shared blocks where the file system has those; copied plainly where that takes
less than a second; else it is left out. Whichever it is, the user is told before the plan is made.
"""

import fcntl
import os
import shlex
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from enum import StrEnum

from cleveragents.infrastructure.files.copy.copy_worker import FICLONE

# What a slow disk copies in less than a second.
_MOST_FILES = 1000
_MOST_BYTES = 20 << 20
MACHINE_REFUSES = "this machine refuses layers to steps"
HAS_SUBMODULES = "with submodules there are no layers"


class Instead(StrEnum):
    SHARED = "copied with shared blocks"
    COPIED = "copied"
    LEFT_OUT = "left out"


def instead_of_layer(folder: str, scratch: str) -> Instead:
    """Looks at no more of it than would be copied."""
    if os.lstat(folder).st_dev == os.stat(scratch).st_dev and _shares_blocks(scratch):
        return Instead.SHARED
    return Instead.COPIED if _is_small(folder) else Instead.LEFT_OUT


def notice_of(folders: Sequence[tuple[str, Instead]], why: str) -> list[str]:
    """For people; nothing if there is nothing to tell."""
    told: list[str] = []
    for how in Instead:
        names = [path for path, done in folders if done is how]
        if names and how is Instead.LEFT_OUT:
            wanted = f"include: [{', '.join(names)}]"
            told.append(
                f"{', '.join(names)} will not be in the sandbox: {why}, and a copy takes long;"
                f" say {shlex.quote(wanted)} at the resource to have one made"
            )
        elif names:
            told.append(f"{', '.join(names)} will be {how.value} into the sandbox: {why}")
    return told


def _shares_blocks(scratch: str) -> bool:
    with tempfile.TemporaryFile(dir=scratch) as one, tempfile.TemporaryFile(dir=scratch) as two:
        one.write(b"x" * 4096)
        one.flush()
        with suppress(OSError):
            fcntl.ioctl(two.fileno(), FICLONE, one.fileno())
            return True
    return False


def _is_small(folder: str) -> bool:
    files = size = 0
    for top, _, names in os.walk(folder):
        for name in names:
            files += 1
            with suppress(OSError):
                size += os.lstat(os.path.join(top, name)).st_size
            if files > _MOST_FILES or size > _MOST_BYTES:
                return False
    return True
