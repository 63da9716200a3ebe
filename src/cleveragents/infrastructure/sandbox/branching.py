"""The sandboxes of child plans that are folders: each a copy of its parent's, as that is now."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path

from msgspec import Struct

from cleveragents.domain.checkpoint import Snapshot
from cleveragents.domain.errors import SandboxError
from cleveragents.domain.resource import PlanResource
from cleveragents.infrastructure.files.copy.btrfs import snapshot, snapshot_marks
from cleveragents.infrastructure.files.copy.copy_proof import CopyProof
from cleveragents.infrastructure.files.copy.parallel_copy import BranchCopy
from cleveragents.infrastructure.files.copy.tree_copy import copy_folder
from cleveragents.infrastructure.files.excludes import excludes
from cleveragents.infrastructure.sandbox.location import make_parent, remove_sandbox
from cleveragents.infrastructure.snapshots.gc_pause import gc_paused
from cleveragents.infrastructure.snapshots.tree.engine import TreeEngine

Copied = Mapping[bytes, CopyProof]
"""By path, for what is known of; empty if the copy was made in a way that proves nothing."""


def _nothing(parent: PlanResource, child: PlanResource) -> None:
    """What belongs to a plain folder beside its files."""


class TreeBranches(Struct, frozen=True):
    """`hidden` are names at the top that are not copied: `beside` makes what is to be there."""

    _snapshots: TreeEngine
    _hidden: frozenset[bytes] = frozenset()
    _beside: Callable[[PlanResource, PlanResource], None] = _nothing

    def branch(self, parent: PlanResource, child: PlanResource) -> Snapshot:
        return self._snapshots.inherit_snapshot(parent, child, self.copy(parent, child))

    def copy(self, parent: PlanResource, child: PlanResource) -> Copied:
        """Everything, what snapshots leave out too: a child needs the same place to work in."""
        source, target = parent.sandbox_path, Path(child.sandbox_path)
        make_parent(target)
        shared = snapshot(source, child.sandbox_path)  # by the file system, which had no work
        self._beside(parent, child)
        try:
            target.mkdir(mode=0o700, exist_ok=True)
            return _copy_fast(source, target, self._hidden, shared=shared)
        except OSError as error:
            raise SandboxError(
                f"the sandbox of `{child.name}` cannot be copied: {error}", f"ls -ld {source}"
            ) from error


def _copy_fast(source: str, target: Path, hidden: frozenset[bytes], *, shared: bool) -> Copied:
    one, two = os.fsencode(source), os.fsencode(target)
    try:
        with gc_paused():
            if shared:
                return snapshot_marks(one, two, hidden)
            return BranchCopy(one, two, hidden).run()
    except OSError:
        # Very deep, just changing, not ours to read: the careful copy manages, or says why not.
        for name in os.listdir(target):
            if os.fsencode(name) not in hidden:
                remove_sandbox(target, target / name)
        copy_folder(source, str(target), excludes((), hidden), sandbox=True)
        return {}
