"""The part of the wiring that keeps things: database, sandboxes, snapshots, locks.

Each property imports what it builds, as in the container, of which this is a part (ADR 0004).
"""

from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING

from cleveragents.container.tools import SQLITE, ToolWiring

if TYPE_CHECKING:
    pass


class StoreWiring(ToolWiring):
    def close(self) -> None:
        super().close()
        if "_adapters" in self.__dict__:
            # Now, and not when the process ends: the kernel takes its time to let go of what was
            # watched, in which the answer is written.
            self._adapters.bench.stop_watching()

    def close_files(self) -> None:
        """At the end of the process: SQLite takes in its journals when their last user is gone."""
        if "_database" in self.__dict__:
            self._database.close()
        if "_adapters" in self.__dict__:
            self._adapters.bench.close()
        if "_database" in self.__dict__:
            self._empty_trash()

    def _empty_trash(self) -> None:
        """What this command threw away, or what one that was killed has left. That it stays a
        while longer is no reason to fail."""
        from cleveragents.infrastructure.files.installed.trash import Trash

        with suppress(OSError):
            Trash(self._settings.data_dir).empty()

    @cached_property
    def _unit_of_work(self):
        from cleveragents.infrastructure.database.unit_of_work import SqlUnitOfWorkFactory

        return SqlUnitOfWorkFactory(self._database, self._leases)

    @cached_property
    def _database(self):
        from cleveragents.infrastructure.database.engine import Database

        url = self._settings.database_url
        path = url.removeprefix(SQLITE) if url else self._in_data_dir("cleveragents.db")
        return Database(path, self.data_folder.prepare)

    @cached_property
    def _adapters(self):
        from cleveragents.domain.secrets import Secrets
        from cleveragents.infrastructure.database.installation import SqlInstallation
        from cleveragents.infrastructure.sandbox.registry import ResourceAdapters
        from cleveragents.infrastructure.sandbox.workbench import Workbench

        bench = Workbench(
            self._settings.data_dir,
            SqlInstallation(self._database).name,
            lambda: self._own_work,
            lambda: self._databases,
            self._events,
            self._settings.store_max_size,
            lambda: self._layers,
            Secrets(self._settings.store_secrets),
        )
        return ResourceAdapters(bench)

    @cached_property
    def _sandboxes(self):
        from cleveragents.infrastructure.sandbox.sandboxes import SandboxesByType

        return SandboxesByType(self._adapters)

    @cached_property
    def _snapshots(self):
        from cleveragents.infrastructure.sandbox.checkpoint_manager import CheckpointManager

        return CheckpointManager(self._adapters)

    @cached_property
    def _workspace(self):
        from cleveragents.application.ports.runtime import Workspace

        return Workspace(sandboxes=self._sandboxes, snapshots=self._snapshots)

    @cached_property
    def _runtime(self):
        from cleveragents.application.ports.runtime import Runtime

        return Runtime(
            unit_of_work=self._unit_of_work,
            locks=self._locks,
            clock=self._clock,
            ids=self._ids,
            events=self._events,
        )

    @cached_property
    def _locks(self):
        from cleveragents.infrastructure.locks.plan_locks import FilePlanLocks

        return FilePlanLocks(self._in_data_dir("locks"), self._clock, self._leases)

    @cached_property
    def _leases(self):
        from cleveragents.infrastructure.database.fence import HeldLeases

        return HeldLeases()

    @cached_property
    def _ids(self):
        from cleveragents.infrastructure.clock import UlidSource

        return UlidSource()
