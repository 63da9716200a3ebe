"""What is on record of a checkout, where its sandbox has a repository, and what that borrows."""

import os

from msgspec import Struct

from cleveragents.domain.errors import ProjectMissingError, SandboxMissingError
from cleveragents.domain.resource import PlanResource
from cleveragents.infrastructure.sandbox.git.command import UNSYNCED, Git
from cleveragents.infrastructure.sandbox.git.repository.git_dir import FIRST_INDEX, GitFolder
from cleveragents.infrastructure.sandbox.own_state import read_back


class Submodule(Struct, frozen=True, kw_only=True):
    """`path` is below the top of the project, and `within` that of the submodule it is part of;
    its repository has its `place` below the project's. The plan's base names `commit` for it."""

    path: str
    name: str
    within: str
    place: str
    git_dir: str
    commit: str

    def repository(self, project: str) -> str:
        """The folder of the user's repository of it."""
        return os.path.join(project, self.git_dir)


class CheckoutDetails(Struct, frozen=True, kw_only=True):
    """`git_dir` is the folder of the user's repository, and by its inode that is known again after
    a move. Of the submodules, outer ones come before those inside of them."""

    git_dir: str
    git_inode: int = 0
    included_uncommitted: bool = False
    submodules: tuple[Submodule, ...] = ()


def details_of(resource: PlanResource) -> CheckoutDetails:
    return read_back(resource, resource.details, CheckoutDetails)


def folder_of(resource: PlanResource) -> GitFolder:
    return GitFolder(resource.sandbox_path)


def first_index(resource: PlanResource) -> str:
    """The index of the sandbox as it was made: which files the base holds, with the status that
    they had before any step. Only a sandbox that was checked out has one."""
    return resource.sandbox_path + FIRST_INDEX


def objects_of(resource: PlanResource) -> str:
    """The folder of objects of the user's repository, from which a sandbox borrows."""
    return os.path.join(details_of(resource).git_dir, "objects")


def new_git(resource: PlanResource) -> Git:
    """Over a sandbox that is just being made: what is checked out is the user's, and no step has
    run yet, so that it runs plainly."""
    folder = folder_of(resource)
    places = {
        "GIT_DIR": f"{resource.location}/.git",
        "GIT_WORK_TREE": resource.sandbox_path,
        # Named in any case: no command of ours may take up the user's, let alone write it.
        "GIT_INDEX_FILE": folder.file("index"),
        "GIT_OBJECT_DIRECTORY": folder.file("objects"),
        "GIT_SHALLOW_FILE": folder.file("shallow"),
    }
    return Git(resource.sandbox_path, places, settings=UNSYNCED)


def require_sandbox(resource: PlanResource) -> None:
    """Raises SandboxMissingError if it is gone, and ProjectMissingError if the user's repository is
    that it stands on.

    Its own repository may be gone: a rollback puts that back.
    """
    path = resource.sandbox_path
    if not os.path.isdir(objects_of(resource)):
        raise ProjectMissingError(resource.name, resource.location)
    if os.path.islink(path) or not os.path.isdir(path):
        raise SandboxMissingError(resource.name, resource.sandbox_path, resource.store_id)
