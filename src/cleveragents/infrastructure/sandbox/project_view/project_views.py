"""What is made ready for a command that is to see its sandboxes at their projects' own paths.

The mounts themselves are the new process's (`confinement/covers.py`). Here is found out which
sandboxes can stand there, and made what has to be on the disk before.
"""

import os
import shutil
import tempfile
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, contextmanager

from cleveragents.domain.ids import PlanId
from cleveragents.domain.resource import PlanResource
from cleveragents.domain.resource_kinds import FS_DIRECTORY, GIT_CHECKOUT
from cleveragents.infrastructure.confinement.covers import Cover, Layer, Seen
from cleveragents.infrastructure.files.data_folder import make_private
from cleveragents.infrastructure.files.durable_files import make_folder, put_file, read_file
from cleveragents.infrastructure.sandbox.git.repository.git_dir import GitFolder, quoted
from cleveragents.infrastructure.sandbox.git.repository.own_place import details_of, objects_of
from cleveragents.infrastructure.sandbox.git.submodules.checked_out import (
    modules_in,
    with_worktree,
    worktree_in,
)
from cleveragents.infrastructure.sandbox.project_view.layers import SandboxLayers

_KINDS = (GIT_CHECKOUT.type, FS_DIRECTORY.type)
Seens = tuple[Seen, ...]


class ProjectViews:
    """`resources` are those of a plan; `data_dir` is where sandboxes are."""

    def __init__(
        self,
        resources: Callable[[PlanId], Sequence[PlanResource]],
        layers: SandboxLayers,
        data_dir: str,
    ) -> None:
        self._resources = resources
        self._layers = layers
        self._data = os.path.realpath(data_dir)
        self._scratch = f"{data_dir}/scratch"

    @contextmanager
    def opened(
        self, plan_id: str, sandboxes: Sequence[str], *, read_only: bool
    ) -> Generator[Sequence[Cover]]:
        """For these sandboxes of the plan, as far as they can stand where their projects do."""
        there = [
            resource
            for resource in self._resources(PlanId(plan_id))
            if resource.sandbox_path in sandboxes and self.why_not(resource) is None
        ]
        if not there:
            yield ()
            return
        _make_places(there)
        try:
            with self._room() as room, ExitStack() as stack:
                layers = {r.name: stack.enter_context(self._layers.opened(r)) for r in there}
                yield tuple(
                    self._cover(r, layers[r.name], room, read_only=read_only) for r in there
                )
        finally:
            for resource in there:
                if resource.kind.has_repository:
                    settle(resource.sandbox_path, home_of(resource))

    def why_not(self, resource: PlanResource) -> str | None:
        """Why its sandbox stays where it is, if it does."""
        home = resource.location
        if resource.in_place:
            return "it is worked on in place"
        if resource.type not in _KINDS:
            return f"a resource of type {resource.type} has no folder of its own"
        if not os.path.isdir(home):
            return f"{home} is not there any more"
        if f"{self._data}/".startswith(f"{os.path.realpath(home).rstrip('/')}/"):
            return f"{self._data}, where plans are kept, lies in it"
        if resource.kind.has_repository and _has_submodules(resource):
            return "it has submodules, whose repositories know where their files are"
        return None

    def _cover(
        self, resource: PlanResource, layers: tuple[Layer, ...], room: str, *, read_only: bool
    ) -> Cover:
        own = f"{room}/{resource.name}"
        os.mkdir(own, 0o700)
        lent, replaced = repository_view(resource, own)
        return Cover(
            sandbox=resource.sandbox_path,
            home=home_of(resource),
            lent=lent,
            replaced=replaced,
            layers=layers,
            read_only=read_only,
        )

    @contextmanager
    def _room(self) -> Generator[str]:
        """For what is read in the place of other files; a command can only read there."""
        make_private(self._scratch)
        folder = os.path.realpath(tempfile.mkdtemp(prefix="view-", dir=self._scratch))
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def home_of(resource: PlanResource) -> str:
    """The project's own path, as programs find it out."""
    return os.path.realpath(resource.location)


def _has_submodules(resource: PlanResource) -> bool:
    return bool(details_of(resource).submodules) or has_modules(resource.sandbox_path)


def _make_places(resources: Sequence[PlanResource]) -> None:
    """Where a project lies in another one of the plan, its sandbox is mounted in the other's."""
    for inner in resources:
        for outer in resources:
            inside = home_of(inner).removeprefix(f"{home_of(outer)}/")
            if inside != home_of(inner):
                make_folder(outer.sandbox_path, inside)


def has_modules(sandbox: str) -> bool:
    return next(modules_in(f"{GitFolder(sandbox).path}/modules"), None) is not None


def settle(sandbox: str, home: str) -> None:
    """Of submodules that a step has added while its sandbox stood at the project's path `home`, git
    has written down where their files are from where it saw them. Both notes, that in the submodule
    and that in its repository, are made to hold where the sandbox really is, as those of all other
    submodules do; from then on the sandbox stays there (ADR 0084)."""
    for module in modules_in(f"{GitFolder(sandbox).path}/modules"):
        config = read_file(module, "config")
        place = worktree_in(config or b"")
        if config is None or place is None:
            continue
        seen = os.path.normpath(os.path.join(module, place))
        if not seen.startswith(f"{home}/"):
            continue
        files = f"{sandbox}{seen.removeprefix(home)}"
        put_file(module, "config", with_worktree(config, os.path.relpath(files, module)))
        pointer = read_file(files, ".git") if _is_folder(sandbox, files) else None
        if pointer is not None and pointer.startswith(b"gitdir: "):
            put_file(
                files, ".git", b"gitdir: " + os.fsencode(os.path.relpath(module, files)) + b"\n"
            )


def _is_folder(sandbox: str, files: str) -> bool:
    """No part of the way there is a link."""
    return os.path.realpath(files) == os.path.join(
        os.path.realpath(sandbox), os.path.relpath(files, sandbox)
    ) and os.path.isdir(files)


def repository_view(resource: PlanResource, room: str) -> tuple[Seens, Seens]:
    """What is lent, and what is replaced. `room` is a folder for files of ours.

    The sandbox's `.git` names its repository from where the sandbox really lies, and its objects
    are borrowed from below the path that is covered. So two files are read in the place of others:
    one that names the repository from anywhere, and one that names a place where the user's objects
    can be read. Which objects those are is on record; what a step wrote leads nowhere.
    """
    if not resource.kind.has_repository:
        return (), ()
    home, folder = home_of(resource), GitFolder(resource.sandbox_path)
    pointer = _file(room, "pointer", b"gitdir: " + os.fsencode(folder.path) + b"\n")
    named = Seen(source=pointer, place=f"{home}/.git")
    objects = os.path.realpath(objects_of(resource))
    if not objects.startswith(f"{home}/"):
        return (), (named,)
    place = f"{room}/objects"
    os.mkdir(place, 0o700)
    told = _file(room, "borrowed", os.fsencode(quoted(place)) + b"\n")
    borrowed = Seen(source=told, place=folder.file("objects/info/alternates"))
    return (Seen(source=objects, place=place),), (named, borrowed)


def _file(room: str, name: str, data: bytes) -> str:
    path = f"{room}/{name}"
    with open(path, "wb") as file:
        file.write(data)
    return path
