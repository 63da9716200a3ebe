"""Preparing an apply in the user's submodules: work brought over, and checked.

Nothing of the user's changes here: objects are added to the repositories of submodules.
"""

import os
from collections.abc import Sequence

from msgspec import Struct

from cleveragents.domain.apply import ApplyOptions
from cleveragents.domain.errors import ApplyConflictError, ApplyRefusedError
from cleveragents.infrastructure.sandbox.git.apply.bring import Bringing
from cleveragents.infrastructure.sandbox.git.apply.readiness import refuse_unready, staged
from cleveragents.infrastructure.sandbox.git.apply.switch import HEAD, Means
from cleveragents.infrastructure.sandbox.git.apply.token import NewRepository, SubmoduleStep
from cleveragents.infrastructure.sandbox.git.apply.worktree_update import FileUpdate
from cleveragents.infrastructure.sandbox.git.command import Git, GitError
from cleveragents.infrastructure.sandbox.git.repository.pins import value_of
from cleveragents.infrastructure.sandbox.git.submodules.added import (
    AddedSubmodules,
    bring_over,
    not_brought,
    refused,
)
from cleveragents.infrastructure.sandbox.git.submodules.carry_out import users_submodule
from cleveragents.infrastructure.sandbox.git.submodules.contents import Looked, SubmoduleContents
from cleveragents.infrastructure.sandbox.git.trees import own_commit, text_of, tree_changes


class PreparedSubmodules(Struct, frozen=True, kw_only=True):
    """Steps innermost first; what they and `new` need is in the user's repositories."""

    steps: Sequence[SubmoduleStep]
    new: Sequence[NewRepository]

    @property
    def notes(self) -> Sequence[str]:
        """About those whose folders are empty at first."""
        added = [*(step.path for step in self.steps if not step.head), *(n.path for n in self.new)]
        return [
            f"the submodule {path} is new, and its folder empty: git submodule update --init {path}"
            for path in sorted(added)
        ]


class SubmoduleApply:
    """Of one apply."""

    def __init__(self, means: Means, over: Bringing, options: ApplyOptions) -> None:
        self._means, self._over = means, over
        self._resource, self._options = over.resource, options

    def prepare(self, looked: Looked) -> PreparedSubmodules:
        """Raises ApplyConflictError or ApplyRefusedError."""
        for path, why in looked.obstacles.items():
            raise refused(
                self._resource, path, f"{path} in the sandbox {why}, and cannot be applied"
            )
        changed = [one for one in looked.inside if one.commit != one.start or not one.is_clean]
        steps = [self._step(one) for one in changed if one.start]
        added = AddedSubmodules(self._over, self._options)
        added.prepare([one for one in changed if not one.start])
        return PreparedSubmodules(steps=[*steps, *added.steps], new=added.new)

    def _step(self, one: SubmoduleContents) -> SubmoduleStep:
        user = users_submodule(self._resource, one.path)
        if user is None:
            raise ApplyRefusedError(
                f"the plan has changed the submodule {one.path}, which is not checked out in the "
                "project",
                f"git -C {self._resource.location} submodule update --init {one.path}, then "
                f"agents plan apply {self._resource.plan_id}",
            )
        if self._options.branch is not None and not one.is_clean:
            told = f"the submodule {one.path} has uncommitted changes, which no branch can hold"
            raise refused(self._resource, one.path, told)
        step = self._brought(one, user)
        if not step.repository:
            self._refuse_unready(user, step)
        return step

    def _brought(self, one: SubmoduleContents, user: Git) -> SubmoduleStep:
        """With all that it needs in the user's repository."""
        try:
            files = one.commit
            if not one.is_clean:
                files = own_commit(one.git, one.tree, "uncommitted work of a plan", one.commit)
            bring_over(self._over, one, user, files)
        except GitError as error:
            raise not_brought(self._resource, one, error) from error
        on_branch = self._options.branch is not None
        args = ("rev-parse", "--path-format=absolute", "--git-common-dir")
        return SubmoduleStep(
            path=one.path,
            head=one.start,
            commit=one.commit,
            files=files,
            repository=user.text(*args) if on_branch else "",
        )

    def _refuse_unready(self, user: Git, step: SubmoduleStep) -> None:
        refuse_unready(user, self._means.trees, self._resource.plan_id)
        if value_of(user, HEAD) != step.head:
            raise self._conflict(
                [step.path], "the submodule is not at the commit that the plan began with"
            )
        self._refuse_going_back(user, step)
        changes = tree_changes(user, step.head, step.files)
        overlaps = {
            *FileUpdate(user, step.head, step.files).overlaps(self._over.held.over(user)),
            *staged(user, step.head, step.commit, step.files, changes),
        }
        if overlaps:
            names = [f"{step.path}/{text_of(path)}" for path in sorted(overlaps)]
            raise self._conflict(names, "you have uncommitted work in files that the plan changes")

    def _refuse_going_back(self, user: Git, step: SubmoduleStep) -> None:
        """A branch of the user's would lose what it has."""
        on = user.run("symbolic-ref", "--quiet", "--short", HEAD, check=False).stdout.strip()
        if on and not user.succeeds("merge-base", "--is-ancestor", step.head, step.commit):
            raise ApplyRefusedError(
                f"the plan's commit in the submodule {step.path} does not follow that of "
                f"{os.fsdecode(on)}, which is checked out there",
                f"git -C {user.directory} checkout --detach, then "
                f"agents plan apply {self._resource.plan_id}",
            )

    def _conflict(self, names: list[str], why: str) -> ApplyConflictError:
        return ApplyConflictError(self._resource.plan_id, self._resource.name, names, why)
