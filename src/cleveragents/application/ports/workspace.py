"""What most services need together: where plans work and what is kept of it; time and new names."""

from msgspec import Struct

from cleveragents.application.ports.runtime import Clock, IdSource, Sandboxes, SnapshotStore


class Workspace(Struct, frozen=True, kw_only=True):
    sandboxes: Sandboxes
    snapshots: SnapshotStore


class Runtime(Struct, frozen=True, kw_only=True):
    clock: Clock
    ids: IdSource
