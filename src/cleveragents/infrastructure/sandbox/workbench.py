"""What adapters of resources are made with: folders of the store, and what several types share."""

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING

from cleveragents.domain.events import Working
from cleveragents.domain.secrets import Secrets

if TYPE_CHECKING:
    from cleveragents.application.ports.runtime import EventSink
    from cleveragents.infrastructure.processes.own_work import OwnWork
    from cleveragents.infrastructure.sandbox.git.inside import GitInside
    from cleveragents.infrastructure.sandbox.project_view.layers import SandboxLayers
    from cleveragents.infrastructure.snapshots.changes.watcher import Watcher
    from cleveragents.infrastructure.snapshots.store.connections import Connections
    from cleveragents.infrastructure.sqlite.worker import DatabaseWorkers


class Workbench:
    """`installation` is the name of this one, by which our names in repositories are told from
    those of others; `own_work` runs programs of ours inside; `databases` ask SQLite there; `events`
    hear what takes long; `secrets` is what holds where a resource says nothing of them."""

    def __init__(
        self,
        data_dir: str,
        installation: Callable[[], str],
        own_work: "Callable[[], OwnWork]",
        databases: "Callable[[], DatabaseWorkers]",
        events: "EventSink",
        limit_bytes: int = 0,
        layers: "Callable[[], SandboxLayers] | None" = None,
        secrets: Secrets = Secrets.CAPTURE,
    ) -> None:
        self.data_dir = data_dir
        self.sandboxes = f"{data_dir}/sandboxes"
        self.snapshots = f"{data_dir}/snapshots"
        self.scratch = f"{data_dir}/scratch"
        self.installation = installation
        self._own_work = own_work
        self._databases = databases
        self._limit_bytes = limit_bytes
        self._events = events
        self._watching = True
        self._layers = layers
        self.secrets = secrets

    def layers(self) -> "SandboxLayers":
        """Without anybody who can mount them, there are none."""
        from cleveragents.infrastructure.sandbox.project_view.layers import SandboxLayers

        if self._layers is not None:
            return self._layers()
        return SandboxLayers(self.sandboxes, self.scratch, lambda _asked, _lower: None)

    def working(self, what: str) -> None:
        """Tell whoever waits what is begun, which may take long."""
        self._events.emit(Working(what=what))

    @property
    def databases(self) -> "DatabaseWorkers":
        return self._databases()

    @cached_property
    def connections(self) -> "Connections":
        """To the snapshot files of plans, in which all types keep theirs."""
        from cleveragents.infrastructure.snapshots.store.connections import Connections

        return Connections(self._limit_bytes)

    def close(self) -> None:
        """What is kept open; it is opened again if there is another use."""
        if "connections" in self.__dict__:
            self.connections.close()
        if "tracker" in self.__dict__:
            self.tracker.close()

    @cached_property
    def tracker(self) -> "Watcher":
        from cleveragents.infrastructure.snapshots.changes.watcher import Watcher

        return Watcher(self.scratch, watching=self._watching)

    def look_once(self) -> None:
        """To be said before the first look: there will be one, and watching is for the second."""
        self._watching = False

    def stop_watching(self) -> None:
        """Until somebody looks at a sandbox again."""
        if "tracker" in self.__dict__:
            self.tracker.stop()

    @cached_property
    def git_inside(self) -> "GitInside":
        from cleveragents.infrastructure.sandbox.git.inside import GitInside

        return GitInside(self._own_work(), self.scratch)
