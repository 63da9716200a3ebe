"""Writing a snapshot of a database file as a new file, from the base copy and its versions.

In which order: the base copy, the length, the pages that differ from the base; then all of it is
read back and has to come to the sum of the snapshot; mode and sync are last. Whoever calls puts the
file in its place, so that a file which is not whole is never there.
What is not guaranteed: that the draft is gone after an error; the next one clears it away.
"""

import os

from cleveragents.domain.errors import RestoreFailedError
from cleveragents.infrastructure.files.copy.clone_bytes import copy_bytes
from cleveragents.infrastructure.files.descriptors import opened
from cleveragents.infrastructure.files.tree_hash import SUM_MODULUS
from cleveragents.infrastructure.snapshots.pages.history import FileState
from cleveragents.infrastructure.snapshots.pages.layout import (
    BLOCK_PAGES,
    PAGE,
    blocks_in,
    fast_hash,
    read_block,
    strong_hashes,
    tokens,
)
from cleveragents.infrastructure.snapshots.pages.session import PageSession

_NEW = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def build_file(session: PageSession, state: FileState, path: str) -> bytes:
    """Make the file at `path`, durable and proven; gives back its fast hashes."""
    with opened(path, _NEW, 0o600) as fd:
        if session.known.base_size:
            copy_bytes(session.base_pages.fd, fd, session.known.base_size)
        os.ftruncate(fd, state.size)
        _overlay(session, state, fd)
        fast = _proven(session, state, fd)
        os.fchmod(fd, state.mode)
        os.fsync(fd)
    return fast


def _overlay(session: PageSession, state: FileState, fd: int) -> None:
    """Write the pages that are not as the base has them."""
    for block in range(blocks_in(state.size)):
        base = dict(enumerate(session.versions.base_block(block), block * BLOCK_PAGES))
        for page, strong in session.block_of(state, block).items():
            if base.get(page) != strong:
                os.pwrite(fd, session.contents.get(strong, session.name_of(page)), page * PAGE)


def _proven(session: PageSession, state: FileState, fd: int) -> bytes:
    fast: list[bytes] = []
    total = 0
    for block in range(blocks_in(state.size)):
        data = read_block(fd, block, state.size)
        fast.append(fast_hash(data, session.known.seed))
        total += tokens(block * BLOCK_PAGES, strong_hashes(data))
    if total % SUM_MODULUS != state.total:
        raise RestoreFailedError(
            session.resource.name, "the rebuilt file does not have the hash of the snapshot"
        )
    return b"".join(fast)
