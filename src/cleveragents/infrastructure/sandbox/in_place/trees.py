"""The user's own tree as a sandbox: nothing is made or removed; a note says whose it is."""

import os
from collections.abc import Callable, Iterator
from shlex import quote

from msgspec.structs import replace

from cleveragents.domain.action import ResourceSpec
from cleveragents.domain.applied import ApplySide
from cleveragents.domain.apply import ApplyOptions, PreparedApply
from cleveragents.domain.changes import ResourceDiff
from cleveragents.domain.errors import (
    ApplyRefusedError,
    InPlaceRefusedError,
    ProjectMissingError,
    SandboxError,
)
from cleveragents.domain.ids import PlanId
from cleveragents.domain.in_place import DONE
from cleveragents.domain.resource import OwnState, PlanResource, Rebuilding, ResourceInspection
from cleveragents.infrastructure.sandbox.folder.diff import diff_since
from cleveragents.infrastructure.sandbox.git.repository.pins import Pins
from cleveragents.infrastructure.sandbox.in_place.engine import InPlaceEngine
from cleveragents.infrastructure.sandbox.in_place.git_locking import refuse_busy
from cleveragents.infrastructure.sandbox.in_place.git_there import (
    UsersRepositories,
    git_folder,
    is_there,
)
from cleveragents.infrastructure.sandbox.in_place.inspect import inspect_in_place
from cleveragents.infrastructure.sandbox.in_place.marker import (
    Occupant,
    in_the_way,
    move_in,
    move_out,
    note_of,
    occupant_of,
)


class InPlaceTrees:
    """The contract is that of `SandboxMaker`. `installation` is the name of this one."""

    def __init__(
        self,
        data_dir: str,
        installation: Callable[[], str],
        pins: Pins,
        snapshots: InPlaceEngine,
        repositories: UsersRepositories,
    ) -> None:
        self._data_dir = data_dir
        self._installation = installation
        self._pins = pins
        self._snapshots = snapshots
        self._repositories = repositories

    def inspect(
        self,
        spec: ResourceSpec,
        plan_id: PlanId | None,  # noqa: ARG002 - nothing is pinned yet
        *,
        include_uncommitted: bool,  # noqa: ARG002 - everything is there
    ) -> ResourceInspection:
        return inspect_in_place(spec, self._data_dir, self._installation)

    def create(self, resource: PlanResource) -> None:
        """May be repeated: who was killed before it was on record is whom the note names."""
        occupant = Occupant(
            installation=self._installation(),
            data_dir=os.path.abspath(self._data_dir),
            plan_id=resource.plan_id,
        )
        try:
            move_in(resource.location, occupant)
        except OSError as error:
            raise SandboxError(
                f"{resource.location} cannot be worked on in place: {error}",
                f"ls -ld {resource.location}",
            ) from error

    def files_there(self, resource: PlanResource) -> int:  # noqa: ARG002 - nothing is copied
        return 0

    def check(self, resource: PlanResource) -> None:
        """Raises ProjectMissingError, InPlaceRefusedError or RepositoryBusyError."""
        if os.path.islink(resource.location) or not os.path.isdir(resource.location):
            raise ProjectMissingError(resource.name, resource.location)
        self._refuse_taken(resource)
        if (path := in_the_way(resource.location)) is not None:
            raise InPlaceRefusedError(
                f"{path} is in the way: agents lays files ready in a folder of that name",
                f"look at it, and remove it: rm {quote(path)}",
            )
        if resource.kind.has_repository and is_there(git_folder(resource.location)):
            refuse_busy(resource)

    def _refuse_taken(self, resource: PlanResource) -> None:
        found = occupant_of(resource.location)
        if found is None:
            self.create(resource)  # whoever removed the note: others have to find it
        elif found.plan_id != resource.plan_id:
            raise InPlaceRefusedError(
                f"{resource.location} is worked on by another timeline by now: plan"
                f" {found.plan_id}, whose data is in {found.data_dir}",
                "go on with that one, and close this one with `agents discard`; if there is no such"
                f" plan: rm {quote(note_of(resource.location))}",
            )

    def make_room(self, resource: PlanResource, how: Rebuilding) -> None:  # noqa: ARG002 - never
        raise InPlaceRefusedError(
            f"{resource.location} is your own tree, and is not made again",
            "bring single files back with `agents plan rollback --only PATH`",
        )

    def remove(self, resource: PlanResource) -> None:
        """The timeline is over; the tree stays as it is."""
        self.release(resource)

    def remove_copy(self, resource: PlanResource) -> None:
        self.release(resource)  # there is none

    def secure(self, resource: PlanResource) -> bool:  # noqa: ARG002 - the same for every one
        return True

    def has_repository(self, resource: PlanResource) -> bool:  # noqa: ARG002 - nothing is mended
        return True

    def release(self, resource: PlanResource) -> None:
        if not os.path.isdir(resource.location):
            return
        move_out(resource.location, resource.plan_id)
        if resource.kind.has_repository and is_there(git_folder(resource.location)):
            with self._repositories.opened(resource) as there:
                self._pins.unpin(there.git, resource)

    def diff(self, resource: PlanResource) -> ResourceDiff:
        """What has changed since the timeline began, whoever did it."""
        if resource.base_snapshot is None:
            return ResourceDiff()
        return diff_since(self._snapshots, resource, resource.base_snapshot)

    def left_behind(self, resource: PlanResource) -> tuple[str, ...]:  # noqa: ARG002 - nothing is
        return ()

    def applied_diff(self, resource: PlanResource, applied_ref: str) -> ResourceDiff:  # noqa: ARG002 - nothing is merged
        return ResourceDiff()


