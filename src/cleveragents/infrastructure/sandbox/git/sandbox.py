"""The sandbox of a git checkout: files with a repository of their own, and what changed.

Nothing of the user's repository is written here but a reference that keeps the base commit.
"""

import os
from contextlib import suppress
from pathlib import Path

from cleveragents.domain.action import ResourceSpec
from cleveragents.domain.changes import ResourceDiff
from cleveragents.domain.errors import BaseLostError, SandboxError
from cleveragents.domain.ids import PlanId
from cleveragents.domain.resource import PlanResource, Rebuilding, ResourceInspection
from cleveragents.infrastructure.files.copy.btrfs import make_branchable
from cleveragents.infrastructure.sandbox.git.command import Git
from cleveragents.infrastructure.sandbox.git.diff import diff_of_trees, ignored_files, joined
from cleveragents.infrastructure.sandbox.git.include import check_include, copy_include
from cleveragents.infrastructure.sandbox.git.inspect import inspect_checkout
from cleveragents.infrastructure.sandbox.git.repository.object_check import clear_broken_objects
from cleveragents.infrastructure.sandbox.git.repository.own_repository import (
    folder_of,
    make_repository,
    objects_of,
    require_sandbox,
)
from cleveragents.infrastructure.sandbox.git.repository.pins import Pins, applied_pin, value_of
from cleveragents.infrastructure.sandbox.git.submodules.carry_out import NOTES, diffs_of, steps_in
from cleveragents.infrastructure.sandbox.git.submodules.contents import Looked, look
from cleveragents.infrastructure.sandbox.git.submodules.make import make_submodules
from cleveragents.infrastructure.sandbox.git.submodules.new_repositories import clear_workshop
from cleveragents.infrastructure.sandbox.git.submodules.records import in_repository, submodules_of
from cleveragents.infrastructure.sandbox.git.trees import GitTrees, text_of
from cleveragents.infrastructure.sandbox.git.views import GitViews
from cleveragents.infrastructure.sandbox.location import make_parent, remove_sandbox
from cleveragents.infrastructure.sandbox.strayed import strayed_notes


class GitCheckouts:
    def __init__(self, sandboxes_dir: str, scratch_dir: str, pins: Pins, views: GitViews) -> None:
        self._sandboxes = Path(sandboxes_dir)
        self._trees = GitTrees(scratch_dir)
        self._pins = pins
        self._views = views

    def inspect(
        self, spec: ResourceSpec, plan_id: PlanId, *, include_uncommitted: bool
    ) -> ResourceInspection:
        return inspect_checkout(
            self._trees, self._pins, spec, plan_id, include_uncommitted=include_uncommitted
        )

    def create(self, resource: PlanResource) -> None:
        check_include(resource.location, resource.include)
        self._discard(resource)
        make_parent(Path(resource.sandbox_path))
        try:
            make_repository(resource)
            self._views.note_made(resource)
            make_submodules(resource)
            copy_include(resource.location, resource.include, resource.sandbox_path)
        except BaseException:
            self._discard(resource)
            raise

    def check(self, resource: PlanResource) -> None:
        """Raises SandboxMissingError."""
        require_sandbox(resource)

    def make_room(self, resource: PlanResource, how: Rebuilding) -> None:
        """The repository is empty but for where it borrows objects; all else is in the snapshot."""
        folder = folder_of(resource)
        if how.keeps_files:
            remove_sandbox(self._sandboxes, Path(folder.path))
        else:
            self._discard(resource)
            make_parent(Path(resource.sandbox_path))
            make_branchable(resource.sandbox_path)
        folder.make(objects_of(resource))

    def has_repository(self, resource: PlanResource) -> bool:
        """Whether the sandbox's own one can be read, as far as a glance shows."""
        return folder_of(resource).looks_whole()

    def secure(self, resource: PlanResource) -> bool:
        return not clear_broken_objects(folder_of(resource).path)

    def remove(self, resource: PlanResource) -> None:
        self._discard(resource)
        # A child has nothing pinned: it stands on what its parent holds.
        if resource.store_id == resource.plan_id:
            self.release(resource)
        with suppress(OSError):  # another sandbox of the plan may still be there
            Path(resource.sandbox_path).parent.rmdir()

    def release(self, resource: PlanResource) -> None:
        if repository := _repository(resource):
            self._pins.unpin(repository, resource)
        for module in submodules_of(resource):
            if Path(module.repository(resource.location)).is_dir():
                self._pins.unpin(in_repository(resource.location, module), resource)
        clear_workshop(resource)

    def diff(self, resource: PlanResource) -> ResourceDiff:
        git = _repository(resource)
        if git is not None and value_of(git, resource.base) is None:
            commit = resource.base[:12]
            raise BaseLostError(resource.name, git.directory, commit, resource.sandbox_path)
        with self._views.of_files(resource) as held:
            git, trees = held.git, held.trees
            folder = trees.of_sandbox(git, resource.base, resource.cut_out)
            looked = look(git, trees, resource, folder)
            parts = [diff_of_trees(git, resource.base, looked.folder.tree)]
            for one in sorted(looked.inside, key=lambda one: one.path):
                if one.start and one.is_changed:
                    parts.append(diff_of_trees(one.git, one.start, one.tree, below=one.path))
            notes = strayed_notes(resource, map(text_of, folder.strayed))
            return joined(parts, left_behind(git, trees, resource, looked), notes)

    def applied_diff(self, resource: PlanResource, applied_ref: str) -> ResourceDiff:
        git = _repository(resource)
        if git is None:
            raise SandboxError(
                f"the repository {resource.location} is not there any more",
                "put the folder back if it was moved",
            )
        token = resource.intent or {}
        inside = diffs_of(resource, steps_in(token))
        notes = token.get(NOTES, ())
        return joined([_applied(git, resource, applied_ref), *inside], notes=notes)

    def _discard(self, resource: PlanResource) -> None:
        """Remove the files and their repository as far as they are there."""
        remove_sandbox(self._sandboxes, Path(resource.sandbox_path))
        remove_sandbox(self._sandboxes, Path(folder_of(resource).path))


def left_behind(
    git: Git, trees: GitTrees, resource: PlanResource, looked: Looked
) -> tuple[str, ...]:
    """What is in the sandbox and cannot be applied: ignored files and whole repositories."""
    brought = resource.include
    ignored = list(ignored_files(git, trees, looked.folder.tree, brought))
    for one in looked.inside:
        top = f"{one.path}/"
        inner = [item.removeprefix(top) for item in brought if item.startswith(top)]
        found = ignored_files(one.git, trees, one.tree, inner)
        ignored += [text_of(os.fsencode(top)) + path for path in found]
    others = [text_of(path) for path in (*looked.folder.nested, *looked.folder.strayed)]
    return tuple(sorted({*ignored, *others}))


def _applied(git: Git, resource: PlanResource, applied_ref: str) -> ResourceDiff:
    if applied_ref.startswith("tree:"):
        old, _, new = applied_ref.removeprefix("tree:").partition("..")
        return diff_of_trees(git, old, new)
    if value_of(git, applied_pin(resource)) == applied_ref:
        return ResourceDiff()  # pinned as it was: there was nothing to apply
    return diff_of_trees(git, f"{applied_ref}^1", applied_ref)


def _repository(resource: PlanResource) -> Git | None:
    """The repository itself, for references; None if it is gone."""
    git_dir = str(resource.details["git_dir"])
    return Git(git_dir, {"GIT_DIR": git_dir}) if Path(git_dir).is_dir() else None
