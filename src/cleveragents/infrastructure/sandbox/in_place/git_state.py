"""What belongs to a snapshot of the user's own tree beside its files: HEAD, index, references."""

from collections.abc import Mapping

from cleveragents.domain.errors import RestoreFailedError
from cleveragents.domain.resource import PlanResource
from cleveragents.infrastructure.sandbox.in_place.git_keeping import KeptObjects
from cleveragents.infrastructure.sandbox.in_place.git_reading import (
    git_folder,
    is_there,
    marks_of,
    notable,
    read_repository,
)
from cleveragents.infrastructure.sandbox.in_place.marker import MARKER, STAGE
from cleveragents.infrastructure.snapshots.store.content_store import Blobs, NoBlobs
from cleveragents.infrastructure.snapshots.tree.extra_state import Before, ExtraRecord, StoredSide

NOTABLE = "settings and hooks"
_OURS = frozenset({MARKER.encode(), STAGE.encode()})


class PlaceState:
    """Of a folder there is nothing but its files, and names of ours at its top."""

    blobs: Blobs = NoBlobs()

    def base(self) -> Mapping[bytes, str]:
        return {}

    def hidden(self) -> frozenset[bytes]:
        return _OURS

    def read(self, before: Before | None) -> ExtraRecord | None:
        return ExtraRecord() if before is None else None

    def copied(self, of: StoredSide) -> ExtraRecord | None:  # noqa: ARG002 - nothing is copied
        return None

    def stands(self, target: StoredSide, before: Before) -> bool:  # noqa: ARG002 - the port's names
        return True

    def prepare(self, target: StoredSide) -> None:
        """Nothing to do."""

    def write(self, target: StoredSide) -> None:
        """Nothing to do."""


class CheckoutState(PlaceState):
    """All contents are stored by us: a lost `.git` must not take files along (ADR 0102)."""

    def __init__(self, resource: PlanResource, kept: KeptObjects) -> None:
        self._resource = resource
        self._kept = kept

    def hidden(self) -> frozenset[bytes]:
        return _OURS | {b".git"}

    def read(self, before: Before | None) -> ExtraRecord | None:
        location = self._resource.location
        gitdir = git_folder(location)
        marks = marks_of(gitdir) if is_there(gitdir) else ""
        if before and marks and marks == before.fingerprint:
            return None
        found = read_repository(location)
        identity = found.state.identity
        if before is not None and identity == before.stored.identity:
            # Its bytes may be others, as those of an index are that was only looked at.
            return ExtraRecord(
                identity=identity,
                sandbox_ref=found.state.commit,
                fingerprint=marks,
                inherited=before.stored.hashes,
            )
        contents = dict(found.files)
        if not found.state.is_gone:
            contents |= self._kept.keep(self._resource, found)
            contents[NOTABLE] = notable(gitdir).encode()
        return ExtraRecord(
            identity=identity,
            sandbox_ref=found.state.commit,
            fingerprint=marks,
            contents=contents,
        )

    def stands(self, target: StoredSide, before: Before) -> bool:
        return target.identity == before.stored.identity

    def write(self, target: StoredSide) -> None:  # noqa: ARG002 - the port's name
        """Only with what is to be spared: `git_restoring`."""
        raise RestoreFailedError(self._resource.name, "its repository is the user's own")
