"""The sandbox of a git checkout: files with a repository of their own, and what changed.

Most commands only ask whether it is there, and so what else it takes is loaded by who needs it.

Nothing of the user's repository is written here but a reference that keeps the base commit.
"""

import os
from contextlib import suppress
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from cleveragents.domain.action import ResourceSpec
from cleveragents.domain.changes import ResourceDiff
from cleveragents.domain.errors import BaseLostError, SandboxError
from cleveragents.domain.ids import PlanId
from cleveragents.domain.resource import PlanResource, Rebuilding, ResourceInspection
from cleveragents.infrastructure.files.layers.known_layers import beside, copied_folders
from cleveragents.infrastructure.sandbox.git.command import Git
from cleveragents.infrastructure.sandbox.git.repository.own_place import (
    Submodule,
    details_of,
    first_index,
    folder_of,
    objects_of,
    require_sandbox,
)
from cleveragents.infrastructure.sandbox.git.repository.pins import Pins, applied_pin, value_of
from cleveragents.infrastructure.sandbox.git.submodules.records import (
    borrowing_folder,
    in_repository,
    inside,
    submodule_git,
    submodules_of,
)
from cleveragents.infrastructure.sandbox.git.views import GitView, GitViews
from cleveragents.infrastructure.sandbox.location import make_parent, remove_sandbox, throw_away

if TYPE_CHECKING:
    from collections.abc import Callable

    from cleveragents.infrastructure.sandbox.git.apply.token import IgnoredToken
    from cleveragents.infrastructure.sandbox.git.submodules.contents import Looked
    from cleveragents.infrastructure.sandbox.git.trees import GitTrees
    from cleveragents.infrastructure.sandbox.project_view.layers import SandboxLayers


