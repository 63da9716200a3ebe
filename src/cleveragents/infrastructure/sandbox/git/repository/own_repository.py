"""The repository that the sandbox of a git checkout has to itself.

It borrows the objects of the user's repository, and has all else of its own: HEAD, index,
references, configuration. So no git command in a sandbox reaches what is the user's (ADR 0024).
"""

import os
from contextlib import suppress

from cleveragents.domain.resource import PlanResource
from cleveragents.infrastructure.files.copy.btrfs import make_branchable
from cleveragents.infrastructure.files.copy.tree_copy import copy_folder
from cleveragents.infrastructure.files.excludes import excludes
from cleveragents.infrastructure.files.layers.known_layers import branch_layers
from cleveragents.infrastructure.sandbox.git.command import UNSYNCED, Git
from cleveragents.infrastructure.sandbox.git.repository.details import details_of
from cleveragents.infrastructure.sandbox.git.repository.furnish import (
    active,
    check_out,
    furnish,
    put,
)
from cleveragents.infrastructure.sandbox.git.repository.own_place import folder_of, objects_of
from cleveragents.infrastructure.sandbox.git.repository.pins import sandbox_branch
from cleveragents.infrastructure.sandbox.git.repository.ref_files import (
    ProjectRefs,
    head_commit,
    put_refs,
    read_refs,
    write_refs,
)
from cleveragents.infrastructure.sandbox.git.submodules.records import inside


def make_repository(resource: PlanResource) -> None:
    """A new repository with the base checked out into the sandbox, on the plan's branch."""
    folder, project = folder_of(resource), Git(resource.location)
    make_branchable(resource.sandbox_path)
    folder.make(objects_of(resource))
    branch = f"refs/heads/{sandbox_branch(resource)}"
    put(folder, "HEAD", f"ref: {branch}\n".encode())
    modules = active([module.name for module in inside(resource)])
    settings = furnish(folder, project, details_of(resource).git_dir, modules)
    theirs, base = ProjectRefs.read(project), resource.base.encode()
    wanted, peeled = {**theirs.refs, branch.encode(): base}, {**theirs.peeled, base: base}
    put_refs(folder.path, wanted, peeled, synced=False)
    folder.write_pointer(synced=False)
    check_out(_new_git(resource), resource.base, resource.location, settings)


def branch_repository(parent: PlanResource, child: PlanResource) -> None:
    """The parent's repository over again, as it is now, on a branch of the child's own.

    The child's files may be there already.
    """
    ours, theirs = folder_of(parent), folder_of(child)
    # Its objects too, those few that are not the user's: a gc in one must not harm the other.
    with suppress(FileExistsError):
        os.mkdir(theirs.sandbox, 0o700)
    os.mkdir(theirs.path, 0o700)
    copy_folder(ours.path, theirs.path, excludes((), frozenset()))
    theirs.make(objects_of(child))
    theirs.clear()
    refs = read_refs(theirs.path)
    commit = head_commit(theirs.read("HEAD") or b"", refs) or child.base
    branch = f"refs/heads/{sandbox_branch(child)}"
    wanted = {**refs, branch.encode(): commit.encode()}
    write_refs(theirs.path, wanted, Git(child.location), synced=False)
    put(theirs, "HEAD", f"ref: {branch}\n".encode())
    theirs.write_pointer(synced=False)
    branch_layers(parent.sandbox_path, child.sandbox_path)


def _new_git(resource: PlanResource) -> Git:
    """Plainly: what is checked out is the user's, and no step has run yet."""
    folder = folder_of(resource)
    own = {
        "GIT_OBJECT_DIRECTORY": folder.file("objects"),
        "GIT_SHALLOW_FILE": folder.file("shallow"),
    }
    return _project_over_sandbox(resource).with_env(own)


def _project_over_sandbox(resource: PlanResource) -> Git:
    places = {
        "GIT_DIR": f"{resource.location}/.git",
        "GIT_WORK_TREE": resource.sandbox_path,
        # Named in any case: no command of ours may take up the user's, let alone write it.
        "GIT_INDEX_FILE": folder_of(resource).file("index"),
    }
    return Git(resource.sandbox_path, places, settings=UNSYNCED)
