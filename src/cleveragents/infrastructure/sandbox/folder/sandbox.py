"""The sandbox of a plain folder: a copy of its own, and what a plan changed in it.

Nothing in the real folder is written here; nested repositories are files like any other.
"""

import os
from contextlib import suppress
from pathlib import Path

from msgspec.structs import replace

from cleveragents.domain.action import ResourceSpec
from cleveragents.domain.changes import ResourceDiff
from cleveragents.domain.errors import SandboxError, SandboxMissingError
from cleveragents.domain.ids import PlanId
from cleveragents.domain.resource import PlanResource, Rebuilding, ResourceInspection
from cleveragents.infrastructure.files.copy.btrfs import make_branchable
from cleveragents.infrastructure.files.copy.tree_copy import copy_folder
from cleveragents.infrastructure.files.excludes import excludes
from cleveragents.infrastructure.sandbox.folder.apply.journal import ApplyJournal
from cleveragents.infrastructure.sandbox.folder.apply.prepare import (
    FolderToken,
    base_of,
    left_behind,
    without_holders,
)
from cleveragents.infrastructure.sandbox.folder.apply.staging import PREFIX
from cleveragents.infrastructure.sandbox.folder.diff import contents_of, diff_of
from cleveragents.infrastructure.sandbox.folder.inspect import checked_folder, inspect_folder
from cleveragents.infrastructure.sandbox.location import (
    NothingBeside,
    is_there,
    make_parent,
    remove_sandbox,
    throw_away,
)
from cleveragents.infrastructure.sandbox.own_state import read_back
from cleveragents.infrastructure.sandbox.strayed import strayed_notes, without_strayed
from cleveragents.infrastructure.snapshots.tree.engine import TreeEngine
from cleveragents.infrastructure.snapshots.tree.session import open_sandbox


class FsDirectories(NothingBeside):
    """The data directory is the folder that `sandboxes_dir` is in."""

    def __init__(self, sandboxes_dir: str, snapshots: TreeEngine) -> None:
        self._sandboxes = Path(sandboxes_dir)
        self._snapshots = snapshots

    def inspect(
        self,
        spec: ResourceSpec,
        plan_id: PlanId | None,  # noqa: ARG002 - nothing is pinned
        *,
        include_uncommitted: bool,  # noqa: ARG002 - everything in a folder is taken along
    ) -> ResourceInspection:
        return inspect_folder(spec, self._sandboxes.parent)

    def create(self, resource: PlanResource) -> None:
        source = checked_folder(resource.location, self._sandboxes.parent)
        path = Path(resource.sandbox_path)
        remove_sandbox(self._sandboxes, path)
        try:
            make_parent(path)
            make_branchable(str(path), 0o700)
            copy_folder(str(source), str(path), excludes(resource.exclude, _stages(source)))
        except OSError as error:
            remove_sandbox(self._sandboxes, path)
            raise SandboxError(
                f"the sandbox of `{resource.name}` cannot be made: {error}", f"ls -ld {source}"
            ) from error
        except BaseException:
            remove_sandbox(self._sandboxes, path)
            raise

    def files_there(self, resource: PlanResource) -> int:  # noqa: ARG002 - only a walk would tell
        return 0

    def check(self, resource: PlanResource) -> None:
        """Raises SandboxMissingError."""
        if not is_there(self._sandboxes, resource):
            raise SandboxMissingError(resource.name, resource.sandbox_path, resource.store_id)

    def make_room(self, resource: PlanResource, how: Rebuilding) -> None:  # noqa: ARG002 - files are all it has
        path = Path(resource.sandbox_path)
        remove_sandbox(self._sandboxes, path)
        make_parent(path)
        make_branchable(str(path), 0o700)

    def remove_copy(self, resource: PlanResource) -> None:
        self.remove(resource)  # what is needed more is in the snapshots

    def remove(self, resource: PlanResource) -> None:
        path = Path(resource.sandbox_path)
        throw_away(self._sandboxes, path)
        ApplyJournal(resource, "").clear()
        with suppress(OSError):  # another sandbox of the plan may still be there
            path.parent.rmdir()

    def left_behind(self, resource: PlanResource) -> tuple[str, ...]:
        return self.diff(resource).left_behind

    def diff(self, resource: PlanResource) -> ResourceDiff:
        with self._snapshots.reading(resource) as reader, open_sandbox(resource) as anchor:
            found = without_holders(resource, reader.since(base_of(resource)))
            differences, strayed = without_strayed(resource, found)
            rest = (*left_behind(resource), *strayed)
            diff = diff_of(differences, reader.content, contents_of(anchor), rest)
            return replace(diff, notes=tuple(strayed_notes(resource, strayed)))

    def applied_diff(self, resource: PlanResource, applied_ref: str) -> ResourceDiff:  # noqa: ARG002 - what was applied is kept with the resource
        return read_back(resource, resource.intent, FolderToken).diff


def _stages(project: Path) -> frozenset[bytes]:
    """What an interrupted apply of another plan has left for its repetition."""
    return frozenset(os.fsencode(path.name) for path in project.glob(PREFIX + "*"))
