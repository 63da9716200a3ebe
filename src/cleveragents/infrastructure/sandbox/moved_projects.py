"""Owns finding projects that were moved, and telling their sandboxes where they are now."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from cleveragents.domain.action import ResourceType
from cleveragents.domain.errors import SandboxError
from cleveragents.domain.sandbox import PlanResource
from cleveragents.infrastructure.sandbox.git import Git, GitError
from cleveragents.infrastructure.sandbox.git_refs import is_base
from cleveragents.infrastructure.sandbox.git_repository import folder_of
from cleveragents.infrastructure.sandbox.git_submodule import borrowing_folder, submodules_of


class MovedProjects:
    """`cwd` is looked at too: whoever stands in a repository that was moved shows where it is."""

    def __init__(self, cwd: str) -> None:
        self._cwd = cwd

    def is_at_home(self, resource: PlanResource) -> bool:
        return os.path.lexists(resource.location)

    def find(self, resource: PlanResource, told: Mapping[str, str]) -> str | None:
        for place in self._places(resource, told):
            if self._is_it(resource, place):
                return place
        return None

    def settle(self, resource: PlanResource, place: str) -> PlanResource:
        if not self._is_it(resource, place):
            raise SandboxError(
                f"{place} is not what plan {resource.plan_id} knows as `{resource.name}`",
                f"agents doctor --fix --moved {resource.location}=NEW",
            )
        if resource.type is not ResourceType.GIT_CHECKOUT:
            return replace(resource, location=place)
        common = _common(place)
        moved = replace(resource, location=place, details={**resource.details, "git_dir": common})
        if os.path.isdir(folder_of(moved).path):
            folder_of(moved).make(os.path.join(common, "objects"))
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
        except GitError:
            return False
        git = Git(git_dir, {"GIT_DIR": git_dir})
        return is_base(git, resource.store_id, resource.name, resource.base)


def _common(place: str) -> str:
    """Raises GitError."""
    return Git(place).text("rev-parse", "--path-format=absolute", "--git-common-dir")
