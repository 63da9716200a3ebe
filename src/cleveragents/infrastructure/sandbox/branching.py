"""The sandboxes of child plans: each a branch or copy of its parent's, as that is now."""

import os
from collections.abc import Mapping
from pathlib import Path

from cleveragents.domain.action import ResourceType
from cleveragents.domain.errors import SandboxError
from cleveragents.domain.resource import PlanResource
from cleveragents.infrastructure.files.copy.btrfs import snapshot, snapshot_marks
from cleveragents.infrastructure.files.copy.copy_proof import CopyProof
from cleveragents.infrastructure.files.copy.parallel_copy import BranchCopy
from cleveragents.infrastructure.files.copy.tree_copy import copy_folder
from cleveragents.infrastructure.files.excludes import excludes
from cleveragents.infrastructure.sandbox.git.repository.own_repository import branch_repository
from cleveragents.infrastructure.sandbox.location import make_parent, remove_sandbox
from cleveragents.infrastructure.sandbox.sqlite.sandbox import DatabaseSnapshots, branch_consistent
from cleveragents.infrastructure.snapshots.gc_pause import gc_paused

Copied = Mapping[bytes, CopyProof]
"""By path, for what is known of; empty if the copy was made in a way that proves nothing."""


class Branches:
    """The caller has removed what an interrupted attempt left at the child's place.

    `databases` are the snapshots of databases."""

    def __init__(self, databases: DatabaseSnapshots) -> None:
        self._databases = databases

    def make(self, parent: PlanResource, child: PlanResource) -> Copied:
        if parent.type is ResourceType.GIT_CHECKOUT:
            make_parent(Path(child.sandbox_path))
            shared = snapshot(parent.sandbox_path, child.sandbox_path)
            branch_repository(parent, child)
            return _copy(parent.sandbox_path, child, frozenset({b".git"}), shared=shared)
        if parent.type is ResourceType.FS_DIRECTORY:
            make_parent(Path(child.sandbox_path))
            shared = snapshot(parent.sandbox_path, child.sandbox_path)
            return _copy(parent.sandbox_path, child, frozenset(), shared=shared)
        branch_consistent(parent, child, self._databases)
        return {}


def _copy(source: str, child: PlanResource, hidden: frozenset[bytes], *, shared: bool) -> Copied:
    """Everything, what snapshots leave out too: a child needs the same place to work in.

    `shared` says that the file system has made the copy already.
    """
    target = Path(child.sandbox_path)
    try:
        target.mkdir(mode=0o700, exist_ok=True)
        return _copy_fast(source, target, hidden, shared=shared)
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
