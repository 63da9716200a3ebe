"""What belongs to a snapshot of the user's own tree beside its files: HEAD, index, references."""

import os
from collections.abc import Collection, Mapping
from functools import cached_property, partial

from cleveragents.domain.errors import RestoreFailedError
from cleveragents.domain.resource import PlanResource
from cleveragents.infrastructure.sandbox.in_place.git_keeping import KeptObjects
from cleveragents.infrastructure.sandbox.in_place.git_reading import (
    marks_of,
    notable,
    read_repository,
)
from cleveragents.infrastructure.sandbox.in_place.git_there import (
    UsersRepositories,
    git_folder,
    is_there,
)
from cleveragents.infrastructure.sandbox.in_place.known_by_index import KnownByIndex
from cleveragents.infrastructure.sandbox.in_place.linked_packs import LinkedPacks
from cleveragents.infrastructure.sandbox.in_place.marker import MARKER, STAGE
from cleveragents.infrastructure.snapshots.beside import Beside
from cleveragents.infrastructure.snapshots.store.content_store import Blobs, NoBlobs
from cleveragents.infrastructure.snapshots.tree.extra_state import Before, ExtraRecord, StoredSide
from cleveragents.infrastructure.snapshots.tree.first_look import Proof

NOTABLE = "settings and hooks"
_OURS = frozenset({MARKER.encode(), STAGE.encode()})


class PlaceState:
    """Of a folder there is nothing but its files, and names of ours at its top."""

    blobs: Blobs = NoBlobs()

    def __init__(self, resource: PlanResource) -> None:
        self._resource = resource

    def base(self) -> Mapping[bytes, str]:
        return {}

    def expected(self) -> Collection[bytes]:
        return ()

    def proven(self, found: Collection[bytes]) -> Mapping[bytes, Proof]:  # noqa: ARG002 - nothing is
        return {}

    def hidden(self) -> frozenset[bytes]:
        """A database inside that is a resource of its own is none of the tree's files."""
        return _OURS.union(map(os.fsencode, self._resource.cut_out))

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
    """A lost `.git` must not take files along (ADR 0102): contents are stored by us, or in packs
    that we have links to (ADR 0108)."""

    def __init__(
        self,
        resource: PlanResource,
        repositories: UsersRepositories,
        kept: KeptObjects,
        packs: LinkedPacks,
    ) -> None:
        super().__init__(resource)
        self._repositories = repositories
        self._kept = kept
        self._packs = packs
        self._packed: Beside[Mapping[bytes, Proof]] | None = None
        self.blobs = packs

    def expected(self) -> Collection[bytes]:
        # Whoever asks lists the tree next, and then wants to know what is proven.
        self._packed = Beside(partial(self._known.in_packs, self._packs))
        return self._known.entries.keys()

    def proven(self, found: Collection[bytes]) -> Mapping[bytes, Proof]:
        packed = self._packed.result() if self._packed else self._known.in_packs(self._packs)
        return self._known.unconverted(packed, found) if packed else {}

    @cached_property
    def _known(self) -> KnownByIndex:
        return KnownByIndex.read(self._resource.location)

    def hidden(self) -> frozenset[bytes]:
        return super().hidden() | {b".git"}

    def read(self, before: Before | None) -> ExtraRecord | None:
        location = self._resource.location
        gitdir = git_folder(location)
        marks = marks_of(gitdir) if is_there(gitdir) else ""
        if before and marks and marks == before.fingerprint:
            return None
        with self._repositories.opened(self._resource) as there:
            found = read_repository(location, there.git)
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
                contents |= self._kept.keep(self._resource, found, there)
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
