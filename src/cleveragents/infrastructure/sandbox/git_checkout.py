"""Owns the sandbox of a git checkout: a worktree on a branch of its own, and what it changed.

The user's working tree, index, HEAD, stash and configuration are never written here.
"""

import os
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from cleveragents.domain.action import ResourceSpec
from cleveragents.domain.changes import ResourceDiff
from cleveragents.domain.errors import SandboxError, SandboxMissingError
from cleveragents.domain.ids import PlanId
from cleveragents.domain.sandbox import PlanResource, ResourceInspection
from cleveragents.infrastructure.sandbox.git import Git
from cleveragents.infrastructure.sandbox.git_diff import diff_of_trees, ignored_files
from cleveragents.infrastructure.sandbox.git_include import check_include, copy_include
from cleveragents.infrastructure.sandbox.git_inspect import inspect_checkout
from cleveragents.infrastructure.sandbox.git_refs import (
    applied_pin,
    delete_ref,
    sandbox_branch,
    unpin,
    value_of,
)
from cleveragents.infrastructure.sandbox.git_trees import FolderTree, Trees, text_of
from cleveragents.infrastructure.sandbox.sandbox_folder import make_parent, remove_sandbox


class GitCheckouts:
    def __init__(self, sandboxes_dir: str, scratch_dir: str) -> None:
        self._sandboxes = Path(sandboxes_dir)
        self._trees = Trees(scratch_dir)

    def inspect(
        self, spec: ResourceSpec, plan_id: PlanId, *, include_uncommitted: bool
    ) -> ResourceInspection:
        return inspect_checkout(self._trees, spec, plan_id, include_uncommitted=include_uncommitted)

    def create(self, resource: PlanResource) -> None:
        check_include(resource.location, resource.include)
        self._discard(resource)
        make_parent(Path(resource.sandbox_path))
        try:
            self._add_worktree(resource)
            copy_include(resource.location, resource.include, resource.sandbox_path)
        except BaseException:
            self._discard(resource)
            raise

    def check(self, resource: PlanResource) -> None:
        """Raises SandboxMissingError.

        The registration in the repository decides, not the `.git` file of the sandbox: a
        tool may have damaged that, and a rollback writes it again.
        """
        admin_folder(resource)

    def remove(self, resource: PlanResource) -> None:
        self._discard(resource)
        # A child has nothing pinned: it stands on what its parent holds.
        if resource.store_id == resource.plan_id and (repository := _repository(resource)):
            unpin(repository, resource)
        with suppress(OSError):  # another sandbox of the plan may still be there
            Path(resource.sandbox_path).parent.rmdir()

    def release(self, resource: PlanResource) -> None:
        repository = _repository(resource)
        if repository is None:
            return
        unpin(repository, resource)
        if not os.path.lexists(resource.sandbox_path):
            delete_ref(repository, f"refs/heads/{sandbox_branch(resource)}")

    def diff(self, resource: PlanResource) -> ResourceDiff:
        git = sandbox_git(resource)
        folder = self._trees.of_sandbox(git, resource.base)
        rest = left_behind(self._trees, resource, folder)
        return diff_of_trees(git, resource.base, folder.tree, rest)

    def applied_diff(self, resource: PlanResource, applied_ref: str) -> ResourceDiff:
        git = _repository(resource)
        if git is None:
            raise SandboxError(
                f"the repository {resource.location} is not there any more",
                "put the folder back if it was moved",
            )
        if applied_ref.startswith("tree:"):
            old, _, new = applied_ref.removeprefix("tree:").partition("..")
            return diff_of_trees(git, old, new)
        if value_of(git, applied_pin(resource)) == applied_ref:
            return ResourceDiff()  # pinned as it was: there was nothing to apply
        return diff_of_trees(git, f"{applied_ref}^1", applied_ref)

    def _add_worktree(self, resource: PlanResource) -> None:
        Git(resource.location).run(
            "-c",
            "worktree.useRelativePaths=false",  # true would write an extension into the config
            "worktree",
            "add",
            "--quiet",
            "--no-track",
            "-b",
            sandbox_branch(resource),
            resource.sandbox_path,
            resource.base,
        )

    def _discard(self, resource: PlanResource) -> None:
        """Remove folder, registration and branch as far as they are there.

        Not with `git worktree remove` or `prune`: the first needs an unharmed sandbox, the
        second would also forget worktrees of the user's that are only out of reach now.
        """
        remove_sandbox(self._sandboxes, Path(resource.sandbox_path))
        repository = _repository(resource)
        if repository is None:
            return
        for admin in list(_registrations(resource)):
            shutil.rmtree(admin)
        with suppress(OSError):  # as git does: the last one takes the folder along
            (_git_dir(resource) / "worktrees").rmdir()
        delete_ref(repository, f"refs/heads/{sandbox_branch(resource)}")


def left_behind(trees: Trees, resource: PlanResource, folder: FolderTree) -> tuple[str, ...]:
    """What is in the sandbox and cannot be applied: ignored files and whole repositories."""
    ignored = ignored_files(sandbox_git(resource), trees, folder.tree, resource.include)
    nested = tuple(text_of(path) for path in folder.nested)
    return tuple(sorted({*ignored, *nested}))


def sandbox_git(resource: PlanResource) -> Git:
    """Git in the sandbox, without trust in its `.git` file. Raises SandboxMissingError."""
    return Git(
        resource.sandbox_path,
        {"GIT_DIR": str(admin_folder(resource)), "GIT_WORK_TREE": resource.sandbox_path},
    )


def admin_folder(resource: PlanResource) -> Path:
    """Where the repository keeps the worktree's HEAD and index. Raises SandboxMissingError."""
    path = Path(resource.sandbox_path)
    found = next(_registrations(resource), None)
    if found is None or path.is_symlink() or not path.is_dir():
        raise SandboxMissingError(resource.name, resource.sandbox_path)
    return found


def _registrations(resource: PlanResource) -> Iterator[Path]:
    sandbox = Path(resource.sandbox_path, ".git")
    wanted = {str(sandbox), str(sandbox.parent.resolve() / ".git")}
    for admin in sorted(_git_dir(resource).glob("worktrees/*")):
        with suppress(OSError):
            named = os.fsdecode((admin / "gitdir").read_bytes()).removesuffix("\n")
            if named in wanted:
                yield admin


def _repository(resource: PlanResource) -> Git | None:
    """The repository itself, for references; None if it is gone."""
    git_dir = _git_dir(resource)
    if not git_dir.is_dir():
        return None
    return Git(str(git_dir), {"GIT_DIR": str(git_dir)})


def _git_dir(resource: PlanResource) -> Path:
    return Path(str(resource.details.get("git_dir") or Path(resource.location, ".git")))
