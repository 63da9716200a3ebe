"""Finding projects that were moved, and telling their sandboxes where they are now."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from msgspec.structs import replace

from cleveragents.domain.action import ResourceType
from cleveragents.domain.errors import BaseLostError, RepositoryNotTrustedError, SandboxError
from cleveragents.domain.resource import PlanResource
from cleveragents.infrastructure.sandbox.git.command import Git, GitError
from cleveragents.infrastructure.sandbox.git.inspect import where_it_is
from cleveragents.infrastructure.sandbox.git.repository.own_repository import folder_of, objects_of
from cleveragents.infrastructure.sandbox.git.repository.pins import Pins, is_base
from cleveragents.infrastructure.sandbox.git.submodules.records import (
    borrowing_folder,
    in_repository,
    submodules_of,
)


class ProjectLocations:
    """`cwd` is looked at too: whoever stands in a repository that was moved shows where it is.
    `pins` are our names in it."""

    def __init__(self, cwd: str, pins: Pins) -> None:
        self._cwd = cwd
        self._pins = pins

    def is_at_home(self, resource: PlanResource) -> bool:
        return os.path.lexists(resource.location) and self.is_grounded(resource)

    def is_grounded(self, resource: PlanResource) -> bool:
        is_git = resource.type is ResourceType.GIT_CHECKOUT
        return not is_git or os.path.isdir(objects_of(resource))

    def hold(self, resource: PlanResource) -> None:
        if resource.type is not ResourceType.GIT_CHECKOUT:
            return
        git_dir = str(resource.details["git_dir"])
        self._hold(resource, Git(git_dir, {"GIT_DIR": git_dir}), resource.base)
        for module in submodules_of(resource):
            git = in_repository(resource.location, module)
            if os.path.isdir(git.directory):  # else whoever needs it says so
                self._hold(resource, git, module.commit)

    def _hold(self, resource: PlanResource, git: Git, commit: str) -> None:
        if not self._pins.hold(git, resource, commit):
            raise BaseLostError(resource.name, git.directory, commit[:12], resource.sandbox_path)

    def find_for_certain(self, resource: PlanResource) -> str | None:
        """By what a folder keeps when it is moved, and a copy has not; and as part of the same."""
        if resource.type is not ResourceType.GIT_CHECKOUT:
            return None
        git_dir = str(resource.details["git_dir"])
        within = os.path.relpath(git_dir, resource.location)
        places = {os.path.realpath(p) for p in self._places(resource, {})}
        found = [
            place
            for place in sorted(places)
            if self._is_it(resource, place)
            and os.path.relpath(common := _common(place), place) == within
            and os.stat(common).st_ino == resource.details.get("git_inode")
        ]
        return found[0] if len(found) == 1 and not os.path.exists(git_dir) else None

    def find(self, resource: PlanResource, told: Mapping[str, str]) -> str | None:
        for place in self._places(resource, told):
            if self._is_it(resource, place):
                return place
        return None

    def relocate(self, resource: PlanResource, place: str) -> PlanResource:
        if not self._is_it(resource, place):
            raise SandboxError(
                f"{place} is not what plan {resource.plan_id} knows as `{resource.name}`",
                f"agents doctor --fix --moved {resource.location}=NEW",
            )
        if resource.type is not ResourceType.GIT_CHECKOUT:
            return replace(resource, location=place)
        details = {**resource.details, **where_it_is(Git(place))}
        moved = replace(resource, location=place, details=details)
        if os.path.isdir(folder_of(moved).path):
            folder_of(moved).make(objects_of(moved))
            for module in submodules_of(moved):
                borrowing_folder(moved, module)
        return moved

    def _places(self, resource: PlanResource, told: Mapping[str, str]) -> Iterator[str]:
        for old, new in told.items():
            rest = os.path.relpath(resource.location, old)
            if not rest.startswith(".."):
                yield os.path.normpath(os.path.join(new, rest))
        if resource.type is not ResourceType.GIT_CHECKOUT:
            return  # nothing tells a folder or a database from another one
        yield from map(str, (Path(self._cwd), *Path(self._cwd).parents))
        parent = Path(resource.location).parent
        if parent.is_dir():
            yield from map(str, sorted(parent.iterdir()))

    def _is_it(self, resource: PlanResource, place: str) -> bool:
        if resource.type is ResourceType.FS_DIRECTORY:
            return os.path.isdir(place)
        if resource.type is ResourceType.SQLITE:
            return os.path.isfile(place)
        if not os.path.lexists(os.path.join(place, ".git")):
            return False
        try:
            git_dir = _common(place)
        except (GitError, RepositoryNotTrustedError):
            return False
        git = Git(git_dir, {"GIT_DIR": git_dir})
        return is_base(git, resource.store_id, resource.name, resource.base)


def _common(place: str) -> str:
    """Raises GitError."""
    return Git(place).text("rev-parse", "--path-format=absolute", "--git-common-dir")
