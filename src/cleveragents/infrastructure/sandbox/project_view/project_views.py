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
from cleveragents.infrastructure.confinement.covers import Cover, Layer
from cleveragents.infrastructure.files.data_folder import make_private
from cleveragents.infrastructure.files.durable_files import make_folder
from cleveragents.infrastructure.sandbox.git.repository.details import details_of
from cleveragents.infrastructure.sandbox.project_view.layers import SandboxLayers
from cleveragents.infrastructure.sandbox.project_view.new_submodules import has_modules, settle
from cleveragents.infrastructure.sandbox.project_view.repository_view import repository_view

_KINDS = (GIT_CHECKOUT.type, FS_DIRECTORY.type)


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
