"""Finding what plans have left: sandboxes, and refs in users' repositories."""

import functools
import os
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from msgspec.structs import replace

from cleveragents.domain.confinement import Confinement
from cleveragents.domain.doctor import Leftover, LeftoverKind
from cleveragents.domain.errors import PlanError
from cleveragents.domain.ids import made_at
from cleveragents.domain.resource import PlanResource
from cleveragents.infrastructure.clock import machine_started_ns
from cleveragents.infrastructure.files.layers.known_layers import BESIDE, beside
from cleveragents.infrastructure.files.lent_modes import LENT
from cleveragents.infrastructure.sandbox.git.command import Git, Start, start_plainly
from cleveragents.infrastructure.sandbox.git.inside import InsideSession, View
from cleveragents.infrastructure.sandbox.git.lfs import lfs_in
from cleveragents.infrastructure.sandbox.git.repository.git_dir import (
    FIRST_INDEX,
    REPOSITORY,
    GitFolder,
)
from cleveragents.infrastructure.sandbox.git.repository.own_place import details_of
from cleveragents.infrastructure.sandbox.git.repository.pins import (
    OURS,
    Pins,
    all_pins,
    delete_ref,
    pin,
)
from cleveragents.infrastructure.sandbox.git.repository.ref_files import (
    existing,
    head_commit,
    objects_in,
    read_refs,
)
from cleveragents.infrastructure.sandbox.git.submodules.checked_out import modules_in
from cleveragents.infrastructure.sandbox.git.submodules.records import submodules_of
from cleveragents.infrastructure.sandbox.location import remove_sandbox
from cleveragents.infrastructure.sandbox.workbench import Workbench

_ULID_LENGTH = 26
# Longer than it takes to make a plan: its pins come first, and then it is on record.
_YOUNG_SECONDS = 3600


class SandboxLeftovers:
    def __init__(self, bench: Workbench) -> None:
        self._sandboxes = Path(bench.sandboxes)
        self._pins = Pins(bench.installation)
        self._inside = bench.git_inside

    def found(self, resources: Collection[PlanResource]) -> Sequence[Leftover]:
        checkouts = [r for r in resources if r.kind.has_repository]
        repositories = sorted({place for r in checkouts for place in repositories_of(r)})
        paths = {str(r.plan_id): r.sandbox_path for r in checkouts}
        bases = dict(base for r in checkouts for base in self._bases(r))
        found = list(self._folders())
        for repository in repositories:
            if os.path.isdir(repository):
                found += self._refs(repository, paths, bases)
        return found

    def judged(self, leftovers: Sequence[Leftover]) -> Sequence[Leftover]:
        refs = [leftover for leftover in leftovers if leftover.kind is LeftoverKind.REF]
        places = sorted({ref.repository for ref in refs})
        only_ours = {
            place: _held_by_nobody_else(
                in_repository(place),
                {ref.commit for ref in refs if ref.repository == place and ref.commit},
            )
            for place in places
        }
        return [
            replace(
                each,
                precious=each.commit in only_ours[each.repository]
                if each.kind is LeftoverKind.REF
                else self._holds_work(Path(each.path)),
            )
            for each in leftovers
        ]

    def _bases(self, resource: PlanResource) -> Iterator[tuple[tuple[str, str], str]]:
        """What a plan has pinned: by repository and reference, the commit."""
        ref = self._pins.base(resource.plan_id, resource.name)
        commits = (resource.base, *(module.commit for module in submodules_of(resource)))
        for repository, commit in zip(repositories_of(resource), commits, strict=True):
            yield (repository, ref), commit

    def remove(self, leftover: Leftover) -> None:
        if leftover.kind is LeftoverKind.FOLDER:
            remove_sandbox(self._sandboxes, Path(leftover.path))
            remove_sandbox(self._sandboxes, Path(GitFolder(leftover.path).path))
            remove_sandbox(self._sandboxes, Path(beside(leftover.path)))
            remove_sandbox(self._sandboxes, Path(f"{leftover.path}{FIRST_INDEX}"))
            with suppress(OSError):  # another sandbox of the plan may still be there
                Path(leftover.path).parent.rmdir()
        elif leftover.broken and leftover.base:
            pin(in_repository(leftover.repository), leftover.name, leftover.base)
        else:
            delete_ref(in_repository(leftover.repository), leftover.name)

    def _folders(self) -> Iterator[Leftover]:
        """The sandbox of each resource; one folder per plan, one in it per resource.

        A repository, and what says which modes are lent, go with their sandbox. A repository
        whose sandbox is gone stands for it.
        """
        for plan in _listed(self._sandboxes):
            found = _listed(plan)
            ends = (REPOSITORY, LENT, BESIDE, FIRST_INDEX)
            names = {functools.reduce(str.removesuffix, ends, path.name) for path in found}
            for sandbox in (plan / name for name in sorted(names)):
                if len(plan.name) == _ULID_LENGTH:
                    yield Leftover(
                        kind=LeftoverKind.FOLDER,
                        repository="",
                        name=str(sandbox if os.path.lexists(sandbox) else f"{sandbox}{REPOSITORY}"),
                        plan_id=plan.name,
                        path=str(sandbox),
                        there=os.path.lexists(sandbox),
                    )

    def _holds_work(self, sandbox: Path) -> bool:
        """Whether a folder has anything that is not in a commit which the user's own refs hold."""
        if sandbox.is_symlink():
            return False
        if sandbox.is_dir() and not any(sandbox.iterdir()):
            return False
        folder = GitFolder(str(sandbox))
        if folder.borrowed() is None:
            return os.path.lexists(sandbox)
        place = sandbox if sandbox.is_dir() else sandbox.parent
        # How its steps were held may be known to nobody any more.
        view = View(confinement=Confinement(), plan_id=sandbox.parent.name, folder=str(place))
        try:
            with self._inside.opened(view) as inside:
                return _differs_from_project(folder, inside)
        except PlanError:
            return True  # a repository is gone or broken: these may be the only copies

    def _refs(
        self, repository: str, paths: Mapping[str, str], bases: Mapping[tuple[str, str], str]
    ) -> Iterator[Leftover]:
        for found in all_pins(in_repository(repository)):
            path = paths.get(found.plan_id) or str(self._sandboxes / found.plan_id)
            yield Leftover(
                kind=LeftoverKind.REF,
                repository=repository,
                name=found.ref,
                plan_id=found.plan_id,
                path=path,
                there=os.path.lexists(path),
                commit=found.commit,
                ours=self._pins.are(found),
                young=_is_young(found.plan_id),
                broken=not found.commit,
                base=bases.get((repository, found.ref), ""),
            )


