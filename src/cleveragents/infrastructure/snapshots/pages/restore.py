"""Bringing a database file back to a snapshot: compare, check, write what differs, prove.

Killed anywhere, it can be done again: what is on disk is compared anew each time.
In which order: SQLite's locks are taken; what differs now is found; everything that will be written
is read and proven; head, drift and changes have to come to the target's sum; pages that go and are
damaged in the store are stored anew; journals go; pages, length and mode are written and synced;
what was written is read back. What is no plain file of its own is replaced whole, by one rename.
Why: journals go before the first page, or SQLite would roll pages of another state into the file.
What is not guaranteed: a file that is old or new at any moment. In between it is neither, and only
the locks keep others from reading it; after a kill, the next restore has to come first.
"""

import os
import stat
from collections.abc import Iterable, Mapping

from msgspec import Struct, field
from msgspec.structs import replace

from cleveragents.domain.errors import RestoreFailedError
from cleveragents.infrastructure.files.entry import Kind
from cleveragents.infrastructure.snapshots.pages.database_file import (
    clear,
    kind_of,
    marks_of,
    reliable_marks,
)
from cleveragents.infrastructure.snapshots.pages.history import FileFingerprint, FileState
from cleveragents.infrastructure.snapshots.pages.layout import (
    BLOCK_PAGES,
    FAST,
    PAGE,
    blocks_in,
    differing,
    fast_hash,
    pages_in,
    read_block,
    strong_hash,
    strong_hashes,
)
from cleveragents.infrastructure.snapshots.pages.mending import mend_changing, mend_whole
from cleveragents.infrastructure.snapshots.pages.rebuild import build_file
from cleveragents.infrastructure.snapshots.pages.scan import fast_hashes
from cleveragents.infrastructure.snapshots.pages.session import (
    Change,
    PageSession,
    moved_total,
)


class PagesRestored(Struct, frozen=True, kw_only=True):
    """`differed` says whether there was anything to restore; `notes` are for people."""

    state: FileState
    before: Kind
    differed: bool
    notes: list[str]


class _Present(Struct, frozen=True, kw_only=True):
    """The file as it is: its facts, and the pages whose bytes are not those of the head."""

    size: int
    mode: int
    fast: bytes
    pages: Mapping[int, bytes] = field(default_factory=dict[int, bytes])


def restore(session: PageSession, target: FileState) -> PagesRestored:
    found = session.file.look()
    before = kind_of(found) or Kind.GONE
    try:
        if target.kind is Kind.FILE and found and session.file.can_be_written(found):
            return _restore_pages(session, target)
        return _replace(session, target, before)
    except OSError as error:
        reason = error.strerror or str(error)
        raise RestoreFailedError(session.resource.name, f"{session.file.path}: {reason}") from error


def differs(session: PageSession, target: FileState) -> tuple[Kind, bool]:
    """What is there now, and whether `restore` would change it; nothing is written."""
    found = session.file.look()
    kind = kind_of(found) or Kind.GONE
    if kind is not target.kind or kind is not Kind.FILE:
        link = kind is Kind.LINK and os.fsencode(os.readlink(session.file.path)) == target.target
        return kind, not (kind is target.kind and (link or kind is Kind.GONE))
    if not session.file.is_quiet():
        return kind, True  # what a journal holds would have to be written to be compared
    fd = session.file.open()
    try:
        return kind, differs_from(session, fd, target)
    finally:
        os.close(fd)


def differs_from(session: PageSession, fd: int, target: FileState) -> bool:
    """Of an open file that holds all there is."""
    present = _present(session, fd)
    changed = (present.size, present.mode) != (target.size, target.mode)
    return changed or bool(_changes(session, present, target))


def checked_way_back(session: PageSession, target: FileState) -> int:
    """The sum of `target` by way of the newest snapshot, once all pages that differ are proven."""
    head = session.state()
    changes = _changes(session, _Present(size=head.size, mode=head.mode, fast=b""), target)
    _check_contents(session, {page: new for page, (_, new) in changes.items() if new is not None})
    return moved_total(head, changes)


# --- page by page ---------------------------------------------------------------------------------


def _restore_pages(session: PageSession, target: FileState) -> PagesRestored:
    with session.file.taken() as fd:
        present = _present(session, fd)
        changes = _changes(session, present, target)
        wanted = {page: new for page, (_, new) in changes.items() if new is not None}
        _check_contents(session, wanted)
        _refuse_wrong_sum(session, present, changes, target)
        notes = mend_changing(session, fd, changes)
        # From here on the file changes.
        session.file.begin(fd, changes.keys(), target.size)
        _write(session, fd, wanted, target)
        _prove(session, fd, wanted)
        session.file.commit()
        fast = _fast_after(fd, present.fast, changes, session.known.seed, target.size)
        known = replace(session.known, fast=fast, marks=reliable_marks(fd))
    differed = bool(changes) or (present.size, present.mode) != (target.size, target.mode)
    state = _record(session, target, known)
    return PagesRestored(state=state, before=Kind.FILE, differed=differed, notes=notes)


def _present(session: PageSession, fd: int) -> _Present:
    found = os.fstat(fd)
    size, mode = found.st_size, stat.S_IMODE(found.st_mode)
    known = session.known
    if known.marks == marks_of(found) and session.file.is_quiet():
        return _Present(size=size, mode=mode, fast=known.fast)
    fast = fast_hashes(fd, size, known.seed)
    pages: dict[int, bytes] = {}
    for block in differing(known.fast, fast):
        hashes = strong_hashes(read_block(fd, block, size))
        pages.update(enumerate(hashes, block * BLOCK_PAGES))
    return _Present(size=size, mode=mode, fast=fast, pages=pages)


