"""Carrying out a prepared apply in the user's checkout and its submodules.

Every part may be repeated with the same token after a crash, and ends in the same state. What was
there before is kept until the apply is settled, so that all of it can be taken back; who mends it
after a kill is `services/apply/apply_service.py`.
In which order: submodules, innermost first; repositories of new ones; ignored folders, if they are
wanted; the project. Taking back goes the other way round. So a commit of the project never names
one that is not there.
What is not guaranteed: that a revert brings everything back. If the user has built on the result,
it stays with the submodules that it names; that is told, and nothing of the user's is lost.
"""

from cleveragents.domain.errors import ApplyEditsKeptError, ApplyRefusedError
from cleveragents.domain.resource import PlanResource
from cleveragents.infrastructure.sandbox.git.apply.ignored import IgnoredSteps
from cleveragents.infrastructure.sandbox.git.apply.switch import (
    HEAD,
    CheckoutChange,
    CheckoutSwitch,
    Means,
)
from cleveragents.infrastructure.sandbox.git.apply.token import ApplyWay, CheckoutToken
from cleveragents.infrastructure.sandbox.git.command import Git, GitError
from cleveragents.infrastructure.sandbox.git.repository.pins import (
    applied_pin,
    delete_ref,
    pin,
    value_of,
)
from cleveragents.infrastructure.sandbox.git.repository.ref_locks import change_ref
from cleveragents.infrastructure.sandbox.git.submodules.carry_out import SubmoduleSteps
from cleveragents.infrastructure.sandbox.git.submodules.new_repositories import NewRepositories


class GitCarryOut:
    """One resource with the token of its apply."""

    def __init__(
        self,
        git: Git,
        means: Means,
        resource: PlanResource,
        token: CheckoutToken,
        ignored: IgnoredSteps,
    ) -> None:
        self._git, self._means = git, means
        self._resource = resource
        self._way, self._head = token.way, token.head
        self._ref, self._commit = token.ref, token.commit
        self._submodules = SubmoduleSteps(means, resource, token.submodules)
        self._new = NewRepositories(resource, token.new_submodules)
        self._ignored = ignored

    def run(self) -> str:
        """Gives back what the result is called. If it raises, everything is as it was."""
        # They were first: if the project is there, they are, or have gone on since.
        if self._way is ApplyWay.COMMIT and self._switch().is_done():
            return self._run()
        with self._submodules.carried_out():
            self._new.bring()
            try:
                self._ignored.bring()
                return self._run_or_return()
            except BaseException:
                self._new.revert()
                raise

    def revert(self) -> tuple[str, ...]:
        """Gives back, in words, what somebody has changed since and so stays."""
        kept = (*self._take_back(), *self._ignored.revert())
        # As long as a commit names theirs, they stay with it.
        if self._result_stays():
            return (*kept, *self._submodules.names())
        self._new.revert()
        return (*kept, *self._submodules.revert())

    def finish(self) -> None:
        self._switch().finish()
        self._submodules.finish()
        self._new.finish()
        self._ignored.finish()

    def _run_or_return(self) -> str:
        try:
            return self._run()
        except BaseException as error:
            kept = self._ignored.revert()
            if kept:
                raise ApplyEditsKeptError(self._resource.plan_id, str(error), kept) from error
            raise

    def _run(self) -> str:
        match self._way:
            case ApplyWay.NOTHING:
                pin(self._git, applied_pin(self._resource), self._head)
                return self._head
            case ApplyWay.BRANCH:
                self._make_branch()
                return self._commit
            case ApplyWay.COMMIT:
                self._switch().run()
                return self._commit
            case ApplyWay.TREE:
                return self._change_files()

    def _take_back(self) -> tuple[str, ...]:
        match self._way:
            case ApplyWay.NOTHING:
                delete_ref(self._git, applied_pin(self._resource))
                return ()
            case ApplyWay.BRANCH:
                return self._remove_branch()
            case ApplyWay.COMMIT:
                return self._switch().revert()
            case ApplyWay.TREE:
                kept = self._switch().revert()
                delete_ref(self._git, applied_pin(self._resource))
                return kept

    def _result_stays(self) -> bool:
        match self._way:
            case ApplyWay.NOTHING:
                return False
            case ApplyWay.BRANCH | ApplyWay.COMMIT:
                there = value_of(self._git, self._ref) is not None
                args = ("merge-base", "--is-ancestor", self._commit, self._ref)
                return there and self._git.succeeds(*args)
            case ApplyWay.TREE:
                return value_of(self._git, HEAD) != self._head

    def _switch(self) -> CheckoutSwitch:
        if self._way is ApplyWay.COMMIT:
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
