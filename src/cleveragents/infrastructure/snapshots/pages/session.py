"""One piece of work on one database file inside one transaction: what is known of it."""

import secrets
import sqlite3
from collections.abc import Generator, Mapping
from contextlib import contextmanager

from msgspec import Struct
from msgspec.structs import replace

from cleveragents.domain.errors import SnapshotDamagedError
from cleveragents.domain.resource import PlanResource
from cleveragents.infrastructure.files.tree_hash import SUM_MODULUS
from cleveragents.infrastructure.snapshots.boots import boots_of
from cleveragents.infrastructure.snapshots.pages.base_copy import BaseFile, BasePages
from cleveragents.infrastructure.snapshots.pages.database_file import DatabaseFile
from cleveragents.infrastructure.snapshots.pages.history import (
    FileFingerprint,
    FileState,
    PageVersions,
)
from cleveragents.infrastructure.snapshots.pages.layout import BLOCK_PAGES, PAGE, blocks_in, token
from cleveragents.infrastructure.snapshots.store.content_store import ContentStore

Change = tuple[bytes | None, bytes | None]
"""A page's hash before and after; None where there is no such page."""


class PageSession(Struct):
    """`head` is the newest snapshot, and `known` what the file looked like then."""

    resource: PlanResource
    file: DatabaseFile
    versions: PageVersions
    contents: ContentStore
    base: BaseFile
    base_pages: BasePages
    head: FileState | None
    known: FileFingerprint

    def snapshot(self, ref: str) -> FileState:
        state = self.versions.snapshot(ref)
        if state is None:
            raise SnapshotDamagedError(self.resource.name, f"there is no snapshot {ref!r}")
        return state

    def state(self) -> FileState:
        return self.head or FileState()

    def block_of(self, state: FileState, block: int) -> dict[int, bytes]:
        """The hashes of the pages that a block has in `state`."""
        found = self.versions.block(block, state.seq)
        return {page: strong for page, strong in found.items() if page < state.pages}

    def record(self, state: FileState, known: FileFingerprint) -> FileState:
        """Store the present; it is the newest snapshot again if nothing of it changed."""
        if known != self.known:
            self.versions.save_known(known)
        if self.head is not None and state.same_as(self.head):
            return self.head
        self.versions.add_snapshot(state)
        return state

    def next_seq(self) -> int:
        return self.state().seq + 1

    def read_page(self, page: int, strong: bytes) -> bytes:
        """The stored bytes of a page. Raises SnapshotDamagedError."""
        if self.in_base(page, strong):
            return self.base_pages.page(page, strong, self.known.base_size)
        return self.contents.get(strong, self.name_of(page))

    def in_base(self, page: int, strong: bytes) -> bool:
        block, index = divmod(page, BLOCK_PAGES)
        if block >= blocks_in(self.known.base_size):
            return False
        hashes = self.versions.base_block(block)
        return index < len(hashes) and hashes[index] == strong

    def name_of(self, page: int) -> str:
        return f"{self.file.name} at byte {page * PAGE}"


@contextmanager
def page_session(
    db: sqlite3.Connection, file: DatabaseFile, snapshots_dir: str, limit_bytes: int
) -> Generator[PageSession]:
    resource = file.resource
    versions = PageVersions(db, str(resource.resource_id))
    base = BaseFile(snapshots_dir, resource, limit_bytes)
    known = versions.known() or FileFingerprint(seed=secrets.randbits(64), base_size=0)
    if boots_of(db, resource).is_doubtful:
        known = replace(known, marks="")
    with base.reading() as base_pages:
        yield PageSession(
            resource=resource,
            file=file,
            versions=versions,
            contents=ContentStore(db, resource.name),
            base=base,
            base_pages=base_pages,
            head=versions.newest(),
            known=known,
        )


def moved_total(state: FileState, pages: Mapping[int, Change]) -> int:
    """The sum after these pages changed."""
    total = state.total
    for page, (old, new) in pages.items():
        total += token(page, new) if new is not None else 0
        total -= token(page, old) if old is not None else 0
    return total % SUM_MODULUS
