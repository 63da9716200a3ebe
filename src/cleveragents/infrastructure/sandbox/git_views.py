"""Owns the views that git gets of a sandbox and its repository, each with what it may write.

Settings and filters are those of the user's repository, not of the sandbox's: a step could have
put a program of its own there. What a filter of the user's runs may still be a step's, since it
is looked for in the sandbox too. So all of this is held inside (ADR 0046).
"""

import os
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from cleveragents.domain.sandbox import PlanResource
from cleveragents.infrastructure.sandbox.git import Git
from cleveragents.infrastructure.sandbox.git_folder import GitFolder, quoted
from cleveragents.infrastructure.sandbox.git_inside import GitInside, View
from cleveragents.infrastructure.sandbox.git_repository import (
    folder_of,
    objects_of,
    require_sandbox,
)
from cleveragents.infrastructure.sandbox.git_trees import Trees, TreesInside

# Objects that go with the room need not survive anything.
_PASSING = {"core.fsync": "none", "core.looseCompression": "0"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """Git inside; `trees` and `room` are where it may write."""

    git: Git
    trees: Trees
    room: Path


class GitViews:
    def __init__(self, inside: GitInside) -> None:
        self._inside = inside

    @contextmanager
    def of_files(self, resource: PlanResource) -> Generator[Held]:
        """Over the files of the sandbox, which it cannot write. New objects go with the room.

        Raises SandboxMissingError.
        """
        require_sandbox(resource)
        with self._inside.opened(_view(resource)) as inside:
            env = {
                "GIT_DIR": f"{resource.location}/.git",
                "GIT_WORK_TREE": resource.sandbox_path,
                **own_objects(inside.room, objects_of(resource)),
            }
            git = Git(resource.sandbox_path, env, inside.start, {**_PASSING, **lfs_in(inside.room)})
            yield Held(git=git, trees=TreesInside(str(inside.room)), room=inside.room)

    @contextmanager
    def of_state(self, resource: PlanResource) -> Generator[Git]:
        """Over the index and the objects of the sandbox's own repository, which it may write.

        References are not to be written.
        """
        folder = folder_of(resource)
        folder.make(objects_of(resource))
        folder.clear()
        with self._inside.opened(_view(resource, folder.path)) as inside:
            yield Git(resource.sandbox_path, _own_repository(resource, folder), inside.start)


def own_objects(room: Path, borrowed: str) -> dict[str, str]:
    """For a git that looks at what others have, and adds to it only in its room."""
    objects = room / "objects"
    objects.mkdir()
    return {
        "GIT_INDEX_FILE": str(room / "index"),
        "GIT_OBJECT_DIRECTORY": str(objects),
        "GIT_ALTERNATE_OBJECT_DIRECTORIES": alternate(borrowed),
    }


def lfs_in(room: Path) -> dict[str, str]:
    """git-lfs keeps contents beside the objects of a repository; here that is the user's."""
    return {"lfs.storage": str(room / "lfs")}


def alternate(path: str) -> str:
    """As the variable takes it: in quotes only if need be, since not all readers know them."""
    return quoted(path) if os.pathsep in path or path.startswith('"') else path


def _view(resource: PlanResource, *writable: str) -> View:
    return View(
        confinement=resource.confinement,
        plan_id=resource.plan_id,
        folder=resource.sandbox_path,
        writable=writable,
    )


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
