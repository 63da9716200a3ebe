"""Preparing an apply in the user's submodules: work brought over, and checked.

Nothing of the user's changes here: objects are added to the repositories of submodules. Of those
that a plan has added, or moved, the repositories come along. Their folders stay empty in the
project, as after a `git pull`; `git submodule update --init` fills them from what was brought.
"""

import os
from collections.abc import Sequence

from msgspec import Struct

from cleveragents.domain.apply import ApplyOptions
from cleveragents.domain.errors import ApplyConflictError, ApplyRefusedError
from cleveragents.domain.resource import PlanResource
from cleveragents.infrastructure.sandbox.git.apply.bring import Bringing
from cleveragents.infrastructure.sandbox.git.apply.readiness import refuse_unready, staged
from cleveragents.infrastructure.sandbox.git.apply.switch import HEAD, Means
from cleveragents.infrastructure.sandbox.git.apply.token import NewRepository, SubmoduleStep
from cleveragents.infrastructure.sandbox.git.apply.worktree_update import FileUpdate
from cleveragents.infrastructure.sandbox.git.command import Git, GitError
from cleveragents.infrastructure.sandbox.git.repository.pins import value_of
from cleveragents.infrastructure.sandbox.git.submodules.carry_out import users_submodule
from cleveragents.infrastructure.sandbox.git.submodules.contents import Looked, SubmoduleContents
from cleveragents.infrastructure.sandbox.git.submodules.new_repositories import Content, Workshop
from cleveragents.infrastructure.sandbox.git.submodules.records import is_safe, repository_git
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


class AddedSubmodules:
    """`steps` are for repositories that the user has already, `new` are all others."""

    def __init__(self, over: Bringing, options: ApplyOptions) -> None:
        self._over, self._resource = over, over.resource
        self._options = options
        self.steps: list[SubmoduleStep] = []
        self.new: list[NewRepository] = []
        self._places: dict[str, str] = {}

    def prepare(self, added: Sequence[SubmoduleContents]) -> None:
        """Raises ApplyConflictError or ApplyRefusedError."""
        # Also if there are none: an apply that was not carried out may have left some.
        workshop = Workshop(self._resource)
        workshop.clear()
        try:
            for one in sorted(added, key=lambda one: one.path):
                self._refuse_unfit(one)
                self._bring(one, self._name(one), workshop)
        except BaseException:
            workshop.clear()
            raise

    def _bring(self, one: SubmoduleContents, name: str, workshop: Workshop) -> None:
        try:
            self._bring_repository(one, name, workshop)
        except GitError as error:
            raise not_brought(self._resource, one, error) from error

    def _bring_repository(self, one: SubmoduleContents, name: str, workshop: Workshop) -> None:
        place = self._places[one.path] = self._place(one, name)
        if os.path.isdir(place):
            bring_over(self._over, one, repository_git(place), one.commit)
            step = SubmoduleStep(
                path=one.path, head="", commit=one.commit, files=one.commit, repository=place
            )
            self.steps.append(step)
            return
        outer = next((item for item in self.new if item.path == one.within), None)
        # One that is part of another new one goes with it.
        made = os.path.join(outer.made, "modules", name) if outer else workshop.place(len(self.new))
        folder = os.path.relpath(os.path.join(self._resource.location, one.path), place)
        content = Content(
            commit=one.commit,
            pack=self._over.pack(one.git, one.commit),
            shallow=one.shallow,
            address=one.named.address if one.named else "",
        )
        workshop.make(self._over, made, folder, content)
        _bring_contents(self._over, one, repository_git(made), one.commit)
        self.new.append(NewRepository(path=one.path, made=made, place=place))

    def _name(self, one: SubmoduleContents) -> str:
        if one.named is None or not is_safe(one.named.name):
            told = f"the plan has added the repository {one.path}, which .gitmodules does not name"
            raise refused(self._resource, one.path, told)
        return one.named.name

    def _refuse_unfit(self, one: SubmoduleContents) -> None:
        if not self._options.commit:
            raise ApplyRefusedError(
                f"the plan has added the submodule {one.path}, which only a commit can hold",
                f"agents plan apply {self._resource.plan_id}, or with --branch NAME",
            )
        if not one.is_clean:
            told = f"the submodule {one.path}, which the plan has added, has uncommitted changes"
            raise refused(self._resource, one.path, told)
        place = os.path.join(self._resource.location, one.path)
        if os.path.lexists(place) and not (os.path.isdir(place) and not os.listdir(place)):
            raise ApplyConflictError(
                self._resource.plan_id,
                self._resource.name,
                [one.path],
                "the plan has added a submodule where you have files",
            )

    def _place(self, one: SubmoduleContents, name: str) -> str:
        """Where git looks for its repository: below that of which it is part."""
        if one.within in self._places:
            return os.path.join(self._places[one.within], "modules", name)
        around = users_submodule(self._resource, one.within) if one.within else None
        git = around or Git(self._resource.location)
        return git.text("rev-parse", "--path-format=absolute", "--git-path", f"modules/{name}")


def bring_over(over: Bringing, one: SubmoduleContents, user: Git, commit: str) -> None:
    """A commit of the sandbox's, with all that belongs to it, into a repository of the user's.

    Raises GitError, also if it is not whole.
    """
    known = [one.start] if one.start else []
    pack = over.pack(one.git, commit, known)
    # What the user has already was brought whole, or is not ours to look through.
    over.unpack(pack, user, [commit, "--not", *(known or ["--all"])], strict=False)
    _bring_contents(over, one, user, commit)


def not_brought(
    resource: PlanResource, one: SubmoduleContents, error: GitError
) -> ApplyRefusedError:
    told = f"the commits of the submodule {one.path} cannot be brought over: {error.stderr}"
    return refused(resource, one.path, told)


def refused(resource: PlanResource, path: str, what: str) -> ApplyRefusedError:
    place = os.path.join(resource.sandbox_path, path)
    return ApplyRefusedError(
        what,
        f"look at {place}: commit it there, copy it, or remove it, then "
        f"agents plan apply {resource.plan_id}",
    )


def _bring_contents(over: Bringing, one: SubmoduleContents, user: Git, commit: str) -> None:
    changes = tree_changes(one.git, one.start or _nothing(one.git), commit)
    over.contents(one.git, [c.new_oid.decode() for c in changes if c.is_file], user)


def _nothing(git: Git) -> str:
    """The empty tree."""
    return git.run("mktree").stdout.decode().strip()
