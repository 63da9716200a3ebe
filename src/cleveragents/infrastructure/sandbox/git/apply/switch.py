"""Switching one checkout of the user's from one commit to another: files, index, reference.

Every part may be repeated after a crash, and ends in the same state. What was there before is
kept until the apply is settled, so that all of it can be taken back.
In which order: git's lock on the index; whether the branch is where it was; the files; the index;
the reference, by a change that fails if it has moved.
Why: the reference is what others see, and by it a repetition tells that all was done; so it comes
when all else is there. The lock keeps other git commands out of the index for that time.
Where only files are to change, there is no lock and no reference, and a repetition looks anew.
What is not guaranteed: who edits files meanwhile is not kept out. Each file is compared before it
is replaced, and one that was changed ends the apply, with the rest as it was.
"""

import os
from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager, nullcontext

from msgspec import Struct

from cleveragents.domain.errors import (
    ApplyConflictError,
    ApplyEditsKeptError,
    ApplyRefusedError,
)
from cleveragents.domain.resource import PlanResource
from cleveragents.infrastructure.files.update.path_update import MovedOnError
from cleveragents.infrastructure.sandbox.git.apply.readiness import staged
from cleveragents.infrastructure.sandbox.git.apply.undo_folder import APPLY, UndoFolder
from cleveragents.infrastructure.sandbox.git.apply.user_index import UserIndex
from cleveragents.infrastructure.sandbox.git.apply.worktree_update import (
    FileReturn,
    FileUpdate,
    StrangeFileError,
)
from cleveragents.infrastructure.sandbox.git.command import OFFLINE, Git, GitError
from cleveragents.infrastructure.sandbox.git.repository.pins import value_of
from cleveragents.infrastructure.sandbox.git.repository.ref_locks import change_ref
from cleveragents.infrastructure.sandbox.git.trees import GitTrees, text_of
from cleveragents.infrastructure.sandbox.git.views import GitView, GitViews

HEAD = "HEAD"


class Means(Struct, frozen=True, kw_only=True):
    """What an apply works with: `views` for all that a step has made, `trees` for the rest."""

    trees: GitTrees
    views: GitViews


class CheckoutChange(Struct, frozen=True, kw_only=True):
    """What changes in a checkout whose HEAD stands at `head`.

    Its files go from the commit `old` to the commit `files`. Where there is a `ref`, it goes from
    `head` to `new`, and the index with it; that may be a branch, or HEAD whatever it stands on.
    `going` is what is done to an apply. Where files were kept when one led to `kept_by`, those come
    back as they are, and no others change.
    """

    head: str
    old: str
    files: str
    ref: str = ""
    new: str = ""
    going: str = APPLY
    kept_by: str = ""


