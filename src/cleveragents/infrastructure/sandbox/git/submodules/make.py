"""Making the submodules of a sandbox: at the commit that the base names, on no branch."""

import os

from cleveragents.domain.errors import SandboxError
from cleveragents.domain.resource import PlanResource
from cleveragents.infrastructure.files.durable_files import make_folder
from cleveragents.infrastructure.sandbox.git.repository.furnish import (
    active,
    check_out,
    furnish,
    put,
)
from cleveragents.infrastructure.sandbox.git.repository.ref_files import ProjectRefs, put_refs
from cleveragents.infrastructure.sandbox.git.submodules.records import (
    Submodule,
    borrowing_folder,
    in_repository,
    inside,
    submodule_git,
    submodules_of,
)


def make_submodules(resource: PlanResource) -> None:
    """For a sandbox that has just been made. Raises SandboxError."""
    for module in submodules_of(resource):
        _make(resource, module)


def _make(resource: PlanResource, module: Submodule) -> None:
    user = in_repository(resource.location, module)
    repository = user.directory
    if not os.path.isdir(repository):
        raise SandboxError(
            f"the submodule {module.path} of {resource.location} is not there any more",
            f"git -C {resource.location} submodule update --init --recursive",
        )
    make_folder(resource.sandbox_path, module.path)
    folder = borrowing_folder(resource, module)
    names = [inner.name for inner in inside(resource, module.path)]
    place = os.path.relpath(folder.sandbox, folder.path)
    settings = furnish(folder, user, repository, {"core.worktree": place, **active(names)})
    put(folder, "HEAD", module.commit.encode() + b"\n")
    theirs = ProjectRefs.read(user)
    put_refs(folder.path, theirs.refs, theirs.peeled, synced=False)
    folder.write_pointer(synced=False)
    check_out(submodule_git(resource, module), module.commit, repository, settings)