class InPlaceDone:
    """Apply in place: what is there is the result, and all there is to do is to say so."""

    def prepare_apply(self, resource: PlanResource, options: ApplyOptions) -> PreparedApply:
        if options.branch is not None:
            raise InPlaceRefusedError(
                "in place nothing is merged, so that there is no branch to make",
                "close the timeline with `agents apply`, and make the branch with git",
            )
        return PreparedApply(
            resource_id=resource.resource_id, token={DONE: True}, diff=ResourceDiff(), target=DONE
        )

    def carry_out(self, resource: PlanResource, prepared: PreparedApply) -> str:  # noqa: ARG002 - nothing to do
        return DONE

    def revert(self, resource: PlanResource, prepared: PreparedApply) -> tuple[str, ...]:  # noqa: ARG002 - nothing was done
        return ()

    def finish(self, resource: PlanResource, prepared: PreparedApply) -> None:
        """Nothing was kept."""

    def way_of(self, resource: PlanResource, prepared: PreparedApply) -> None:
        """Nothing was brought, so that there is nothing to take back."""

    def settle(self, resource: PlanResource, prepared: PreparedApply) -> None:
        """As `finish`."""

    def kept_bytes(self, resource: PlanResource) -> int:  # noqa: ARG002 - nothing was kept
        return 0

    def withdraw(self, resource: PlanResource, prepared: PreparedApply) -> None:
        """Nothing was prepared."""

    def prepare_move(
        self,
        resource: PlanResource,
        way: OwnState,  # noqa: ARG002 - there is none
        side: ApplySide,  # noqa: ARG002
    ) -> PreparedApply:
        raise ApplyRefusedError(
            f"the timeline of {resource.location} was closed, and nothing was applied by it",
            "use git to go further back",
        )


class InPlaceLocation:
    """Where the tree is: its note says whose it is, wherever it was moved to."""

    def is_grounded(self, resource: PlanResource) -> bool:
        return os.path.isdir(resource.location)

    def hold(self, resource: PlanResource) -> None:
        """Each capture keeps what it needs."""

    def refuse_lost(self, resource: PlanResource) -> None:
        """Contents are ours; what git has lost is told by a way back that needs it."""

    def is_at(self, resource: PlanResource, place: str) -> bool:
        found = occupant_of(place) if os.path.isdir(place) else None
        return found is not None and found.plan_id == resource.plan_id

    def is_surely_at(self, resource: PlanResource, place: str) -> bool:
        return not os.path.lexists(resource.location) and self.is_at(resource, place)

    def near(self, resource: PlanResource, cwd: str) -> Iterator[str]:
        folder, below = cwd, ""
        while folder != below:
            yield folder
            folder, below = os.path.dirname(folder), folder
        parent = os.path.dirname(resource.location)
        if os.path.isdir(parent):
            yield from (os.path.join(parent, name) for name in sorted(os.listdir(parent)))

    def moved(self, resource: PlanResource, place: str) -> PlanResource:
        details = dict(resource.details)
        if resource.kind.has_repository:
            details = {**details, "git_dir": git_folder(place)}
        return replace(resource, location=place, sandbox_path=place, details=details)

    def written_places(self, resource: PlanResource) -> Iterator[str]:
        yield resource.location
