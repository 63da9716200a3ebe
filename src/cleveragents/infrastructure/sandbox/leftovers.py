"""Owns finding what plans have left: sandboxes, and worktrees and refs in users' repositories."""

import os
import re
import shutil
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from cleveragents.domain.action import ResourceType
from cleveragents.domain.doctor import Leftover, LeftoverKind
from cleveragents.domain.errors import PlanError
from cleveragents.domain.sandbox import PlanResource
from cleveragents.infrastructure.sandbox.git import Git
from cleveragents.infrastructure.sandbox.git_refs import delete_ref
from cleveragents.infrastructure.sandbox.sandbox_folder import remove_sandbox

_OURS = ("refs/heads/cleveragents/", "refs/cleveragents/")
_PLAN = re.compile(r"/plan-([0-9A-HJKMNP-TV-Z]{26})")
_ULID_LENGTH = 26


class SandboxLeftovers:
    """`cwd` is looked at too: whoever stands in a repository that was moved shows where it is."""

    def __init__(self, sandboxes_dir: str, cwd: str) -> None:
        self._sandboxes = Path(sandboxes_dir)
        self._cwd = cwd

    def found(self, resources: Collection[PlanResource]) -> Sequence[Leftover]:
        checkouts = [r for r in resources if r.type is ResourceType.GIT_CHECKOUT]
        repositories = sorted({str(_git_dir(resource)) for resource in checkouts})
        paths = {str(r.plan_id): r.sandbox_path for r in checkouts}
        found = list(self._folders())
        for repository in repositories:
            if os.path.isdir(repository):
                found += [*self._worktrees(repository), *self._refs(repository, paths)]
        return found

    def remove(self, leftover: Leftover) -> None:
        if leftover.kind is LeftoverKind.FOLDER:
            remove_sandbox(self._sandboxes, Path(leftover.path))
            with suppress(OSError):  # another sandbox of the plan may still be there
                Path(leftover.path).parent.rmdir()
        elif leftover.kind is LeftoverKind.WORKTREE:
            shutil.rmtree(Path(leftover.repository, "worktrees", leftover.name))
            with suppress(OSError):  # as git does: the last one takes the folder along
                Path(leftover.repository, "worktrees").rmdir()
        else:
            delete_ref(_git(leftover.repository), leftover.name)

    def moved_to(self, resource: PlanResource) -> str | None:
        """Where a repository is that has the sandbox's registration, here or beside the old one."""
        if resource.type is not ResourceType.GIT_CHECKOUT or os.path.lexists(resource.location):
            return None
        parent = Path(resource.location).parent
        beside = sorted(parent.iterdir()) if parent.is_dir() else []
        here = [Path(self._cwd), *Path(self._cwd).parents]
        for candidate in (*here, *beside):
            for _, sandbox in _registered(str(candidate / ".git")):
                if sandbox == resource.sandbox_path:
                    return str(candidate)
        return None

    def _folders(self) -> Iterator[Leftover]:
        """The sandbox of each resource; one folder per plan, one in it per resource."""
        for plan in _listed(self._sandboxes):
            for sandbox in _listed(plan):
                if len(plan.name) == _ULID_LENGTH:
                    yield Leftover(
                        kind=LeftoverKind.FOLDER,
                        repository="",
                        name=str(sandbox),
                        plan_id=plan.name,
                        path=str(sandbox),
                        there=True,
                        precious=_holds_work(sandbox),
                    )

    def _worktrees(self, repository: str) -> Iterator[Leftover]:
        real = self._sandboxes.resolve()
        for name, sandbox in _registered(repository):
            ours = [top for top in (self._sandboxes, real) if Path(sandbox).is_relative_to(top)]
            if not ours:
                continue  # the user's own
            inside = Path(sandbox).relative_to(ours[0])
            yield Leftover(
                kind=LeftoverKind.WORKTREE,
                repository=repository,
                name=name,
                plan_id=inside.parts[0],
                path=str(self._sandboxes / inside),
                there=os.path.lexists(sandbox),
                # With its folder gone it holds nothing but the name of a commit.
                precious=os.path.lexists(sandbox) and _holds_work(Path(sandbox)),
            )

    def _refs(self, repository: str, paths: dict[str, str]) -> Iterator[Leftover]:
        git = _git(repository)
        listing = git.text("for-each-ref", "--format=%(refname) %(objectname)", *_OURS)
        for line in filter(None, listing.split("\n")):
            ref, _, commit = line.partition(" ")
            plan = _PLAN.search(ref)
            if plan is None:
                continue  # what was applied without a commit stays for good
            path = paths.get(plan[1]) or str(self._sandboxes / plan[1])
            yield Leftover(
                kind=LeftoverKind.REF,
                repository=repository,
                name=ref,
                plan_id=plan[1],
                path=path,
                there=os.path.lexists(path),
                precious=_only_we_hold(git, commit),
            )


def _holds_work(sandbox: Path) -> bool:
    """Whether a folder has anything that is not in a commit which the user's own refs hold."""
    if sandbox.is_symlink():
        return False
    if sandbox.is_dir() and not any(sandbox.iterdir()):
        return False
    if not (sandbox / ".git").is_file():
        return True
    git = Git(str(sandbox))
    try:
        if git.text("status", "--porcelain", "--ignored"):
            return True
        return _only_we_hold(git, git.text("rev-parse", "HEAD"))
    except PlanError:
        return True  # its repository is gone or broken: these may be the only copies


def _only_we_hold(git: Git, commit: str) -> bool:
    holders = git.text("for-each-ref", f"--contains={commit}", "--format=%(refname)").split("\n")
    return not any(ref and not ref.startswith(_OURS) for ref in holders)


def _registered(repository: str) -> Iterator[tuple[str, str]]:
    """The worktrees of a repository: the name of each, and where it says that it is."""
    for admin in _listed(Path(repository, "worktrees")):
        with suppress(OSError):
            named = os.fsdecode((admin / "gitdir").read_bytes()).removesuffix("\n")
            yield admin.name, named.removesuffix("/.git")


def _listed(folder: Path) -> Sequence[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError:
        return []


def _git_dir(resource: PlanResource) -> Path:
    return Path(str(resource.details.get("git_dir") or Path(resource.location, ".git")))


def _git(repository: str) -> Git:
    return Git(repository, {"GIT_DIR": repository})
