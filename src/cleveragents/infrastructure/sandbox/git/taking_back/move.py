"""Carrying out the way between the two sides of an apply, in a checkout and its submodules.

Every part may be repeated with the same token after a crash, as those of an apply may be.
In which order: back, the project before its submodules, and forward the other way round, so that a
commit of the project never names one that is not there.
"""

import os
from collections.abc import Iterator, Sequence
from typing import Protocol

from msgspec import Struct

from cleveragents.domain.applied import ApplySide
from cleveragents.domain.errors import ApplyEditsKeptError, ApplyRefusedError
from cleveragents.domain.resource import PlanResource
from cleveragents.infrastructure.sandbox.git.apply.switch import (
    HEAD,
    CheckoutChange,
    CheckoutSwitch,
    Means,
)
from cleveragents.infrastructure.sandbox.git.apply.token import (
    ApplyWay,
    CheckoutToken,
    SubmoduleStep,
)
from cleveragents.infrastructure.sandbox.git.apply.undo_folder import APPLY, UNDO
from cleveragents.infrastructure.sandbox.git.command import Git, GitError
from cleveragents.infrastructure.sandbox.git.repository.pins import value_of
from cleveragents.infrastructure.sandbox.git.repository.ref_locks import change_ref
from cleveragents.infrastructure.sandbox.git.submodules.carry_out import users_submodule
from cleveragents.infrastructure.sandbox.git.submodules.new_repositories import (
    NewRepositories,
    clear_workshop,
)


class MovePart(Protocol):
    """One of what has to change; if `run` raises, it is as it was."""

    def run(self) -> None: ...
    def revert(self) -> tuple[str, ...]: ...
    def finish(self) -> None: ...


class CheckoutMove:
    """One resource with the token of the way."""

    def __init__(
        self, git: Git, means: Means, resource: PlanResource, token: CheckoutToken
    ) -> None:
        self._git, self._means = git, means
        self._resource, self._token = resource, token

    def run(self) -> str:
        """If it raises, everything is as it was."""
        done: list[MovePart] = []
        try:
            for part in self._parts():
                done.append(part)
                part.run()
        except BaseException as error:
            kept = [name for part in reversed(done) for name in part.revert()]
            if kept:
                raise ApplyEditsKeptError(self._resource.plan_id, str(error), kept) from error
            raise
        return self._token.commit

    def revert(self) -> tuple[str, ...]:
        """Gives back, in words, what somebody has changed since and so stays."""
        return tuple(name for part in reversed(self._parts()) for name in part.revert())

    def withdraw(self) -> None:
        """It was reverted."""
        for part in self._parts():
            part.finish()

    def settle(self) -> None:
        """What is kept on the way forward is needed on the next way back."""
        if self._token.side is ApplySide.BEFORE:
            self.withdraw()
            for switch in self.checkouts():
                switch.let_kept_go()

    def finish(self) -> None:
        self.withdraw()
        for switch in self.checkouts():
            switch.let_kept_go()
        if self._token.side is ApplySide.BEFORE:
            clear_workshop(self._resource)
        else:
            NewRepositories(self._resource, self._token.new_submodules).finish()

    def checkouts(self) -> Iterator[CheckoutSwitch]:
        """The checkouts in which files change."""
        yield from (part for part in self._parts() if isinstance(part, CheckoutSwitch))

    def _parts(self) -> Sequence[MovePart]:
        token = self._token
        forward = token.side is ApplySide.AFTER
        inner: list[MovePart] = [*self._submodules()]
        if token.new_submodules:
            inner.append(_NewSubmodules(self._resource, token))
        return (*inner, *self._project()) if forward else (*self._project(), *reversed(inner))

    def _project(self) -> Iterator[MovePart]:
        token = self._token
        match token.way:
            case ApplyWay.NOTHING:
                return
            case ApplyWay.BRANCH:
                yield _RefMove(git=self._git, resource=self._resource, token=token)
            case ApplyWay.COMMIT | ApplyWay.TREE:
                yield self._switch()

    def _switch(self) -> CheckoutSwitch:
        token = self._token
        commits = token.way is ApplyWay.COMMIT
        course = CheckoutChange(
            head=token.head,
            old=token.old,
            files=token.commit,
            ref=token.ref if commits else "",
            new=token.commit if commits else "",
            going=_going(token),
            kept_by=token.kept_by,
        )
        return CheckoutSwitch(self._git, self._means, self._resource, course)

    def _submodules(self) -> Iterator[CheckoutSwitch]:
        for step in self._token.submodules:
            git = None if step.repository else users_submodule(self._resource, step.path)
            if git is not None:
                course = _inner_course(step, self._token)
                yield CheckoutSwitch(git, self._means, self._resource, course, step.path)


class _RefMove(Struct, frozen=True, kw_only=True):
    """A branch that nobody has checked out comes, goes, or moves."""

    git: Git
    resource: PlanResource
    token: CheckoutToken

    def run(self) -> None:
        if self._value() == self.token.commit:
            return
        if self._value() != self.token.head:
            raise self._moved()
        self._change(self.token.head, self.token.commit)

    def revert(self) -> tuple[str, ...]:
        found = self._value()
        if found == self.token.commit:
            self._change(self.token.commit, self.token.head)
        elif found != self.token.head:
            return (f"the branch {self._name}",)
        return ()

    def finish(self) -> None:
        """Nothing is kept but names."""

    def _value(self) -> str:
        return value_of(self.git, self.token.ref) or ""

    def _change(self, old: str, new: str) -> None:
        ref = self.token.ref
        reason = f"cleveragents: {_going(self.token)} plan {self.resource.plan_id}"
        words = ("-m", reason, ref, new, old) if new else ("--no-deref", "-d", ref, old)
        try:
            change_ref(self.git, ref, new or old, *words)
        except GitError as error:
            raise self._moved() from error

    def _moved(self) -> ApplyRefusedError:
        return ApplyRefusedError(
            f"the branch {self._name} in {self.git.directory} has moved meanwhile; nothing was"
            " changed",
            "look at it, and try again",
        )

    @property
    def _name(self) -> str:
        return self.token.ref.removeprefix("refs/heads/")


class _NewSubmodules:
    """Their repositories, which are moved to their places and back."""

    def __init__(self, resource: PlanResource, token: CheckoutToken) -> None:
        self._new = NewRepositories(resource, token.new_submodules)
        self._resource = resource
        self._forward = token.side is ApplySide.AFTER

    def run(self) -> None:
        if self._forward:
            self._new.bring()
        else:
            self._new.revert()

    def revert(self) -> tuple[str, ...]:
        if self._forward:
            self._new.revert()
        else:
            self._new.bring()
        return ()

    def finish(self) -> None:
        """They stay as long as they can come and go."""


def is_used(resource: PlanResource, path: str) -> bool:
    """Whether there is anything in the folder of a submodule."""
    try:
        return bool(os.listdir(os.path.join(resource.location, path)))
    except OSError:
        return False


def _going(token: CheckoutToken) -> str:
    return UNDO if token.side is ApplySide.BEFORE else APPLY


def _inner_course(step: SubmoduleStep, token: CheckoutToken) -> CheckoutChange:
    moves = step.commit != step.head
    ref = HEAD if moves else ""
    if token.side is ApplySide.AFTER:
        new = step.commit if moves else ""
        return CheckoutChange(head=step.head, old=step.head, files=step.files, ref=ref, new=new)
    return CheckoutChange(
        head=step.commit,
        old=step.files,
        files=step.head,
        ref=ref,
        new=step.head if moves else "",
        going=UNDO,
        kept_by=step.files,
    )
