"""What a sandbox holds now against one of its snapshots, as people see it."""

import os

from msgspec import Struct

from cleveragents.domain.action import ResourceType
from cleveragents.domain.changes import ResourceDiff
from cleveragents.domain.resource import PlanResource
from cleveragents.infrastructure.sandbox.checkpoint_manager import CheckpointManager
from cleveragents.infrastructure.sandbox.folder.diff import diff_of
from cleveragents.infrastructure.sandbox.folder.sandbox import contents_of
from cleveragents.infrastructure.sandbox.sqlite.diff import diff_of_databases
from cleveragents.infrastructure.sandbox.sqlite.read import private_folder
from cleveragents.infrastructure.snapshots.tree.session import open_sandbox
from cleveragents.infrastructure.sqlite.worker import DatabaseWorkers, place_of


class SnapshotComparison(Struct, frozen=True):
    """Implements the port SnapshotDiffs."""

    snapshots: CheckpointManager
    scratch_dir: str
    workers: DatabaseWorkers

    def since(self, resource: PlanResource, ref: str) -> ResourceDiff:
        if resource.type is ResourceType.SQLITE:
            return self._of_database(resource, ref)
        is_checkout = resource.type is ResourceType.GIT_CHECKOUT
        trees = self.snapshots.checkouts if is_checkout else self.snapshots.folders
        with trees.reading(resource) as reader, open_sandbox(resource) as anchor:
            return diff_of(reader.since(ref), reader.content, contents_of(anchor))

    def _of_database(self, resource: PlanResource, ref: str) -> ResourceDiff:
        with private_folder(self.scratch_dir) as folder:
            draft = os.path.join(folder, "before.db")
            with self.snapshots.databases.copy_of(resource, ref, draft) as before:
                return diff_of_databases(self.workers, before, place_of(resource))
