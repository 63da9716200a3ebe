"""Pages damaged in the store that the database still has: stored anew before they go.

For files, `tree/restore/mending.py` does the same.
"""

import os
from collections.abc import Mapping

from cleveragents.domain.errors import SnapshotDamagedError
from cleveragents.infrastructure.files.entry import Kind
from cleveragents.infrastructure.snapshots.damage import mended
from cleveragents.infrastructure.snapshots.pages.layout import (
    BLOCK_PAGES,
    PAGE,
    blocks_in,
    strong_hash,
)
from cleveragents.infrastructure.snapshots.pages.session import Change, PageSession
from cleveragents.infrastructure.snapshots.store.plan_store import keep_so_far


def mend_changing(session: PageSession, fd: int, changes: Mapping[int, Change]) -> list[str]:
    """Of the pages that are about to change, those that the newest snapshot has."""
    head = session.state()
    going: dict[int, bytes] = {}
    for block in sorted({page // BLOCK_PAGES for page in changes}):
        known = session.block_of(head, block)
        going |= {p: h for p, h in known.items() if p in changes and changes[p][0] == h}
    return _mend(session, fd, going)


def mend_whole(session: PageSession) -> list[str]:
    """All of them, as the file itself goes."""
    head = session.state()
    if head.kind is not Kind.FILE:
        return []
    fd = session.file.open()
    try:
        blocks = range(blocks_in(head.size))
        pages = {p: h for block in blocks for p, h in session.block_of(head, block).items()}
        return _mend(session, fd, pages)
    finally:
        os.close(fd)


def _mend(session: PageSession, fd: int, pages: Mapping[int, bytes]) -> list[str]:
    """Durable when this returns. Raises SnapshotDamagedError if the file has other bytes too."""
    damaged = [page for page, strong in pages.items() if not _is_whole(session, page, strong)]
    for page in damaged:
        data = os.pread(fd, PAGE, page * PAGE)
        if strong_hash(data) != pages[page]:
            raise SnapshotDamagedError(
                session.resource.name,
                f"{session.name_of(page)} is, and the database has other bytes there by now",
            )
        if session.in_base(page, pages[page]):
            session.base.put(page, data)
        else:
            session.contents.renew((data,), b"", len(data))
    if not damaged:
        return []
    keep_so_far(session.versions.db)
    what = "1 page" if len(damaged) == 1 else f"{len(damaged)} pages"
    return [mended(f"{what} of {session.file.name}")]


def _is_whole(session: PageSession, page: int, strong: bytes) -> bool:
    try:
        session.read_page(page, strong)
    except SnapshotDamagedError:
        return False
    return True