def _changes(session: PageSession, present: _Present, target: FileState) -> dict[int, Change]:
    """Each page that differs, with its hash now and its hash in the target."""
    head = session.state()
    now_pages = pages_in(present.size)
    shorter, longer = sorted((now_pages, target.pages))
    candidates = session.versions.touched(target.seq, head.seq) | present.pages.keys()
    candidates |= set(range(shorter, longer))
    changes: dict[int, Change] = {}
    for block in sorted({page // BLOCK_PAGES for page in candidates}):
        at_head = session.versions.block(block, head.seq)
        at_target = session.block_of(target, block)
        for page in range(block * BLOCK_PAGES, (block + 1) * BLOCK_PAGES):
            now = present.pages.get(page, at_head.get(page)) if page < now_pages else None
            new = at_target.get(page)
            if now != new:
                changes[page] = (now, new)
    return changes


def _check_contents(session: PageSession, wanted: Mapping[int, bytes]) -> None:
    """Everything that will be written is there and unharmed, or nothing is changed."""
    for page, strong in wanted.items():
        session.read_page(page, strong)


def _refuse_wrong_sum(
    session: PageSession, present: _Present, changes: Mapping[int, Change], target: FileState
) -> None:
    """Head, plus what happened since, plus these changes, must come to the target."""
    head = session.state()
    now = _drift(session, present)
    total = moved_total(replace(head, total=moved_total(head, now)), changes)
    if total != target.total:
        raise RestoreFailedError(
            session.resource.name, "its pages would not have the hash of the snapshot"
        )


def _drift(session: PageSession, present: _Present) -> dict[int, Change]:
    """From the head to the present."""
    head = session.state()
    now_pages = pages_in(present.size)
    shorter, longer = sorted((head.pages, now_pages))
    pages = present.pages.keys() | set(range(shorter, longer))
    drift: dict[int, Change] = {}
    for block in sorted({page // BLOCK_PAGES for page in pages}):
        known = session.block_of(head, block)
        for page in range(block * BLOCK_PAGES, (block + 1) * BLOCK_PAGES):
            old = known.get(page)
            new = present.pages.get(page, old) if page < now_pages else None
            if old != new:
                drift[page] = (old, new)
    return drift


def _write(session: PageSession, fd: int, wanted: Mapping[int, bytes], target: FileState) -> None:
    if os.fstat(fd).st_size != target.size:
        os.ftruncate(fd, target.size)
    for page in sorted(wanted):
        os.pwrite(fd, session.read_page(page, wanted[page]), page * PAGE)
    os.fchmod(fd, target.mode)
    os.fsync(fd)


def _prove(session: PageSession, fd: int, wanted: Mapping[int, bytes]) -> None:
    size = os.fstat(fd).st_size
    for page, strong in wanted.items():
        data = os.pread(fd, min(PAGE, size - page * PAGE), page * PAGE)
        if strong_hash(data) != strong:
            raise RestoreFailedError(
                session.resource.name, f"{session.name_of(page)} is not what it should be"
            )


def _fast_after(fd: int, fast: bytes, changes: Iterable[int], seed: int, size: int) -> bytes:
    count = blocks_in(size)
    hashes = bytearray(fast[: count * FAST].ljust(count * FAST, b"\0"))
    last = {count - 1} if count else set[int]()
    for block in {page // BLOCK_PAGES for page in changes} | last:
        if block < count:
            data = read_block(fd, block, size)
            hashes[block * FAST : (block + 1) * FAST] = fast_hash(data, seed)
    return bytes(hashes)


# --- whole ----------------------------------------------------------------------------------------


def _replace(session: PageSession, target: FileState, before: Kind) -> PagesRestored:
    """Whatever is there gives way: nothing, a link, a folder, a file that is not ours alone."""
    path = session.file.path
    draft = session.file.draft
    clear(draft)
    known = replace(session.known, fast=b"", marks="")
    if target.kind is Kind.FILE:
        fast = build_file(session, target, draft)
        known = replace(known, fast=fast)
    elif target.kind is Kind.LINK:
        os.symlink(target.target, os.fsencode(draft))
    notes = mend_whole(session) if before is Kind.FILE else []
    session.file.drop_journals()
    if before is Kind.DIR or target.kind is Kind.GONE:
        clear(path)
    if target.kind is not Kind.GONE:
        os.rename(draft, path)
    session.file.sync_folder()
    state = _record(session, target, known)
    differed = before is not Kind.GONE or target.kind is not Kind.GONE
    return PagesRestored(state=state, before=before, differed=differed, notes=notes)


# --- both -----------------------------------------------------------------------------------------


def _record(session: PageSession, target: FileState, known: FileFingerprint) -> FileState:
    """The restored state as the newest snapshot; it needs no bytes that are not stored."""
    head = session.state()
    state = replace(target, seq=session.next_seq())
    if session.head is None or not state.same_as(head):
        touched = session.versions.touched(target.seq, head.seq)
        for block in sorted({page // BLOCK_PAGES for page in touched}):
            newest = session.versions.block(block, head.seq)
            wanted = session.block_of(target, block)
            pages = [(page, h) for page, h in wanted.items() if newest.get(page) != h]
            session.versions.add_pages(state.seq, pages)
    return session.record(state, known)
