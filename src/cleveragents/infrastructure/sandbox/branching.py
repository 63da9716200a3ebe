"""Owns the sandboxes of child plans: each a branch or copy of its parent's, as that is now."""

import os
import shutil
import threading
from collections.abc import Mapping
from pathlib import Path

from cleveragents.domain.action import ResourceType
from cleveragents.domain.errors import SandboxError
from cleveragents.domain.sandbox import PlanResource
from cleveragents.infrastructure.sandbox.branch_copy import BranchCopy, CopyMarks
from cleveragents.infrastructure.sandbox.fs_copy import copy_folder
from cleveragents.infrastructure.sandbox.git import Git
from cleveragents.infrastructure.sandbox.git_checkout import admin_folder, sandbox_git
from cleveragents.infrastructure.sandbox.git_folder import GitFolder, write_file
from cleveragents.infrastructure.sandbox.git_modules import modules_in
from cleveragents.infrastructure.sandbox.git_refs import sandbox_branch, value_of
from cleveragents.infrastructure.sandbox.sandbox_folder import make_parent, remove_sandbox
from cleveragents.infrastructure.sandbox.sqlite_database import copy_settled
from cleveragents.infrastructure.snapshots.excludes import excludes

Copied = Mapping[bytes, CopyMarks]
"""By path, for what is known of; empty if the copy was made in a way that proves nothing."""


class Branches:
    """The caller has removed what an interrupted attempt left at the child's place."""

    def __init__(self) -> None:
        # Two that add or remove a worktree at once trip over the folder that these share.
        self.worktrees = threading.Lock()

    def make(self, parent: PlanResource, child: PlanResource) -> Copied:
        if parent.type is ResourceType.GIT_CHECKOUT:
            return self._branch_checkout(parent, child)
        if parent.type is ResourceType.FS_DIRECTORY:
            return _copy(parent.sandbox_path, child, frozenset())
        copy_settled(parent.sandbox_path, child)
        return {}

    def _branch_checkout(self, parent: PlanResource, child: PlanResource) -> Copied:
        """A worktree of its own on the parent's commit, with the parent's files and index."""
        git = sandbox_git(parent)
        commit = value_of(git, "HEAD") or parent.base
        make_parent(Path(child.sandbox_path))
        with self.worktrees:
            Git(parent.location).run(
                *("-c", "worktree.useRelativePaths=false"),
                *("worktree", "add", "--quiet", "--no-track", "--no-checkout"),
                *("-b", sandbox_branch(child), child.sandbox_path, commit),
            )
        _copy_git_state(parent, child)
        return _copy(parent.sandbox_path, child, frozenset({b".git"}))


def _copy(source: str, child: PlanResource, hidden: frozenset[bytes]) -> Copied:
    """Everything, what snapshots leave out too: a child needs the same place to work in."""
    target = Path(child.sandbox_path)
    try:
        make_parent(target)
        target.mkdir(mode=0o700, exist_ok=True)
        return _copy_fast(source, target, hidden)
    except OSError as error:
        raise SandboxError(
            f"the sandbox of `{child.name}` cannot be copied: {error}", f"ls -ld {source}"
        ) from error


def _copy_fast(source: str, target: Path, hidden: frozenset[bytes]) -> Copied:
    try:
        return BranchCopy(os.fsencode(source), os.fsencode(target), hidden).run()
    except OSError:
        # Very deep, just changing, not ours to read: the careful copy manages, or says why not.
        for name in os.listdir(target):
            if os.fsencode(name) not in hidden:
                remove_sandbox(target, target / name)
        copy_folder(source, str(target), excludes((), hidden))
        return {}


def _copy_git_state(parent: PlanResource, child: PlanResource) -> None:
    """The index, and what a merge or rebase between two commands has left for the next."""
    ours = GitFolder(sandbox=parent.sandbox_path, gitdir=str(admin_folder(parent)), pointer=None)
    theirs = GitFolder(sandbox=child.sandbox_path, gitdir=str(admin_folder(child)), pointer=None)
    index = ours.read("index")
    if index is not None:
        write_file(os.path.join(theirs.gitdir, "index"), index, mode=0o644)
    operation = ours.operation()
    theirs.write_operation({k: v for k, v in operation.items() if not k.startswith("modules/")})
    _copy_modules(parent, child, ours.gitdir, theirs.gitdir)


def _copy_modules(parent: PlanResource, child: PlanResource, ours: str, theirs: str) -> None:
    """Submodules have repositories of their own in there, tied to their folders by both paths."""
    source = os.path.join(ours, "modules")
    if not os.path.isdir(source):
        return
    shutil.copytree(source, os.path.join(theirs, "modules"), symlinks=True)
    for module in modules_in(source):
        copied = os.path.join(theirs, os.path.relpath(module, ours))
        git = Git(copied)
        said = git.run("config", "-f", "config", "core.worktree", check=False).stdout
        named = os.path.join(module, os.fsdecode(said).removesuffix("\n"))
        inside = os.path.relpath(named, parent.sandbox_path)
        place = os.path.join(child.sandbox_path, inside)
        if not said or inside.startswith("..") or not os.path.isdir(place):
            continue
        git.run("config", "-f", "config", "core.worktree", os.path.relpath(place, copied))
        pointer = f"gitdir: {os.path.relpath(copied, place)}\n"
        write_file(os.path.join(place, ".git"), os.fsencode(pointer), mode=0o644)
