"""Owns refusing an apply that would lose work inside of a sandbox's submodules."""

import os
from pathlib import PurePosixPath

from cleveragents.domain.errors import ApplyRefusedError
from cleveragents.domain.sandbox import PlanResource
from cleveragents.infrastructure.sandbox.git import Git
from cleveragents.infrastructure.sandbox.git_trees import (
    GITLINK,
    FolderTree,
    Trees,
    text_of,
    tree_changes,
)


def refuse_lost_work(git: Git, trees: Trees, resource: PlanResource, folder: FolderTree) -> None:
    """Raises ApplyRefusedError where the sandbox has commits or files in repositories of its own
    that a commit of the project would name at most. `git` looks at the sandbox."""
    place = resource.sandbox_path
    if made := [path for path in folder.nested if not _is_brought(path, resource)]:
        name = text_of(made[0])
        raise ApplyRefusedError(
            f"{name} in the sandbox is a repository of its own, which apply does not take",
            f"copy it from {place}/{name} and remove it there, then apply again",
        )
    if lost := _unknown_commits(git, resource, folder) or _changed_inside(git, trees, folder):
        name = text_of(lost[0])
        raise ApplyRefusedError(
            f"the submodule {name} has work inside that apply does not take",
            f"push it from {place}/{name} or copy it, and undo it there, then apply again",
        )


def _is_brought(path: bytes, resource: PlanResource) -> bool:
    found = PurePosixPath(os.fsdecode(path))
    return any(found.is_relative_to(PurePosixPath(item)) for item in resource.include)


def _unknown_commits(git: Git, resource: PlanResource, folder: FolderTree) -> list[bytes]:
    """Submodules at a commit that the project's own copy of them does not have."""
    changes = tree_changes(git, resource.base, folder.tree)
    moved = [change for change in changes if change.new_mode == GITLINK]
    return [c.path for c in moved if not _has(f"{resource.location}/{c.name}", c.new_oid.decode())]


def _has(repository: str, commit: str) -> bool:
    there = os.path.lexists(os.path.join(repository, ".git"))
    return there and Git(repository).succeeds("cat-file", "-e", f"{commit}^{{commit}}")


def _changed_inside(git: Git, trees: Trees, folder: FolderTree) -> list[bytes]:
    """Submodules with files that their own commit does not have, or has otherwise."""
    with trees.private_index(git) as private:
        private.run("read-tree", folder.tree)
        listed = private.run("ls-files", "--stage", "-z").stdout.split(b"\0")[:-1]
        links = [line.partition(b"\t")[2] for line in listed if line.startswith(GITLINK)]
        if not links:
            return []
        literal = private.with_env({"GIT_LITERAL_PATHSPECS": "1"})
        asked = ("diff-files", "--name-only", "-z", "--ignore-submodules=none", "--")
        return literal.run(*asked, *map(os.fsdecode, links)).stdout.split(b"\0")[:-1]
