"""What the care of the whole snapshot store needs, as Protocols."""

from collections.abc import Callable, Collection, Sequence
from typing import Protocol

from msgspec import Struct

from cleveragents.domain.ids import PlanId


class StoreShare(Struct, frozen=True, kw_only=True):
    """What one plan takes: on disk, as content before dedup and compression, and after."""

    plan_id: str
    disk_bytes: int
    content_bytes: int
    stored_bytes: int
    snapshots: int


class StoreFiles(Protocol):
    """The snapshot files of all plans, for the care of the whole."""

    @property
    def location(self) -> str: ...
    def shares(self) -> Sequence[StoreShare]:
        """One per plan that has files, plans that the database does not know included."""
        ...

    def problems(self, plan_id: PlanId) -> Sequence[str]:
        """What is wrong with the plan's files as such; empty if nothing is."""
        ...

    def leftovers(self) -> Sequence[str]:
        """The paths that `sweep` would remove."""
        ...

    def sweep(self) -> int:
        """Remove temporary files nobody can need."""
        ...

    def strangers(self, known: Callable[[], Collection[str]]) -> Sequence[str]:
        """The paths of snapshots of plans that are not `known`, which is asked once, after the
        files were listed."""
        ...