class GitCheckouts(Struct, frozen=True):
    _sandboxes: str
    _scratch: str
    _pins: Pins
    _views: GitViews
    _layers: "Callable[[], SandboxLayers]"

    def inspect(
        self, spec: ResourceSpec, plan_id: PlanId | None, *, include_uncommitted: bool
    ) -> ResourceInspection:
        from cleveragents.infrastructure.sandbox.git.inspect import inspect_checkout
        from cleveragents.infrastructure.sandbox.git.trees import GitTrees

        trees = GitTrees(self._scratch)
        found = inspect_checkout(
            trees, self._pins, spec, plan_id, include_uncommitted=include_uncommitted
        )
        covered = not found.submodules
        told = self._layers().notices(found.location, spec.include, is_covered=covered)
        return replace(found, notices=(*found.notices, *told)) if told else found

    def create(self, resource: PlanResource) -> None:
        from cleveragents.infrastructure.sandbox.git.include import check_include, copy_include
        from cleveragents.infrastructure.sandbox.git.repository.own_repository import (
            make_repository,
        )

        check_include(resource.location, resource.include)
        self._discard(resource)
        make_parent(resource.sandbox_path)
        try:
            settings = make_repository(resource)
            self._views.note_made(resource, settings)
            _make_submodules(resource)
            copy_include(resource.location, resource.include, resource.sandbox_path)
            layers = self._layers()
            layers.make(resource)
            layers.copy_refused(resource)
        except BaseException:
            self._discard(resource)
            raise

    def files_there(self, resource: PlanResource) -> int:
        from cleveragents.infrastructure.sandbox.git.repository.new_index_reader import entries_at

        return entries_at(f"{resource.location}/.git/index")

    def check(self, resource: PlanResource) -> None:
        """Raises SandboxMissingError."""
        require_sandbox(resource)

    def make_room(self, resource: PlanResource, how: Rebuilding) -> None:
        """The repository is empty but for where it borrows objects; all else is in the snapshot."""
        from cleveragents.infrastructure.files.copy.btrfs import make_branchable

        folder = folder_of(resource)
        if how.keeps_files:
            remove_sandbox(self._sandboxes, folder.path)
        else:
            layers = self._layers()
            noted = layers.known_or_all(resource)
            self._discard(resource)
            make_parent(resource.sandbox_path)
            make_branchable(resource.sandbox_path)
            layers.note(resource, noted)
        folder.make(objects_of(resource))

    def has_repository(self, resource: PlanResource) -> bool:
        """Whether the sandbox's own one can be read, as far as a glance shows."""
        return folder_of(resource).looks_whole()

    def secure(self, resource: PlanResource) -> bool:
        from cleveragents.infrastructure.sandbox.git.repository.object_check import (
            clear_broken_objects,
        )

        return not clear_broken_objects(folder_of(resource).path)

    def remove(self, resource: PlanResource) -> None:
        self.remove_copy(resource)
        # A child has nothing pinned: it stands on what its parent holds.
        if resource.store_id == resource.plan_id:
            self.release(resource)

    def remove_copy(self, resource: PlanResource) -> None:
        self._discard(resource)
        with suppress(OSError):  # another sandbox of the plan may still be there
            os.rmdir(os.path.dirname(resource.sandbox_path))

    def release(self, resource: PlanResource) -> None:
        from cleveragents.infrastructure.sandbox.git.submodules.new_repositories import (
            clear_workshop,
        )

        if repository := _repository(resource):
            self._pins.unpin(repository, resource)
        for module in submodules_of(resource):
            if os.path.isdir(module.repository(resource.location)):
                self._pins.unpin(in_repository(resource.location, module), resource)
        clear_workshop(resource)

    def diff(self, resource: PlanResource) -> ResourceDiff:
        from cleveragents.infrastructure.sandbox.git.diff import (
            diff_of_trees,
            empty_folders,
            joined,
        )
        from cleveragents.infrastructure.sandbox.git.submodules.contents import look
        from cleveragents.infrastructure.sandbox.git.trees import text_of
        from cleveragents.infrastructure.sandbox.strayed import strayed_notes

        _refuse_lost_base(resource)
        with self._views.of_files(resource) as held:
            git, trees = held.git, held.trees
            folder = trees.of_sandbox(git, resource.base, resource.cut_out, first_index(resource))
            looked = look(git, trees, resource, folder)
            parts = [diff_of_trees(git, resource.base, looked.folder.tree)]
            for one in sorted(looked.inside, key=lambda one: one.path):
                if one.start and one.is_changed:
                    parts.append(diff_of_trees(one.git, one.start, one.tree, below=one.path))
            notes = strayed_notes(resource, map(text_of, folder.strayed))
            with trees.index_of(git, looked.folder.tree) as private:
                empty = empty_folders(private, resource.cut_out)
                rest = left_behind(private, trees, resource, looked, _applied_token(resource))
            return replace(joined(parts, rest, notes, empty), can_bring=bool(rest))

    def left_behind(self, resource: PlanResource) -> tuple[str, ...]:
        if not resource.cut_out and not submodules_of(resource):
            _refuse_lost_base(resource)
            with self._views.of_files(resource) as held:
                found = _plainly_left(held, resource)
            if found is not None:
                return found
        return self.diff(resource).left_behind

    def applied_diff(self, resource: PlanResource, applied_ref: str) -> ResourceDiff:
        from cleveragents.infrastructure.sandbox.git.apply.token import CheckoutToken
        from cleveragents.infrastructure.sandbox.git.diff import joined
        from cleveragents.infrastructure.sandbox.git.submodules.carry_out import diffs_of
        from cleveragents.infrastructure.sandbox.own_state import read_back

        git = _repository(resource)
        if git is None:
            raise SandboxError(
                f"the repository {resource.location} is not there any more",
                "put the folder back if it was moved",
            )
        token = read_back(resource, resource.intent, CheckoutToken)
        inside = diffs_of(resource, token.submodules)
        found = joined([_applied(git, resource, applied_ref), *inside], notes=token.notes)
        return replace(found, brought=token.ignored.told) if token.ignored else found

    def _discard(self, resource: PlanResource) -> None:
        """Remove the files and their repository as far as they are there."""
        throw_away(self._sandboxes, resource.sandbox_path)
        throw_away(self._sandboxes, folder_of(resource).path)
        throw_away(self._sandboxes, beside(resource.sandbox_path))
        throw_away(self._sandboxes, first_index(resource))


def _refuse_lost_base(resource: PlanResource) -> None:
    git = _repository(resource)
    if git is not None and value_of(git, resource.base) is None:
        commit = resource.base[:12]
        raise BaseLostError(resource.name, git.directory, commit, resource.sandbox_path)


def left_behind(
    private: Git,
    trees: "GitTrees",
    resource: PlanResource,
    looked: "Looked",
    brought: "IgnoredToken | None",
) -> tuple[str, ...]:
    """What is in the sandbox, whose tree the private index holds, and is not applied: ignored
    files, but for those that are wanted, and whole repositories."""
    from cleveragents.infrastructure.sandbox.git.diff import ignored_files
    from cleveragents.infrastructure.sandbox.git.trees import text_of

    copied = _copied(resource)
    ignored = _ignored_left(private, resource, brought)
    for one in looked.inside:
        top = f"{one.path}/"
        inner = [item.removeprefix(top) for item in copied if item.startswith(top)]
        with trees.index_of(one.git, one.tree) as index:
            found = ignored_files(index, inner)
        ignored += [text_of(os.fsencode(top)) + path for path in found]
    others = [text_of(path) for path in (*looked.folder.nested, *looked.folder.strayed)]
    return tuple(sorted({*ignored, *others}))


