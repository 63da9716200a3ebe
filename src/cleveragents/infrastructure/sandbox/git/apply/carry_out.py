"""Carrying out a prepared apply in the user's checkout and its submodules.

Every part may be repeated with the same token after a crash, and ends in the same state. What was
there before is kept until the apply is settled, so that all of it can be taken back.
"""

from collections.abc import Mapping
from typing import Any

from cleveragents.domain.errors import ApplyRefusedError
from cleveragents.domain.resource import PlanResource
from cleveragents.infrastructure.sandbox.git.apply.switch import (
    HEAD,
    CheckoutChange,
    CheckoutSwitch,
    Means,
)
from cleveragents.infrastructure.sandbox.git.command import Git, GitError
from cleveragents.infrastructure.sandbox.git.repository.pins import (
    applied_pin,
    delete_ref,
    pin,
    value_of,
)
from cleveragents.infrastructure.sandbox.git.repository.ref_locks import change_ref
from cleveragents.infrastructure.sandbox.git.submodules.carry_out import SubmoduleSteps, steps_in
from cleveragents.infrastructure.sandbox.git.submodules.new_repositories import (
    NewRepositories,
    new_in,
)


class GitCarryOut:
    """One resource with the token of its apply."""

    def __init__(
        self, git: Git, means: Means, resource: PlanResource, token: Mapping[str, Any]
    ) -> None:
        self._git, self._means = git, means
        self._resource = resource
        self._kind = str(token["kind"])
        self._head = str(token["head"])
        self._ref = str(token.get("ref", ""))
        self._commit = str(token.get("commit", ""))
        self._submodules = SubmoduleSteps(means, resource, steps_in(token))
        self._new = NewRepositories(resource, new_in(token))

    def run(self) -> str:
        """Gives back what the result is called. If it raises, everything is as it was."""
        # They were first: if the project is there, they are, or have gone on since.
        if self._kind == "commit" and self._switch().is_done():
            return self._run()
        with self._submodules.carried_out():
            self._new.bring()
            try:
                return self._run()
            except BaseException:
                self._new.revert()
                raise

    def revert(self) -> tuple[str, ...]:
        """Gives back, in words, what somebody has changed since and so stays."""
        kept = self._take_back()
        # As long as a commit names theirs, they stay with it.
        if self._result_stays():
            return (*kept, *self._submodules.names())
        self._new.revert()
        return (*kept, *self._submodules.revert())

    def finish(self) -> None:
        self._switch().finish()
        self._submodules.finish()
        self._new.finish()

    def _run(self) -> str:
        match self._kind:
            case "nothing":
                pin(self._git, applied_pin(self._resource), self._head)
                return self._head
            case "branch":
                self._make_branch()
                return self._commit
            case "commit":
                self._switch().run()
                return self._commit
            case _:
                return self._change_files()

    def _take_back(self) -> tuple[str, ...]:
        match self._kind:
            case "nothing":
                delete_ref(self._git, applied_pin(self._resource))
                return ()
            case "branch":
                return self._remove_branch()
            case "commit":
                return self._switch().revert()
            case _:
                kept = self._switch().revert()
                delete_ref(self._git, applied_pin(self._resource))
                return kept

    def _result_stays(self) -> bool:
        match self._kind:
            case "nothing":
                return False
            case "branch" | "commit":
                there = value_of(self._git, self._ref) is not None
                args = ("merge-base", "--is-ancestor", self._commit, self._ref)
                return there and self._git.succeeds(*args)
            case _:
                return value_of(self._git, HEAD) != self._head

    def _switch(self) -> CheckoutSwitch:
        if self._kind == "commit":
            course = CheckoutChange(
                head=self._head,
                old=self._head,
                files=self._commit,
                ref=self._ref,
                new=self._commit,
            )
        else:
            course = CheckoutChange(head=self._head, old=f"{self._commit}^1", files=self._commit)
        return CheckoutSwitch(self._git, self._means, self._resource, course)

    def _change_files(self) -> str:
        """Without a commit on a branch of the user's, a reference of ours keeps what was done."""
        pin(self._git, applied_pin(self._resource), self._commit)
        try:
            self._switch().run()
        except BaseException:
            delete_ref(self._git, applied_pin(self._resource))
            raise
        names = (f"{self._commit}^1", self._commit)
        trees = (self._git.text("rev-parse", f"{name}^{{tree}}") for name in names)
        return "tree:" + "..".join(trees)

    def _make_branch(self) -> None:
        if value_of(self._git, self._ref) == self._commit:
            return
        reason = f"cleveragents: apply plan {self._resource.plan_id}"
        try:
            words = ("-m", reason, self._ref, self._commit, "")
            change_ref(self._git, self._ref, self._commit, *words)
        except GitError as error:
            raise ApplyRefusedError(
                f"the branch {self._branch} in {self._git.directory} could not be made, as there "
                "is one by now; nothing was changed",
                f"agents plan apply {self._resource.plan_id} --branch NAME",
            ) from error

    def _remove_branch(self) -> tuple[str, ...]:
        found = value_of(self._git, self._ref)
        if found is None:
            return ()
        if found != self._commit:
            return (f"the branch {self._branch}",)
        words = ("--no-deref", "-d", self._ref, self._commit)
        change_ref(self._git, self._ref, self._commit, *words)
        return ()

    @property
    def _branch(self) -> str:
        return self._ref.removeprefix("refs/heads/")
