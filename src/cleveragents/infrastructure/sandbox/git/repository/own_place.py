"""Where the repository is that the sandbox of a git checkout has to itself, and what it borrows."""

import os

from cleveragents.domain.errors import ProjectMissingError, SandboxMissingError
from cleveragents.domain.resource import PlanResource
from cleveragents.infrastructure.sandbox.git.repository.details import details_of
from cleveragents.infrastructure.sandbox.git.repository.git_dir import GitFolder


def folder_of(resource: PlanResource) -> GitFolder:
    return GitFolder(resource.sandbox_path)


def objects_of(resource: PlanResource) -> str:
    """The folder of objects of the user's repository, from which a sandbox borrows."""
    return os.path.join(details_of(resource).git_dir, "objects")


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
