"""What the care of all that is stored, and of what plans stand on, needs to know and may do."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Protocol

from msgspec import Struct

from cleveragents.domain.doctor import Leftover
from cleveragents.domain.holdings import FolderContents
from cleveragents.domain.ids import PlanId
from cleveragents.domain.resource import PlanResource


class DatabaseHealth(Protocol):
    def problems(self) -> Sequence[str]:
        """What the database finds wrong with itself; empty if nothing is."""
        ...


class Leftovers(Protocol):
    def found(self, resources: Collection[PlanResource]) -> Sequence[Leftover]:
        """Everything of ours in the data folder and in the repositories of these resources; how
        precious each is has to be judged, which takes longer."""
        ...

    def judged(self, leftovers: Sequence[Leftover]) -> Sequence[Leftover]:
        """The same, each with whether what it holds exists nowhere else."""
        ...

    def remove(self, leftover: Leftover) -> None: ...


class MovedProjects(Protocol):
    def is_at_home(self, resource: PlanResource) -> bool:
        """Whether the project of this resource is where it was, as far as a glance shows."""
        ...

    def is_grounded(self, resource: PlanResource) -> bool:
        """Whether what its sandbox and snapshots stand on is there; not all types need any."""
        ...

    def hold(self, resource: PlanResource) -> None:
        """Keep what they stand on from being removed. Raises BaseLostError if it was already."""
        ...

    def refuse_lost(self, resource: PlanResource) -> None:
        """Raise BaseLostError if it was removed; nothing is written."""
        ...

    def find_for_certain(self, resource: PlanResource) -> str | None:
        """Where it was moved to; a copy is not that."""
        ...

    def find(self, resource: PlanResource, told: Mapping[str, str]) -> str | None:
        """Where it is now, if that can be found; `told` are folders, old and new."""
        ...

    def relocate(self, resource: PlanResource, place: str) -> PlanResource:
        """The same resource with its project there. Raises SandboxError if that is another one."""
        ...


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

    def snapshot_bytes(self) -> Mapping[str, int]:
        """What the snapshots of each plan take on the disk, by its id."""
        ...

    def sandbox_bytes(self) -> Mapping[str, int]:
        """The same of sandboxes, children apart from their parents. What the disk shares with the
        project is counted here too, so that less may come back."""
        ...

    def database_bytes(self) -> int: ...
    def trash_bytes(self) -> int:
        """What was thrown away and is not deleted yet."""
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


class PlanRecords(Protocol):
    def remove(self, plan_id: PlanId) -> None:
        """All rows of the plan and of its children, at once; the caller holds the plan's lock."""
        ...


class PlanTraces(Protocol):
    """What plans leave in the user's own repositories: names of ours for commits."""

    def remove(self, resource: PlanResource) -> None:
        """All of this resource's plan, that of what was applied without a commit included."""
        ...

    def unreachable(self, resource: PlanResource) -> Sequence[str]:
        """The repositories that are not where they were, so that nothing can be removed there."""
        ...

    def others(self, resources: Collection[PlanResource]) -> Mapping[str, int]:
        """By repository, how many names are there that another data folder has made."""
        ...


class OwnFiles(Protocol):
    """All that this installation keeps on the disk."""

    def contents(self) -> FolderContents: ...
    def remove(self, *, keep_settings: bool) -> Mapping[str, str]:
        """The records last, so that it can be repeated; gives back what could not be removed, with
        the reason."""
        ...
