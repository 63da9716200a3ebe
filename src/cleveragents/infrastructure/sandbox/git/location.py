"""Where a repository is that plans work on: found again after a move, and told to its sandboxes."""

import os
from collections.abc import Iterator

from msgspec.structs import replace

from cleveragents.domain.errors import BaseLostError, RepositoryNotTrustedError
from cleveragents.domain.resource import PlanResource
from cleveragents.infrastructure.sandbox.git.command import Git, GitError
from cleveragents.infrastructure.sandbox.git.repository.own_place import (
    details_of,
    folder_of,
    objects_of,
)
from cleveragents.infrastructure.sandbox.git.repository.pins import Pins, is_base, value_of
from cleveragents.infrastructure.sandbox.git.submodules.records import (
    borrowing_folder,
    in_repository,
    submodules_of,
)


class RepositoryLocation:
    """`pins` are our names in a repository: by these it is known again."""

    def __init__(self, pins: Pins) -> None:
        self._pins = pins

    def is_grounded(self, resource: PlanResource) -> bool:
        return os.path.isdir(objects_of(resource))

    def hold(self, resource: PlanResource) -> None:
        for git, commit in _bases(resource):
            if not self._pins.hold(git, resource, commit):
                raise _lost(resource, git, commit)

    def refuse_lost(self, resource: PlanResource) -> None:
        for git, commit in _bases(resource):
            if value_of(git, commit) is None:
                raise _lost(resource, git, commit)

    def near(self, resource: PlanResource, cwd: str) -> Iterator[str]:
        """Whoever stands in a repository that was moved shows where it is."""
        folder, below = cwd, ""
        while folder != below:
            yield folder
            folder, below = os.path.dirname(folder), folder
        parent = os.path.dirname(resource.location)
        if os.path.isdir(parent):
            yield from (os.path.join(parent, name) for name in sorted(os.listdir(parent)))

    def is_at(self, resource: PlanResource, place: str) -> bool:
        if not os.path.lexists(os.path.join(place, ".git")):
            return False
        try:
            git_dir = _common(place)
        except (GitError, RepositoryNotTrustedError):
            return False
        git = Git(git_dir, {"GIT_DIR": git_dir})
        return is_base(git, resource.store_id, resource.name, resource.base)

    def is_surely_at(self, resource: PlanResource, place: str) -> bool:
        """By what a folder keeps when it is moved, and a copy has not; and as part of the same."""
        known = details_of(resource)
        within = os.path.relpath(known.git_dir, resource.location)
        return (
            not os.path.exists(known.git_dir)
            and self.is_at(resource, place)
            and os.path.relpath(common := _common(place), place) == within
            and os.stat(common).st_ino == known.git_inode
        )

    def moved(self, resource: PlanResource, place: str) -> PlanResource:
        from cleveragents.infrastructure.sandbox.git.inspect import (  # noqa: PLC0415 - hardly ever
            details_at,
        )

        known = details_of(resource)
        details = details_at(
            Git(place),
            included_uncommitted=known.included_uncommitted,
            submodules=known.submodules,
        )
        moved = replace(resource, location=place, details=details)
        if os.path.isdir(folder_of(moved).path):
            folder_of(moved).make(objects_of(moved))
            for module in submodules_of(moved):
                borrowing_folder(moved, module)
        return moved

    def written_places(self, resource: PlanResource) -> Iterator[str]:
        """The repository may be elsewhere."""
        yield resource.location
        yield details_of(resource).git_dir


def _bases(resource: PlanResource) -> Iterator[tuple[Git, str]]:
    """The commits that the sandbox was made from, each with its repository."""
    git_dir = details_of(resource).git_dir
    yield Git(git_dir, {"GIT_DIR": git_dir}), resource.base
    for module in submodules_of(resource):
        git = in_repository(resource.location, module)
        if os.path.isdir(git.directory):  # else whoever needs it says so
            yield git, module.commit


def _lost(resource: PlanResource, git: Git, commit: str) -> BaseLostError:
    return BaseLostError(resource.name, git.directory, commit[:12], resource.sandbox_path)


def _common(place: str) -> str:
    """Raises GitError."""
    return Git(place).text("rev-parse", "--path-format=absolute", "--git-common-dir")