def _plainly_left(held: GitView, resource: PlanResource) -> tuple[str, ...] | None:
    """The same for a sandbox without other repositories, which need a closer look: None. Which
    files are ignored does not depend on what the others hold; so none of them is read."""
    from cleveragents.infrastructure.sandbox.git.pipes import refuse_pipes
    from cleveragents.infrastructure.sandbox.git.trees import GITLINK, repositories_in

    refuse_pipes(held.git.directory)
    with held.trees.index_of(held.git, resource.base) as private:
        staged = private.run("ls-files", "--stage", "-z").stdout.split(b"\0")
        if any(line.startswith(GITLINK) for line in staged) or repositories_in(private):
            return None
        return tuple(sorted(_ignored_left(private, resource, _applied_token(resource))))


def _ignored_left(
    private: Git, resource: PlanResource, brought: "IgnoredToken | None"
) -> list[str]:
    from cleveragents.infrastructure.sandbox.git.diff import ignored_files
    from cleveragents.infrastructure.sandbox.project_view.ignored_changes import without_untouched

    found = ignored_files(private, _copied(resource))
    left = [path for path in found if brought is None or not brought.takes(path)]
    return without_untouched(resource.sandbox_path, left)


def _copied(resource: PlanResource) -> tuple[str, ...]:
    return (*resource.include, *copied_folders(resource.sandbox_path))


def _applied_token(resource: PlanResource) -> "IgnoredToken | None":
    """What of ignored folders has been brought, if the plan is applied."""
    from cleveragents.infrastructure.sandbox.git.apply.token import CheckoutToken
    from cleveragents.infrastructure.sandbox.own_state import read_back

    if resource.intent is None:
        return None
    return read_back(resource, resource.intent, CheckoutToken).ignored


def _applied(git: Git, resource: PlanResource, applied_ref: str) -> ResourceDiff:
    from cleveragents.infrastructure.sandbox.git.diff import diff_of_trees

    if applied_ref.startswith("tree:"):
        old, _, new = applied_ref.removeprefix("tree:").partition("..")
        return diff_of_trees(git, old, new)
    if value_of(git, applied_pin(resource)) == applied_ref:
        return ResourceDiff()  # pinned as it was: there was nothing to apply
    return diff_of_trees(git, f"{applied_ref}^1", applied_ref)


def _repository(resource: PlanResource) -> Git | None:
    """The repository itself, for references; None if it is gone."""
    git_dir = details_of(resource).git_dir
    return Git(git_dir, {"GIT_DIR": git_dir}) if os.path.isdir(git_dir) else None


def _make_submodules(resource: PlanResource) -> None:
    """Of a sandbox that has just been made: at the commit that the base names, on no branch.
    Raises SandboxError."""
    for module in submodules_of(resource):
        _make_submodule(resource, module)


def _make_submodule(resource: PlanResource, module: Submodule) -> None:
    from cleveragents.infrastructure.files.durable_files import make_folder
    from cleveragents.infrastructure.sandbox.git.repository.own_repository import (
        active,
        check_out,
        furnish,
        put,
    )
    from cleveragents.infrastructure.sandbox.git.repository.ref_files import ProjectRefs, put_refs

    user = in_repository(resource.location, module)
    repository = user.directory
    if not os.path.isdir(repository):
        raise SandboxError(
            f"the submodule {module.path} of {resource.location} is not there any more",
            f"git -C {resource.location} submodule update --init --recursive",
        )
    make_folder(resource.sandbox_path, module.path)
    folder = borrowing_folder(resource, module)
    names = [inner.name for inner in inside(resource, module.path)]
    place = os.path.relpath(folder.sandbox, folder.path)
    settings = furnish(folder, user, repository, {"core.worktree": place, **active(names)})
    put(folder, "HEAD", module.commit.encode() + b"\n")
    theirs = ProjectRefs.read(user)
    put_refs(folder.path, theirs.refs, theirs.peeled, synced=False)
    folder.write_pointer(synced=False)
    check_out(submodule_git(resource, module), module.commit, repository, settings)
