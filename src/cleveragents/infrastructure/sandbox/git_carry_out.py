"""Owns carrying out a prepared apply in the user's checkout: files, then index, then branch.

Every part may be repeated with the same token after a crash, and ends in the same state.
"""

import os
import shutil
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Any

from cleveragents.domain.errors import ApplyConflictError, ApplyRefusedError
from cleveragents.domain.sandbox import PlanResource
from cleveragents.infrastructure.sandbox.git import Git, GitError
from cleveragents.infrastructure.sandbox.git_files import FileUpdate, MovedOnError
from cleveragents.infrastructure.sandbox.git_index import UserIndex
from cleveragents.infrastructure.sandbox.git_refs import applied_pin, pin, value_of
from cleveragents.infrastructure.sandbox.git_trees import Trees, text_of


class GitCarryOut:
    def __init__(self, trees: Trees) -> None:
        self._trees = trees

    def carry_out(self, git: Git, resource: PlanResource, token: Mapping[str, Any]) -> str:
        match token["kind"]:
            case "nothing":
                pin(git, applied_pin(resource), token["head"])
                return str(token["head"])
            case "branch":
                return self._make_branch(git, resource, token["ref"], token["commit"])
            case "commit":
                return self._commit(git, resource, token)
            case _:
                return self._change_files(git, resource, token["commit"])

    def _make_branch(self, git: Git, resource: PlanResource, ref: str, commit: str) -> str:
        if value_of(git, ref) != commit:
            _update_ref(git, resource, ref, commit, "")
        return commit

    def _change_files(self, git: Git, resource: PlanResource, commit: str) -> str:
        with self._updated_files(git, resource, f"{commit}^1", commit):
            pin(git, applied_pin(resource), commit)
        old, new = (git.text("rev-parse", f"{name}^{{tree}}") for name in (f"{commit}^1", commit))
        return f"tree:{old}..{new}"

    def _commit(self, git: Git, resource: PlanResource, token: Mapping[str, Any]) -> str:
        head, commit, ref = (str(token[key]) for key in ("head", "commit", "ref"))
        index = UserIndex(git, self._trees, resource.plan_id)
        if git.succeeds("merge-base", "--is-ancestor", commit, ref):
            index.unlock()
            return commit
        with index.locked():
            _require_unmoved(git, resource, ref, head)
            with self._updated_files(git, resource, head, commit), self._kept(index):
                index.switch(head, commit)
                _update_ref(git, resource, ref, commit, head)
        return commit

    @contextmanager
    def _updated_files(
        self, git: Git, resource: PlanResource, old: str, new: str
    ) -> Generator[None, None, None]:
        """The files are new inside the block and after it, and as they were if it fails."""
        with self._trees.folder() as stage:
            files = FileUpdate(git, self._trees, old, new, stage)
            try:
                files.write()
                yield
            except MovedOnError as error:
                files.put_back()
                raise _conflict(resource, error) from error
            except OSError as error:
                files.put_back()
                raise ApplyRefusedError(
                    f"{git.directory} could not be changed and is as it was: {error}",
                    f"agents plan apply {resource.plan_id}",
                ) from error
            except BaseException:
                files.put_back()
                raise

    @contextmanager
    def _kept(self, index: UserIndex) -> Generator[None, None, None]:
        """The index is put back if the block fails."""
        with self._trees.folder() as folder:
            copy = folder / "index"
            shutil.copy2(index.path, copy)
            try:
                yield
            except BaseException:
                index.install(copy)
                raise


def _require_unmoved(git: Git, resource: PlanResource, ref: str, head: str) -> None:
    branch = os.fsdecode(git.run("symbolic-ref", "--quiet", "HEAD", check=False).stdout).strip()
    if branch != ref or value_of(git, ref) != head:
        raise _moved(git, resource, ref)


def _update_ref(git: Git, resource: PlanResource, ref: str, new: str, old: str) -> None:
    reason = f"cleveragents: apply plan {resource.plan_id}"
    try:
        git.run("update-ref", "-m", reason, ref, new, old)
    except GitError as error:
        raise _moved(git, resource, ref) from error


def _moved(git: Git, resource: PlanResource, ref: str) -> ApplyRefusedError:
    name = ref.removeprefix("refs/heads/")
    return ApplyRefusedError(
        f"{name} in {git.directory} is not where it was when the apply was prepared; "
        "nothing was changed",
        f"agents plan apply {resource.plan_id}",
    )


def _conflict(resource: PlanResource, error: MovedOnError) -> ApplyConflictError:
    return ApplyConflictError(
        resource.plan_id,
        resource.name,
        [text_of(path) for path in error.paths],
        "these files were changed meanwhile",
    )
