"""Taking a snapshot of a database file: the pages that differ from the newest one.

In which order: the marks, which tell without reading that nothing changed; the locks of SQLite; the
fast hash of every block; the pages of those that differ, of which new ones are stored; the marks
once more. If they have moved, all of it is undone to a savepoint and tried again, a few times. The
first snapshot copies the file whole instead (`base_copy.py`), and hashes the copy.
Why: a fast hash finds the blocks, and only a strong one names a page in the store. A block whose
bytes have another fast hash when they are read was written in between, whatever the locks say.
What is not guaranteed: a snapshot, if somebody writes all the time past SQLite's locks; that is an
error. Pages of bytes are compared, not rows: what journals hold is folded into the file before.
"""

import os
import secrets
import sqlite3
import stat
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress

from msgspec import Struct
from msgspec.structs import replace

from cleveragents.domain.errors import SnapshotFailedError
from cleveragents.infrastructure.files.copy.clone_bytes import copy_bytes
from cleveragents.infrastructure.files.entry import Kind
from cleveragents.infrastructure.files.tree_hash import SUM_MODULUS
from cleveragents.infrastructure.snapshots.pages.database_file import (
    DatabaseFile,
    DatabaseMovedError,
    kind_of,
    marks_of,
    reliable_marks,
)
from cleveragents.infrastructure.snapshots.pages.history import FileFingerprint, FileState
from cleveragents.infrastructure.snapshots.pages.layout import (
    BLOCK_PAGES,
    PAGE,
    blocks_in,
    differing,
    fast_at,
    fast_hash,
    read_block,
    strong_hashes,
    tokens,
)
from cleveragents.infrastructure.snapshots.pages.scan import fast_hashes
from cleveragents.infrastructure.snapshots.pages.session import PageSession, moved_total

_ATTEMPTS = 5
_PAUSE = 0.02


class Captured(Struct, frozen=True, kw_only=True):
    """`state` is the newest snapshot from now on; `stored` are the bytes that it cost."""

    state: FileState
    stored: int
    skipped: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def capture(session: PageSession) -> Captured:
    for attempt in range(_ATTEMPTS):
        time.sleep(_PAUSE * attempt)
        with suppress(DatabaseMovedError, FileNotFoundError), _undone_if_moved(session):
            return _readable(session)
    raise _restless(session.file)


def copy_present(file: DatabaseFile, target: int) -> int:
    """Without a snapshot: fill the open file `target`; gives back the mode."""
    for attempt in range(_ATTEMPTS):
        time.sleep(_PAUSE * attempt)
        with suppress(DatabaseMovedError), file.held() as held:
            before = os.fstat(held.fd)
            os.ftruncate(target, 0)
            copy_bytes(held.fd, target, before.st_size)
            if held.marks is not None or marks_of(os.fstat(held.fd)) == marks_of(before):
                return before.st_mode
    raise _restless(file)


def _restless(file: DatabaseFile) -> SnapshotFailedError:
    return SnapshotFailedError(
        f"no snapshot could be taken: {file.path} keeps changing while it is read",
        "stop what writes to the file, then resume the plan",
    )


@contextmanager
def _undone_if_moved(session: PageSession) -> Generator[None]:
    db = session.versions.db
    session.contents.stored_bytes = 0
    db.execute("SAVEPOINT attempt")
    try:
        yield
    except (DatabaseMovedError, FileNotFoundError):
        db.execute("ROLLBACK TO attempt")
        raise
    finally:
        with suppress(sqlite3.Error):  # a full disk may have ended the whole transaction
            db.execute("RELEASE attempt")


def _readable(session: PageSession) -> Captured:
    try:
        return _capture(session)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise SnapshotFailedError(
            f"no snapshot could be taken: {session.file.path} cannot be read ({error.strerror})",
            "make the file readable, or roll back to a checkpoint that has it",
        ) from error