def _differs_from_project(folder: GitFolder, inside: InsideSession) -> bool:
    """Whether files or commits of a sandbox are not in the user's repository. Raises PlanError.

    Which one that is, a step may have said.
    """
    repository = os.path.dirname(folder.borrowed() or "")
    project = in_repository(repository, inside.start)
    modules = _submodules(folder)
    if _has_own_commits(folder, project) or any(_has_own_work(m, inside) for m in modules):
        return True
    commit = _commit(folder)
    if not os.path.lexists(folder.sandbox):
        return _only_we_hold(project, commit)
    # With the user's settings, not with those that a step may have made.
    places = {"GIT_DIR": repository, **folder.as_work_tree()}
    git = Git(folder.sandbox, places, inside.start, lfs_in(inside.room))
    args = ("diff", "--quiet", "--no-ext-diff", "--ignore-submodules=none")
    changed = git.run(*args, commit, check=False).code != 0
    return changed or bool(git.text("ls-files", "--others")) or _only_we_hold(project, commit)


def _submodules(folder: GitFolder) -> Iterator[GitFolder]:
    found = modules_in(folder.file("modules"))
    return (GitFolder(folder.sandbox, place) for place in found)


def _has_own_work(module: GitFolder, inside: InsideSession) -> bool:
    """One that borrows nothing was made by a step."""
    borrowed = module.borrowed()
    if borrowed is None:
        return True
    return _has_own_commits(module, in_repository(os.path.dirname(borrowed), inside.start))


def _has_own_commits(folder: GitFolder, project: Git) -> bool:
    wanted = {_commit(folder), *objects_in(read_refs(folder.path))}
    return bool(wanted - set(existing(project, wanted)))


def _commit(folder: GitFolder) -> str:
    return head_commit(folder.read("HEAD") or b"", read_refs(folder.path))


def _only_we_hold(git: Git, commit: str) -> bool:
    return commit in _held_by_nobody_else(git, {commit})


def _held_by_nobody_else(git: Git, commits: set[str]) -> set[str]:
    """Those of the commits that no ref of the user leads to, and those that are not there.

    All of them in one walk over the history: there may be thousands of refs, and as many plans.
    """
    if not commits:
        return set()
    there = set(existing(git, commits))
    listing = git.text("for-each-ref", "--format=%(objectname) %(refname)").split("\n")
    refs = (line.split(" ", 1) for line in listing if line)
    users = dict.fromkeys(oid for oid, name in refs if not name.startswith(OURS))
    request = "".join(f"{oid}\n" for oid in (*sorted(there), *(f"^{oid}" for oid in users)))
    # What is missing behind a ref of the user is his own matter.
    walked = git.run("rev-list", "--ignore-missing", "--stdin", input=request.encode())
    return (commits - there) | (there & set(walked.stdout.decode().split()))


def _is_young(plan_id: str) -> bool:
    """Whether somebody may still be making the plan; nobody is who began before the machine was
    started."""
    made = made_at(plan_id)
    return time.time_ns() / 1e9 - made < _YOUNG_SECONDS and made > machine_started_ns() / 1e9


def _listed(folder: Path) -> Sequence[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError:
        return []


def repositories_of(resource: PlanResource) -> Iterator[str]:
    """The user's own, and those of its submodules: a plan pins what it needs in each."""
    yield details_of(resource).git_dir
    yield from (module.repository(resource.location) for module in submodules_of(resource))


def in_repository(repository: str, start: Start = start_plainly) -> Git:
    # The folder of a submodule may be gone, which would stop git.
    return Git(repository, {"GIT_DIR": repository, "GIT_WORK_TREE": repository}, start)
