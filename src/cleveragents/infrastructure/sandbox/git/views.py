"""The views that git gets of what steps have written, each with what it may write.

Settings and filters are those of the user's repository, not of the sandbox's: a step could have
put a program of its own there. What a filter of the user's runs may still be a step's, since it
is looked for in the sandbox too. So all of this is held inside (ADR 0046).
"""

import os
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from cleveragents.domain.resource import PlanResource
from cleveragents.infrastructure.sandbox.git.command import UNSYNCED, Git
from cleveragents.infrastructure.sandbox.git.repository.git_dir import GitFolder, quoted
from cleveragents.infrastructure.sandbox.git.repository.own_place import (
    folder_of,
    objects_of,
    require_sandbox,
)

if TYPE_CHECKING:  # a snapshot hardly ever asks git anything
    from pathlib import Path

    from cleveragents.infrastructure.sandbox.git.config import GitSettings
    from cleveragents.infrastructure.sandbox.git.inside import GitInside, InsideSession
    from cleveragents.infrastructure.sandbox.git.trees import GitTrees

# Objects that go with the room need not survive anything.
_PASSING = {**UNSYNCED, "core.looseCompression": "0"}


class GitView(Struct, frozen=True, kw_only=True):
    """Git inside; `trees` and `room` are where it may write."""

    git: Git
    trees: "GitTrees"
    room: "Path"

    def over(self, user: Git) -> "GitView":
        """The same inside, with a look at a checkout of the user's."""
        objects = user.text("rev-parse", "--path-format=absolute", "--git-path", "objects")
        git = self.git.at(user.directory).with_env(_checkout(user.directory, objects))
        return replace(self, git=git)


class GitViews:
    """Also knows the sandboxes that this process has made: as long as nobody has written to the
    index of one, it says what the base commit holds."""

    def __init__(self, inside: "Callable[[], GitInside]") -> None:
        self._inside = inside
        self._made: dict[str, tuple[int, int, int] | None] = {}
        self._settings: dict[str, GitSettings] = {}

    def note_made(self, resource: PlanResource, settings: "GitSettings") -> None:
        """`settings` are those by which it was checked out."""
        self._made[resource.sandbox_path] = _index_marks(resource)
        self._settings[resource.sandbox_path] = settings

    def settings_of(self, resource: PlanResource) -> "GitSettings | None":
        return self._settings.get(resource.sandbox_path)

    def is_as_made(self, resource: PlanResource) -> bool:
        made = self._made.get(resource.sandbox_path)
        return made is not None and made == _index_marks(resource)

    def ignored(self, resource: PlanResource, paths: Sequence[bytes]) -> frozenset[bytes]:
        """Those of the paths that the project itself ignores."""
        if not paths:
            return frozenset()
        from cleveragents.infrastructure.sandbox.git.trees import nul_ended

        with self.of_files(resource) as view:
            asked = view.git.run(
                "check-ignore", "-z", "--stdin", input=nul_ended(list(paths)), check=False
            )
        return frozenset(asked.stdout.split(b"\0")[:-1])

    @contextmanager
    def of_files(self, resource: PlanResource) -> Generator[GitView]:
        """Over the files of the sandbox, which it cannot write. New objects go with the room.

        Raises SandboxMissingError.
        """
        from cleveragents.infrastructure.sandbox.git.lfs import lend

        require_sandbox(resource)
        with self._opened(resource, resource.sandbox_path) as inside:
            lend(Git(resource.location), objects_of(resource), inside.room)
            env = {
                **_checkout(resource.location, objects_of(resource)),
                "GIT_WORK_TREE": resource.sandbox_path,
            }
            yield _held(inside, resource.sandbox_path, env)

    @contextmanager
    def of_checkout(self, resource: PlanResource, user: Git, *writable: str) -> Generator[GitView]:
        """Over a checkout of the user's in which files of the plan may be already. It cannot write
        there but in the folders `writable`."""
        from cleveragents.infrastructure.sandbox.git.lfs import lend

        objects = user.text("rev-parse", "--path-format=absolute", "--git-path", "objects")
        with self._opened(resource, user.directory, *writable) as inside:
            lend(user, objects, inside.room)
            yield _held(inside, user.directory, _checkout(user.directory, objects))

    @contextmanager
    def into(self, resource: PlanResource, user: Git) -> Generator[Git]:
        """Over the objects of a repository of the user's, to add some; no other file of it can be
        written."""
        args = ("rev-parse", "--path-format=absolute", "--git-path", "objects")
        objects = os.path.realpath(user.text(*args))
        with self._opened(resource, user.directory, objects) as inside:
            place = user.env.get("GIT_DIR") or os.path.join(user.directory, ".git")
            yield Git(user.directory, {"GIT_DIR": place}, inside.start)

    @contextmanager
    def of_state(self, resource: PlanResource) -> Generator[Git]:
        """Over the index and the objects of the sandbox's own repository, which it may write.

        References are not to be written.
        """
        folder = folder_of(resource)
        folder.make(objects_of(resource))
        folder.clear()
        with self._opened(resource, resource.sandbox_path, folder.path) as inside:
            own = _own_repository(resource, folder)
            yield Git(resource.sandbox_path, own, inside.start, UNSYNCED)

    def _opened(
        self, resource: PlanResource, folder: str, *writable: str
    ) -> "AbstractContextManager[InsideSession]":
        from cleveragents.infrastructure.sandbox.git.inside import View

        view = View(
            confinement=resource.confinement,
            plan_id=resource.plan_id,
            folder=folder,
            writable=writable,
        )
        return self._inside().opened(view)


def _held(inside: "InsideSession", folder: str, env: Mapping[str, str]) -> GitView:
    from cleveragents.infrastructure.sandbox.git.lfs import lfs_in
    from cleveragents.infrastructure.sandbox.git.trees import TreesInside

    room = inside.room
    (room / "objects").mkdir()
    own = {"GIT_INDEX_FILE": str(room / "index"), "GIT_OBJECT_DIRECTORY": str(room / "objects")}
    git = Git(folder, {**own, **env}, inside.start, {**_PASSING, **lfs_in(room)})
    return GitView(git=git, trees=TreesInside(str(room)), room=room)


def _checkout(folder: str, objects: str) -> dict[str, str]:
    return {
        "GIT_DIR": os.path.join(folder, ".git"),
        "GIT_WORK_TREE": folder,
        "GIT_ALTERNATE_OBJECT_DIRECTORIES": alternate(objects),
    }


def alternate(path: str) -> str:
    """As the variable takes it: in quotes only if need be, since not all readers know them."""
    return quoted(path) if os.pathsep in path or path.startswith('"') else path


def _own_repository(resource: PlanResource, folder: GitFolder) -> Mapping[str, str]:
    own = {
        "GIT_DIR": f"{resource.location}/.git",
        "GIT_WORK_TREE": resource.sandbox_path,
        "GIT_INDEX_FILE": folder.file("index"),
        "GIT_OBJECT_DIRECTORY": folder.file("objects"),
        "GIT_SHALLOW_FILE": folder.file("shallow"),
    }
    if folder.has_split_index():
        # Its halves find each other only in the folder of the repository.
        own["GIT_DIR"] = folder.path
    return own


def _index_marks(resource: PlanResource) -> tuple[int, int, int] | None:
    try:
        found = os.stat(os.path.join(folder_of(resource).path, "index"))
    except FileNotFoundError:
        return None
    return (found.st_ino, found.st_size, found.st_mtime_ns)
