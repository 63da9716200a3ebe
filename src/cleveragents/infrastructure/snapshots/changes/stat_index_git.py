"""Owns asking git which files do not have the status that an index tells of."""

import os
import shutil
from importlib import resources

from cleveragents.infrastructure.snapshots.changes.subprocesses import Programs

# The repository is an empty one of ours, and nobody writes to it: the one of the sandbox may hold
# settings that make git run a program.
_SETTINGS = {
    "GIT_WORK_TREE": ".",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_OPTIONAL_LOCKS": "0",
}


class CannotSiftError(Exception):
    """Too much changed, or git cannot be asked: look at everything."""


def compare(programs: Programs, index: bytes) -> None:
    """Begin to compare the files of an index. Raises CannotSiftError or OSError."""
    git = shutil.which("git")
    if git is None:
        raise CannotSiftError
    told = os.memfd_create("index")
    try:
        with open(told, "wb", closefd=False) as file:
            file.write(index)
        env = {**_SETTINGS, "GIT_DIR": _empty(), "GIT_INDEX_FILE": f"/proc/self/fd/{told}"}
        programs.start([git, "diff-files", "--name-only", "--no-renames", "-z"], env, (told,))
    finally:
        os.close(told)


def paths_in(answer: bytes) -> list[bytes]:
    """The files that changed."""
    return answer.split(b"\0")[:-1]


def _empty() -> str:
    return str(resources.files(__package__ or "").joinpath("empty.git"))