def _capture(session: PageSession) -> Captured:
    found = session.file.look()
    skipped = session.file.strangers()
    kind = kind_of(found)
    if kind is Kind.FILE and found is not None:
        if (
            session.head
            and session.known.marks
            and session.known.marks == session.file.marks(found)
        ):
            return Captured(state=session.head, stored=0, skipped=skipped)
        return replace(_capture_file(session), skipped=skipped)
    if kind not in (Kind.GONE, Kind.LINK):
        skipped = (session.file.name, *skipped)
    target = os.fsencode(os.readlink(session.file.path)) if kind is Kind.LINK else b""
    state = FileState(
        seq=session.next_seq(), kind=Kind.LINK if target else Kind.GONE, target=target
    )
    known = replace(session.known, fast=b"", marks="")
    return Captured(state=session.record(state, known), stored=0, skipped=skipped)


def _capture_file(session: PageSession) -> Captured:
    with session.file.held() as held:
        # Before the bytes are read: a write in between must show in the times.
        marks = reliable_marks(held.fd) if held.marks is None else held.marks
        before = os.fstat(held.fd)
        if session.head is None:
            state, known = _first(session, held.fd, before)
        else:
            state, known = _next(session, held.fd, before)
        if held.marks is None and marks_of(os.lstat(session.file.path)) != marks_of(before):
            raise DatabaseMovedError
    recorded = session.record(state, replace(known, marks=marks))
    stored = session.contents.stored_bytes if session.head else before.st_size
    return Captured(state=recorded, stored=stored if recorded is state else 0, notes=held.notes)


def _first(
    session: PageSession, fd: int, found: os.stat_result
) -> tuple[FileState, FileFingerprint]:
    """All later snapshots stand on a copy of the whole file; its hashes are those of the copy."""
    size = found.st_size
    session.base.make(fd, size)
    known = FileFingerprint(seed=secrets.randbits(64), base_size=size)
    fast: list[bytes] = []
    total = 0
    for block in range(blocks_in(size)):
        data = read_block(session.base_pages.fd, block, size)
        hashes = strong_hashes(data)
        fast.append(fast_hash(data, known.seed))
        total += tokens(block * BLOCK_PAGES, hashes)
        session.versions.add_base_block(block, hashes)
    state = _file_state(session.next_seq(), found, total % SUM_MODULUS)
    return state, replace(known, fast=b"".join(fast))


def _next(
    session: PageSession, fd: int, found: os.stat_result
) -> tuple[FileState, FileFingerprint]:
    size, seq = found.st_size, session.next_seq()
    fast = fast_hashes(fd, size, session.known.seed)
    state = session.state()
    for block in differing(session.known.fast, fast):
        data = read_block(fd, block, size)
        if data and fast_hash(data, session.known.seed) != fast_at(fast, block):
            raise DatabaseMovedError
        state = replace(state, total=_store_block(session, block, data, state))
    return _file_state(seq, found, state.total), replace(session.known, fast=fast)


def _store_block(session: PageSession, block: int, data: bytes, state: FileState) -> int:
    """Store the pages of a block that changed; gives back the sum with them."""
    seq, first = session.next_seq(), block * BLOCK_PAGES
    new = {first + index: strong for index, strong in enumerate(strong_hashes(data))}
    old = session.block_of(session.state(), block)
    # Also of pages beyond the old end: a file that grows back needs no new versions.
    stored = session.versions.block(block, session.state().seq)
    versions = {page: strong for page, strong in new.items() if stored.get(page) != strong}
    base = dict(enumerate(session.versions.base_block(block), first))
    for page, strong in versions.items():
        if base.get(page) != strong:
            start = (page - first) * PAGE
            session.contents.put(data[start : start + PAGE])
    session.versions.add_pages(seq, versions.items())
    pages = {page: (old.get(page), new.get(page)) for page in old.keys() | new.keys()}
    changed = {page: pair for page, pair in pages.items() if pair[0] != pair[1]}
    return moved_total(state, changed)


def _file_state(seq: int, found: os.stat_result, total: int) -> FileState:
    return FileState(
        seq=seq,
        kind=Kind.FILE,
        mode=stat.S_IMODE(found.st_mode),
        size=found.st_size,
        total=total,
    )
