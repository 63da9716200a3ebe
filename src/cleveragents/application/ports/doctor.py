"""What the doctor needs to know of the world outside, and may do to it."""

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from cleveragents.application.ports.runtime import PlanLocks
from cleveragents.domain.doctor import Leftover
from cleveragents.domain.ids import PlanId
from cleveragents.domain.resource import PlanResource


class DatabaseHealth(Protocol):
    def problems(self) -> Sequence[str]:
        """What the database finds wrong with itself; empty if nothing is."""
        ...


class WatchedLocks(PlanLocks, Protocol):
    """Those that working on a plan takes, and what has become of them."""

    def dead(self) -> Mapping[PlanId, str]:
        """The locks that somebody left behind by dying, with who that was."""
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