class CheckoutSwitch:
    """`path` is that of a submodule below the project, for what is told of its files."""

    def __init__(
        self, git: Git, means: Means, resource: PlanResource, course: CheckoutChange, path: str = ""
    ) -> None:
        # What is missing is not fetched: from where, settings that come with the plan may say.
        self._git, self._means = git.with_env(OFFLINE), means
        self._resource, self._course = resource, course
        self._path = path
        self._undo = UndoFolder(git, resource.resource_id, course.files, course.going)
        kept = UndoFolder(git, resource.resource_id, course.kept_by) if course.kept_by else None
        self._kept = kept
        self._index = UserIndex(self._git, means.trees, resource.plan_id)

    def is_done(self) -> bool:
        """Whether an earlier run has got to its end; never known where nothing but files go."""
        course = self._course
        if not course.ref:
            return False
        if course.ref == HEAD:  # to any commit, and so maybe to one that HEAD has passed before
            return value_of(self._git, HEAD) == course.new
        if not self._leads_to(course.new, course.ref):
            return False
        is_way_back = self._leads_to(course.new, course.head)
        return not (is_way_back and self._leads_to(course.head, course.ref))

    def in_the_way(self) -> list[str]:
        """What somebody has changed since the checkout was at its start; nothing is changed.

        Raises ApplyRefusedError.
        """
        course = self._course
        update = self._files()
        with self._view(self._git) as held:
            found = set(update.overlaps(held))
        if course.ref:
            found |= staged(self._git, course.head, course.new, course.files, update.changes)
        return [self._shown(path) for path in sorted(found)]

    def run(self) -> None:
        """If it raises, everything is as it was."""
        if self.is_done():
            self._index.catch_up(self._undo)
            self._index.unlock()
            return
        with self._index.locked() if self._course.ref else nullcontext():
            self._require_unmoved()
            with self._taken_back_on_error():
                course = self._course
                self._files().write(self._undo, self._view)
                if course.ref:
                    self._index.switch(course.head, course.new, self._undo)
                    self._update_ref(course.new, course.head)

    def revert(self) -> tuple[str, ...]:
        """Gives back, in words, what somebody has changed since and so stays."""
        course = self._course
        if self._undo.note() is None:
            if course.ref:
                self._index.unlock()
            return ()
        if not course.ref:
            if value_of(self._git, HEAD) != course.head:
                return (f"the files, as HEAD in {self._git.directory} has moved on",)
            return self._return_files()
        with self._index.locked():
            return self._take_ref_back()

    def finish(self) -> None:
        self._undo.remove()

    def let_kept_go(self) -> None:
        """They are back where they belong."""
        if self._kept is not None:
            self._kept.remove()

    def _leads_to(self, commit: str, later: str) -> bool:
        return self._git.succeeds("merge-base", "--is-ancestor", commit, later)

    def _files(self) -> FileUpdate:
        course = self._course
        if self._kept is not None and self._kept.note() is None:
            raise ApplyRefusedError(
                f"what was kept of {self._git.directory} to take the apply back by is not there"
                " any more",
                "take it back with git, for example `git revert`",
            )
        return FileUpdate(self._git, course.old, course.files, self._kept)

    def _take_ref_back(self) -> tuple[str, ...]:
        course = self._course
        found = value_of(self._git, course.ref)
        if found not in (course.head, course.new):
            return (f"{self._named} in {self._git.directory}, as it has moved on",)
        if found == course.new:
            self._update_ref(course.head, course.new)
        if course.ref != HEAD and self._current_ref() != course.ref and found == course.new:
            return ()  # the user has another branch checked out by now
        self._index.switch_back(course.head, course.new, self._undo)
        return self._return_files()

    @contextmanager
    def _taken_back_on_error(self) -> Generator[None, None, None]:
        """Everything is new after the block, and as it was if it fails."""
        try:
            self._undo.open()
            yield
        except BaseException as error:
            kept: tuple[str, ...] = ()
            if self._undo.note() is not None:
                if self._course.ref:
                    self._index.switch_back(self._course.head, self._course.new, self._undo)
                kept = self._return_files()
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
                [self._shown(path) for path in error.paths],
                "these files were changed meanwhile",
            )
        if isinstance(error, StrangeFileError):
            return ApplyRefusedError(
                f"a filter has put something else in the place of {self._shown(error.path)}",
                "look at `filter` in your git configuration, then apply again",
            )
        if isinstance(error, OSError):
            return ApplyRefusedError(
                f"{self._git.directory} could not be changed and is as it was: {error}",
                f"agents plan apply {self._resource.plan_id}",
            )
        return error

    def _return_files(self) -> tuple[str, ...]:
        course = self._course
        try:
            ends = (course.old, course.files)
            returned = FileReturn(self._git, self._means.trees, ends, self._kept)
            kept = returned.run(self._undo, self._view)
        except OSError as error:
            raise ApplyRefusedError(
                f"not all files of {self._git.directory} could be put back: {error}",
                f"agents plan apply {self._resource.plan_id}",
            ) from error
        return tuple(self._shown(path) for path in kept)

    def _view(self, git: Git, *writable: str) -> AbstractContextManager[GitView]:
        return self._means.views.of_checkout(self._resource, git, *writable)

    def _shown(self, path: bytes) -> str:
        return text_of(os.fsencode(os.path.join(self._path, "")) + path if self._path else path)

    def _require_unmoved(self) -> None:
        course = self._course
        on_it = course.ref in ("", HEAD) or self._current_ref() == course.ref
        if course.ref and not (on_it and value_of(self._git, course.ref) == course.head):
            raise self._moved()

    def _current_ref(self) -> str:
        found = self._git.run("symbolic-ref", "--quiet", HEAD, check=False).stdout
        return os.fsdecode(found).removesuffix("\n")

    def _update_ref(self, new: str, old: str) -> None:
        reason = f"cleveragents: {self._course.going} plan {self._resource.plan_id}"
        try:
            ref = self._course.ref
            change_ref(self._git, ref, new, "-m", reason, ref, new, old)
        except GitError as error:
            raise self._moved() from error

    @property
    def _named(self) -> str:
        ref = self._course.ref
        return ref if ref == HEAD else f"the branch {ref.removeprefix('refs/heads/')}"

    def _moved(self) -> ApplyRefusedError:
        return ApplyRefusedError(
            f"{self._named} in {self._git.directory} is not where it was when the apply was "
            "prepared; nothing was changed",
            f"agents plan apply {self._resource.plan_id}",
        )
