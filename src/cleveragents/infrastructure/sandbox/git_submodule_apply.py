"""Owns preparing an apply in the user's submodules: work brought over, and checked.

Nothing of the user's changes here: objects are added to the repositories of submodules.
"""

import os

from cleveragents.domain.applying import ApplyOptions
from cleveragents.domain.errors import ApplyConflictError, ApplyRefusedError
from cleveragents.domain.sandbox import PlanResource
from cleveragents.infrastructure.sandbox.git import Git, GitError
from cleveragents.infrastructure.sandbox.git_files import FileUpdate
from cleveragents.infrastructure.sandbox.git_ready import refuse_unready, staged
from cleveragents.infrastructure.sandbox.git_refs import value_of
from cleveragents.infrastructure.sandbox.git_submodule_look import Inside, Looked
from cleveragents.infrastructure.sandbox.git_submodule_steps import SubmoduleStep, users_submodule
from cleveragents.infrastructure.sandbox.git_switch import HEAD
from cleveragents.infrastructure.sandbox.git_trees import Trees, own_commit, text_of, tree_changes


class SubmoduleApply:
    """Of one apply."""

    def __init__(self, trees: Trees, resource: PlanResource, options: ApplyOptions) -> None:
        self._trees = trees
        self._resource, self._options = resource, options

    def prepare(self, looked: Looked) -> list[SubmoduleStep]:
        """Innermost first. Raises ApplyConflictError or ApplyRefusedError."""
        for path, why in looked.obstacles.items():
            raise self._refused(f"{path} in the sandbox {why}, and cannot be applied", path)
        changed = [one for one in looked.inside if one.commit != one.start or not one.is_clean]
        return [self._step(one) for one in changed]

    def _step(self, one: Inside) -> SubmoduleStep:
        if not one.start:
            raise self._refused(
                f"the plan has added the submodule {one.path}, which apply cannot bring along",
                one.path,
            )
        user = users_submodule(self._resource, one.path)
        if user is None:
            raise ApplyRefusedError(
                f"the plan has changed the submodule {one.path}, which is not checked out in the "
                "project",
                f"git -C {self._resource.location} submodule update --init {one.path}, then "
                f"agents plan apply {self._resource.plan_id}",
            )
        if self._options.branch is not None and not one.is_clean:
            raise self._refused(
                f"the submodule {one.path} has uncommitted changes, which no branch can hold",
                one.path,
            )
        step = self._brought(one, user)
        if not step.kept_only:
            self._refuse_unready(user, step)
        return step

    def _brought(self, one: Inside, user: Git) -> SubmoduleStep:
        """With all that it needs in the user's repository."""
        try:
            files = one.commit
            if not one.is_clean:
                files = own_commit(one.git, one.tree, "uncommitted work of a plan", one.commit)
            request = f"{files}\n^{one.start}\n".encode()
            pack = one.git.run("pack-objects", "--revs", "--stdout", "-q", input=request).stdout
            user.run("index-pack", "--stdin", "--fix-thin", input=pack)
            user.run("rev-list", "--objects", "--quiet", "--stdin", input=request)
        except GitError as error:
            raise self._refused(
                f"the commits of the submodule {one.path} cannot be brought over: {error.stderr}",
                one.path,
            ) from error
        return SubmoduleStep(
            path=one.path,
            head=one.start,
            commit=one.commit,
            files=files,
            kept_only=self._options.branch is not None,
        )

    def _refuse_unready(self, user: Git, step: SubmoduleStep) -> None:
        refuse_unready(user, self._trees, self._resource.plan_id)
        if value_of(user, HEAD) != step.head:
            raise self._conflict(
                [step.path], "the submodule is not at the commit that the plan began with"
            )
        self._refuse_going_back(user, step)
        changes = tree_changes(user, step.head, step.files)
        overlaps = {
            *FileUpdate(user, self._trees, step.head, step.files).overlaps(),
            *staged(user, step.head, changes),
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

    def _refused(self, what: str, path: str) -> ApplyRefusedError:
        place = os.path.join(self._resource.sandbox_path, path)
        return ApplyRefusedError(
            what,
            f"look at {place}: commit it there, copy it, or remove it, then "
            f"agents plan apply {self._resource.plan_id}",
        )
