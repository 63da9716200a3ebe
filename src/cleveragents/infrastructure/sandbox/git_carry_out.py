"""Owns carrying out a prepared apply in the user's checkout: files, then index, then branch.

Every part may be repeated with the same token after a crash, and ends in the same state. What was
there before is kept until the apply is settled, so that all of it can be taken back.
"""

import os
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Any

from cleveragents.domain.errors import (
    ApplyConflictError,
    ApplyEditsKeptError,
    ApplyRefusedError,
)
from cleveragents.domain.sandbox import PlanResource
from cleveragents.infrastructure.sandbox.git import Git, GitError
from cleveragents.infrastructure.sandbox.git_files import FileUpdate, MovedOnError
from cleveragents.infrastructure.sandbox.git_index import UserIndex
from cleveragents.infrastructure.sandbox.git_refs import applied_pin, delete_ref, pin, value_of
from cleveragents.infrastructure.sandbox.git_take_back import FileReturn
from cleveragents.infrastructure.sandbox.git_trees import Trees, text_of
from cleveragents.infrastructure.sandbox.git_undo import UndoFolder


class GitCarryOut:
    """One resource with the token of its apply."""

    def __init__(
        self, git: Git, trees: Trees, resource: PlanResource, token: Mapping[str, Any]
    ) -> None:
        self._git, self._trees = git, trees
        self._resource = resource
        self._kind = str(token["kind"])
        self._head = str(token["head"])
        self._ref = str(token.get("ref", ""))
        self._commit = str(token.get("commit", ""))
        self._undo = UndoFolder(git, resource.resource_id, self._commit)
        self._index = UserIndex(git, trees, resource.plan_id)

    def run(self) -> str:
        """Gives back what the result is called. If it raises, everything is as it was."""
        match self._kind:
            case "nothing":
                pin(self._git, applied_pin(self._resource), self._head)
                return self._head
            case "branch":
                self._make_branch()
                return self._commit
            case "commit":
                self._make_commit()
                return self._commit
            case _:
                return self._change_files()

    def take_back(self) -> tuple[str, ...]:
        """Gives back, in words, what somebody has changed since and so stays."""
        match self._kind:
            case "nothing":
                delete_ref(self._git, applied_pin(self._resource))
                return ()
            case "branch":
                return self._remove_branch()
            case "commit":
                return self._take_commit_back()
            case _:
                return self._take_files_back()

    def settle(self) -> None:
        self._undo.remove()

    # --- a new branch ---------------------------------------------------------------------------

    def _make_branch(self) -> None:
        if value_of(self._git, self._ref) != self._commit:
            self._update_ref(self._commit, "")

    def _remove_branch(self) -> tuple[str, ...]:
        found = value_of(self._git, self._ref)
        if found is None:
            return ()
        if found != self._commit:
            return (f"the branch {self._branch}",)
        self._git.run("update-ref", "--no-deref", "-d", self._ref, self._commit)
        return ()

    # --- files only -----------------------------------------------------------------------------

    def _change_files(self) -> str:
        old = f"{self._commit}^1"
        with self._taken_back_on_error(old):
            FileUpdate(self._git, self._trees, old, self._commit).write(self._undo)
            pin(self._git, applied_pin(self._resource), self._commit)
        trees = (self._git.text("rev-parse", f"{name}^{{tree}}") for name in (old, self._commit))
        return "tree:" + "..".join(trees)

    def _take_files_back(self) -> tuple[str, ...]:
        if self._undo.note() is not None and value_of(self._git, "HEAD") != self._head:
            return (f"the files, as HEAD in {self._git.directory} has moved on",)
        kept = self._return_files(f"{self._commit}^1")
        delete_ref(self._git, applied_pin(self._resource))
        return kept

    # --- a commit on the user's branch ----------------------------------------------------------

    def _make_commit(self) -> None:
        if self._git.succeeds("merge-base", "--is-ancestor", self._commit, self._ref):
            self._index.unlock()
            return
        with self._index.locked():
            self._require_unmoved()
            with self._taken_back_on_error(self._head):
                FileUpdate(self._git, self._trees, self._head, self._commit).write(self._undo)
                self._index.switch(self._head, self._commit, self._undo)
                self._update_ref(self._commit, self._head)

    def _take_commit_back(self) -> tuple[str, ...]:
        if self._undo.note() is None:
            self._index.unlock()
            return ()
        with self._index.locked():
            found = value_of(self._git, self._ref)
            if found not in (self._head, self._commit):
                return (f"the branch {self._branch}, as it has moved on",)
            if found == self._commit:
                self._update_ref(self._head, self._commit)
            if self._current_ref() != self._ref and found == self._commit:
                return ()  # the user has another branch checked out by now
            self._index.switch_back(self._head, self._commit, self._undo)
            return self._return_files(self._head)

    # --- what they share ------------------------------------------------------------------------

    @contextmanager
    def _taken_back_on_error(self, old: str) -> Generator[None, None, None]:
        """Everything is new after the block, and as it was if it fails."""
        try:
            self._undo.open()
            yield
        except BaseException as error:
            kept: tuple[str, ...] = ()
            if self._undo.note() is not None:
                self._index.switch_back(old, self._commit, self._undo)
                kept = self._return_files(old)
            self._undo.remove()
            told = self._told(error)
            if kept:
                raise ApplyEditsKeptError(self._resource.plan_id, str(told), kept) from error
            if told is not error:
                raise told from error
            raise

    def _told(self, error: BaseException) -> BaseException:
        if isinstance(error, MovedOnError):
            return ApplyConflictError(
                self._resource.plan_id,
                self._resource.name,
                [text_of(path) for path in error.paths],
                "these files were changed meanwhile",
            )
        if isinstance(error, OSError):
            return ApplyRefusedError(
                f"{self._git.directory} could not be changed and is as it was: {error}",
                f"agents plan apply {self._resource.plan_id}",
            )
        return error

    def _return_files(self, old: str) -> tuple[str, ...]:
        try:
            kept = FileReturn(self._git, self._trees, old, self._commit).run(self._undo)
        except OSError as error:
            raise ApplyRefusedError(
                f"not all files of {self._git.directory} could be put back: {error}",
                f"agents plan apply {self._resource.plan_id}",
            ) from error
        return tuple(text_of(path) for path in kept)

    def _require_unmoved(self) -> None:
        if self._current_ref() != self._ref or value_of(self._git, self._ref) != self._head:
            raise self._moved()

    def _current_ref(self) -> str:
        found = self._git.run("symbolic-ref", "--quiet", "HEAD", check=False).stdout
        return os.fsdecode(found).removesuffix("\n")

    def _update_ref(self, new: str, old: str) -> None:
        reason = f"cleveragents: apply plan {self._resource.plan_id}"
        try:
            self._git.run("update-ref", "-m", reason, self._ref, new, old)
        except GitError as error:
            raise self._moved() from error

    @property
    def _branch(self) -> str:
        return self._ref.removeprefix("refs/heads/")

    def _moved(self) -> ApplyRefusedError:
        return ApplyRefusedError(
            f"{self._branch} in {self._git.directory} is not where it was when the apply was "
            "prepared; nothing was changed",
            f"agents plan apply {self._resource.plan_id}",
        )
