"""The part of the wiring that keeps things: database, sandboxes, snapshots, locks.

Each property imports what it builds, as in the container, of which this is a part (ADR 0004).
"""

from functools import cached_property
from typing import TYPE_CHECKING

from cleveragents.container.tools import SQLITE, ToolWiring

if TYPE_CHECKING:
    from cleveragents.infrastructure.clock import UlidSource
    from cleveragents.infrastructure.database.engine import Database
    from cleveragents.infrastructure.database.fence import HeldLeases
    from cleveragents.infrastructure.database.unit_of_work import SqlUnitOfWorkFactory
    from cleveragents.infrastructure.locks.plan_locks import FilePlanLocks
    from cleveragents.infrastructure.sandbox.checkpoint_manager import CheckpointManager
    from cleveragents.infrastructure.sandbox.git.repository.pins import Pins
    from cleveragents.infrastructure.sandbox.registry import SandboxRegistry


class StoreWiring(ToolWiring):
    @cached_property
    def _unit_of_work(self) -> "SqlUnitOfWorkFactory":
        from cleveragents.infrastructure.database.unit_of_work import SqlUnitOfWorkFactory

        return SqlUnitOfWorkFactory(self._database, self._leases)

    @cached_property
    def _database(self) -> "Database":
        from cleveragents.infrastructure.database.engine import Database

        url = self._settings.database_url
        path = url.removeprefix(SQLITE) if url else self._in_data_dir("cleveragents.db")
        return Database(path, self.data_folder.prepare)

    @cached_property
    def _sandboxes(self) -> "SandboxRegistry":
        from cleveragents.infrastructure.sandbox.registry import SandboxRegistry

        return SandboxRegistry(
            self._in_data_dir("sandboxes"),
            self._in_data_dir("scratch"),
            self._snapshots.folders,
            self._snapshots.databases,
            self._databases,
            (self._pins, self._git_views),
        )

    @cached_property
    def _pins(self) -> "Pins":
        from cleveragents.infrastructure.database.installation import SqlInstallation
        from cleveragents.infrastructure.sandbox.git.repository.pins import Pins

        return Pins(SqlInstallation(self._database).name)

    @cached_property
    def _snapshots(self) -> "CheckpointManager":
        from cleveragents.infrastructure.sandbox.checkpoint_manager import CheckpointManager

        return CheckpointManager(
            self._in_data_dir("snapshots"),
            self._in_data_dir("scratch"),
            self._databases,
            self._git_views,
            self._settings.store_max_size,
        )

    @cached_property
    def _locks(self) -> "FilePlanLocks":
        from cleveragents.infrastructure.locks.plan_locks import FilePlanLocks

        return FilePlanLocks(self._in_data_dir("locks"), self._clock, self._leases)

    @cached_property
    def _leases(self) -> "HeldLeases":
        from cleveragents.infrastructure.database.fence import HeldLeases

        return HeldLeases()

    @cached_property
    def _ids(self) -> "UlidSource":
        from cleveragents.infrastructure.clock import UlidSource

        return UlidSource()
