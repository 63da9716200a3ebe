"""Git over the user's own repository: what its folder has to be, and how git is run there.

A program that works in place may have written anything into `.git`: links that lead out of the
tree, settings that name programs, pipes that nobody ever writes to. So what counts as a repository
is a folder that is whole in itself, and git is held inside: it can write in the tree and nowhere
else, and is given up if it does not answer (ADR 0106).
"""

import os
import stat
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from cleveragents.domain.resource import PlanResource
from cleveragents.infrastructure.files.durable_files import link_target, read_file, status
from cleveragents.infrastructure.sandbox.git.command import OFFLINE, Git

if TYPE_CHECKING:
    from cleveragents.infrastructure.sandbox.git.inside import GitInside, InsideSession

HEAD = "HEAD"
_SECONDS = 30.0
# Through a link in the place of one of these, git would write somewhere else.
_FOLDERS = ("objects", "refs", "refs/heads", "refs/tags", "refs/cleveragents", "logs", "logs/refs")
_NEEDED = ("objects", "refs")
# Git would wait for somebody to write into a pipe that has one of these names.
_FILES = ("config", "config.worktree", "index", "packed-refs", "shallow", "objects/info/alternates")


class OpenRepository:
    """Git in one tree until the block ends; `room` is a folder that it can write beside that."""

    def __init__(self, resource: PlanResource, inside: "InsideSession") -> None:
        self._inside = inside
        places = {"GIT_DIR": git_folder(resource.location), "GIT_WORK_TREE": resource.location}
        self.git = Git(resource.location, {**OFFLINE, **places}, inside.start)

    @property
    def room(self) -> str:
        return str(self._inside.room)


class UsersRepositories:
    """Git of ours where a program works in place."""

    def __init__(self, inside: "Callable[[], GitInside]") -> None:
        self._inside = inside

    @contextmanager
    def opened(self, resource: PlanResource) -> Generator[OpenRepository]:
        """Nothing is started before it is asked for."""
        from cleveragents.infrastructure.sandbox.git.inside import View  # noqa: PLC0415 - see there

        view = View(
            confinement=resource.confinement,
            plan_id=resource.plan_id,
            folder=resource.location,
            # Not `.git`: by now it may be a link.
            writable=[resource.location],
            seconds=_SECONDS,
        )
        with self._inside().opened(view) as inside:
            yield OpenRepository(resource, inside)


def users_git(location: str) -> Git:
    """Not held inside: for the first look, which is before the program, and only to read."""
    paths = {"GIT_DIR": git_folder(location), "GIT_WORK_TREE": location}
    return Git(location).with_env({**OFFLINE, **paths})


def git_folder(location: str) -> str:
    return os.path.join(location, ".git")


def is_there(gitdir: str) -> bool:
    return not why_not(gitdir)


def why_not(gitdir: str) -> str:
    """Why this is no repository to work with, in words; "" if it is one."""
    location, name = os.path.split(gitdir)
    kind = _kind(location, name)
    if not kind:
        return "there is none now"
    if kind != stat.S_IFDIR:
        return "`.git` is a link or a file"
    if _kind(gitdir, HEAD) not in (stat.S_IFREG, stat.S_IFLNK):
        return "it is no whole repository"
    if any(_kind(gitdir, folder) != stat.S_IFDIR for folder in _NEEDED):
        return "it is no whole repository, or parts of it are links"
    if any(_kind(gitdir, folder) not in (0, stat.S_IFDIR) for folder in _FOLDERS):
        return "parts of it are links"
    if _kind(gitdir, "commondir"):
        return "it shares its branches with another one"
    if _kind(gitdir, "reftable"):
        return "it keeps its branches in a reftable"
    odd = next((file for file in _FILES if _kind(gitdir, file) not in _READABLE), None)
    return f"its {odd} is no file" if odd else ""


_READABLE = (0, stat.S_IFREG, stat.S_IFLNK, stat.S_IFDIR)


def head_of(gitdir: str) -> bytes | None:
    """What HEAD says, also where it is a link to its branch, as git made it long ago."""
    if _kind(gitdir, HEAD) == stat.S_IFLNK:
        return b"ref: " + link_target(gitdir, HEAD) + b"\n"
    return read_file(gitdir, HEAD)


def _kind(top: str, name: str) -> int:
    """Of what is there itself; 0 if nothing is, or only by way of a link."""
    found = status(top, name)
    return stat.S_IFMT(found.st_mode) if found else 0
