"""Carrying out an apply in the user's submodules: all of them, or none.

Each is a checkout that is switched by itself, innermost first and before the project around it, so
that a commit of the project never names what is not there.
"""

import os
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager

from cleveragents.domain.changes import ResourceDiff
from cleveragents.domain.errors import ApplyConflictError, ApplyEditsKeptError
from cleveragents.domain.resource import PlanResource
from cleveragents.infrastructure.sandbox.git.apply.switch import (
    HEAD,
    CheckoutChange,
    CheckoutSwitch,
    Means,
)
from cleveragents.infrastructure.sandbox.git.apply.token import SubmoduleStep
from cleveragents.infrastructure.sandbox.git.command import Git
from cleveragents.infrastructure.sandbox.git.diff import diff_of_trees
from cleveragents.infrastructure.sandbox.git.repository.pins import (
    applied_pin,
    delete_ref,
    pin,
    value_of,
)
from cleveragents.infrastructure.sandbox.git.submodules.records import repository_git


def users_submodule(resource: PlanResource, path: str) -> Git | None:
    """The checkout that the user has of it, if there is one."""
    place = os.path.join(resource.location, path)
    # Without a repository of its own, git would answer for the one around it.
    return Git(place) if os.path.lexists(os.path.join(place, ".git")) else None


def diffs_of(resource: PlanResource, steps: Sequence[SubmoduleStep]) -> Iterator[ResourceDiff]:
    """What they change inside of the user's submodules, as far as these are there."""
    for step in sorted(steps, key=lambda step: step.path):
        git = _git_of(resource, step)
        if git is not None and step.head:
            yield diff_of_trees(git, step.head, step.files, below=step.path)


class SubmoduleSteps:
    """Those of one apply; every one may be repeated."""

    def __init__(
        self, means: Means, resource: PlanResource, steps: Sequence[SubmoduleStep]
    ) -> None:
        self._means = means
        self._resource = resource
        self._steps = steps

    @contextmanager
    def carried_out(self) -> Generator[None]:
        """For the block; if that raises, all of them are as they were."""
        try:
            for step in self._steps:
                self._carry_out(step)
            yield
        except BaseException as error:
            if kept := self.revert():
                raise ApplyEditsKeptError(self._resource.plan_id, str(error), kept) from error
            raise

    def revert(self) -> tuple[str, ...]:
        """Gives back, in words, what somebody has changed since and so stays."""
        return tuple(name for step in reversed(self._steps) for name in self._take_back(step))

    def names(self) -> tuple[str, ...]:
        return tuple(f"the submodule {step.path}" for step in self._steps)

    def finish(self) -> None:
        for step in self._steps:
            git = _git_of(self._resource, step)
            if git is not None and not step.repository:
                self._switch(git, step).finish()

    def _carry_out(self, step: SubmoduleStep) -> None:
        git = _git_of(self._resource, step)
        if git is None:
            raise self._moved(step)
        # First: whatever names the commit, it stays, as nobody may have pushed it yet.
        pin(git, applied_pin(self._resource), step.files)
        if step.repository:
            return
        if not _course(step).ref and value_of(git, HEAD) != step.head:
            raise self._moved(step)
        self._switch(git, step).run()

    def _take_back(self, step: SubmoduleStep) -> tuple[str, ...]:
        git = _git_of(self._resource, step)
        if git is None:
            return (f"the submodule {step.path}, which is gone",)
        kept = () if step.repository else self._switch(git, step).revert()
        delete_ref(git, applied_pin(self._resource))
        return kept

    def _switch(self, git: Git, step: SubmoduleStep) -> CheckoutSwitch:
        return CheckoutSwitch(git, self._means, self._resource, _course(step), step.path)

    def _moved(self, step: SubmoduleStep) -> ApplyConflictError:
        return ApplyConflictError(
            self._resource.plan_id,
            self._resource.name,
            [step.path],
            "the submodule is not where it was when the apply was prepared",
        )


def _git_of(resource: PlanResource, step: SubmoduleStep) -> Git | None:
    if step.repository:
        return repository_git(step.repository) if os.path.isdir(step.repository) else None
    return users_submodule(resource, step.path)


def _course(step: SubmoduleStep) -> CheckoutChange:
    moves = step.commit != step.head
    return CheckoutChange(
        head=step.head,
        old=step.head,
        files=step.files,
        ref=HEAD if moves else "",
        new=step.commit if moves else "",
    )
