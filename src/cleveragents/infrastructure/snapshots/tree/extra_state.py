"""What belongs to a snapshot beside the files: for git HEAD, references, index, settings."""

from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct, field

from cleveragents.infrastructure.snapshots.store.content_store import Blobs, NoBlobs

if TYPE_CHECKING:
    from cleveragents.infrastructure.snapshots.tree.first_look import Proof


class ExtraRecord(Struct, frozen=True, kw_only=True):
    """The state beside the files as it was read.

    `identity` is what counts as state, in one canonical spelling. `contents` is stored with it,
    `inherited` are hashes of contents stored before that are needed still. An equal `fingerprint`
    promises an equal identity; the empty one promises nothing.
    """

    identity: str = ""
    sandbox_ref: str = ""
    fingerprint: str = ""
    contents: Mapping[str, bytes] = field(default_factory=dict[str, bytes])
    inherited: Mapping[str, bytes] = field(default_factory=dict[str, bytes])


class StoredSide(Struct, frozen=True, kw_only=True):
    """A side record as the store gives it back; `content` reads one of its contents by name."""

    identity: str
    sandbox_ref: str
    hashes: Mapping[str, bytes]
    content: Callable[[str], bytes]


class Before(Struct, frozen=True, kw_only=True):
    """What is known of the present state when it is read again."""

    stored: StoredSide
    fingerprint: str


class ExtraState(Protocol):
    @property
    def blobs(self) -> Blobs: ...

    def base(self) -> Mapping[bytes, str]:
        """Blobs that are kept for good anyway, by the path they were checked out to."""
        ...

    def expected(self) -> Collection[bytes]:
        """Paths of files that are most likely there, at a first look; may be empty."""
        ...

    def proven(self, found: Collection[bytes]) -> Mapping[bytes, "Proof"]:
        """At a first look, which found these: files that hold a blob which is kept for good, as
        long as they have the status that goes with it."""
        ...

    def hidden(self) -> frozenset[bytes]:
        """Names at the top of the tree that are no content."""
        ...

    def read(self, before: Before | None) -> ExtraRecord | None:
        """The present; None if it certainly is as it was `before`."""
        ...

    def copied(self, of: StoredSide) -> ExtraRecord | None:
        """The present of a new branch of what that was; None if it has to be read."""
        ...

    def stands(self, target: StoredSide, before: Before) -> bool:
        """True if it certainly is as `target` has it, and `write` would change nothing."""
        ...

    def prepare(self, target: StoredSide) -> None:
        """Make sure that `write` can be done."""
        ...

    def write(self, target: StoredSide) -> None:
        """Make it the present again."""
        ...


class NoExtraState(Struct, frozen=True):
    """Of a plain folder there is nothing to know but its files."""

    blobs: Blobs = NoBlobs()

    def base(self) -> Mapping[bytes, str]:
        return {}

    def expected(self) -> Collection[bytes]:
        return ()

    def proven(self, found: Collection[bytes]) -> Mapping[bytes, "Proof"]:  # noqa: ARG002 - the port's name
        return {}

    def hidden(self) -> frozenset[bytes]:
        return frozenset()

    def read(self, before: Before | None) -> ExtraRecord | None:
        return ExtraRecord() if before is None else None

    def copied(self, of: StoredSide) -> ExtraRecord | None:  # noqa: ARG002 - the port's name
        return ExtraRecord()

    def stands(self, target: StoredSide, before: Before) -> bool:  # noqa: ARG002 - the port's names
        return True

    def prepare(self, target: StoredSide) -> None:
        """Nothing to do."""

    def write(self, target: StoredSide) -> None:
        """Nothing to do."""
