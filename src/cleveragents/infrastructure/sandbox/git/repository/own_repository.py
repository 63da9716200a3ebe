"""The repository that the sandbox of a git checkout has to itself.

It borrows the objects of the user's repository, and has all else of its own: HEAD, index,
references, configuration. So no git command in a sandbox reaches what is the user's (ADR 0024).
Nothing that is made here is synced: until the sandbox is recorded as made, it is made again
after a crash.
"""

import os
import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from cleveragents.domain.errors import SandboxError
from cleveragents.domain.resource import PlanResource
from cleveragents.infrastructure.files.copy.btrfs import make_branchable
from cleveragents.infrastructure.files.copy.tree_copy import copy_folder
from cleveragents.infrastructure.files.durable_files import put_file
from cleveragents.infrastructure.files.excludes import excludes
from cleveragents.infrastructure.files.layers.known_layers import branch_layers
from cleveragents.infrastructure.sandbox.git.command import Git, GitError, hooks_off, start_hookless
from cleveragents.infrastructure.sandbox.git.config import GitSettings
from cleveragents.infrastructure.sandbox.git.repository.git_dir import GitFolder
from cleveragents.infrastructure.sandbox.git.repository.own_place import (
    details_of,
    first_index,
    folder_of,
    new_git,
    objects_of,
)
from cleveragents.infrastructure.sandbox.git.repository.pins import sandbox_branch
from cleveragents.infrastructure.sandbox.git.repository.ref_files import (
    ProjectRefs,
    head_commit,
    put_refs,
    read_refs,
    write_refs,
)
from cleveragents.infrastructure.sandbox.git.submodules.records import inside

# Plumbing that writes an index of ours must leave no part of it in the user's repository.
# What is remembered of untracked files would hold for the sandbox, and not for a copy.
_WHOLE_INDEX = tuple(
    word
    for setting in (
        "core.splitIndex=false",
        "index.sparse=false",
        "core.untrackedCache=false",
        # No entry is to be believed without a look.
        "core.ignoreStat=false",
        "index.skipHash=false",
    )
    for word in ("-c", setting)
)
# Many files are written by several processes; for fewer than this it would not pay.
_FEW = "800"
_MOST_PROCESSES = 8


def make_repository(resource: PlanResource) -> GitSettings:
    """A new repository with the base checked out into the sandbox, on the plan's branch. Gives back
    the settings by which that was done."""
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
    check_out(new_git(resource), resource.base, resource.location, settings)
    # With its time: git tells by it which entries it has to look at again.
    shutil.copy2(folder.file("index"), first_index(resource))
    return settings


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


def furnish(
    folder: GitFolder, project: Git, common: str, further: Mapping[str, str]
) -> GitSettings:
    """Settings, with `further` ones, attributes, excludes and sparse patterns of the repository
    `project`, and where the history of a shallow clone ends; `common` is its folder."""
    settings = GitSettings.read(project)
    put(folder, "config", settings.config_file(further))
    own = _own_folder(project, common)
    for place, name in (
        (common, "shallow"),
        (common, "info/attributes"),
        (common, "info/exclude"),
        (own, "info/sparse-checkout"),
    ):
        source = os.path.join(place, name)
        if os.path.isfile(source):
            put(folder, name, Path(source).read_bytes())
    return settings


def _own_folder(project: Git, common: str) -> str:
    """What a checkout has to itself; that of a linked worktree is not the folder of all others."""
    if os.path.isdir(os.path.join(project.directory, ".git")) or project.directory == common:
        return common
    return project.text("rev-parse", "--absolute-git-dir")


def put(folder: GitFolder, name: str, data: bytes) -> None:
    put_file(folder.path, name, data, synced=False)


def check_out(git: Git, commit: str, project: str, settings: GitSettings) -> None:
    """Fill the empty folder that `git` looks at, and in which `settings` hold. No hook runs, for
    all there could be are among them. Raises SandboxError."""
    git = git.with_env(hooks_off(settings.values, git.env)).started_by(start_hookless)
    try:
        git.run(*_WHOLE_INDEX, *_side_by_side(), "read-tree", "-m", "-u", commit)
    except GitError as error:
        if not settings.is_partial():
            raise
        raise SandboxError(
            f"{project} is a partial clone, and files of {commit[:12]} are not in it: "
            f"{error.stderr}",
            f"fetch them: git -C {project} fetch --refetch --no-filter",
        ) from error


def _side_by_side() -> tuple[str, ...]:
    processes = min(_MOST_PROCESSES, len(os.sched_getaffinity(0)))
    settings = (f"checkout.workers={processes}", f"checkout.thresholdForParallelism={_FEW}")
    return tuple(word for setting in settings for word in ("-c", setting))


def active(names: list[str]) -> Mapping[str, str]:
    """GitSettings without which git passes over submodules that are there."""
    return {f"submodule.{name}.active": "true" for name in names}
