"""Proving that snapshots of a database can be restored: its pages in one walk (`..damage`)."""

from collections.abc import Collection, Iterator, Mapping

from cleveragents.application.ports.runtime import Expected
from cleveragents.domain.errors import SnapshotDamagedError
from cleveragents.infrastructure.files.tree_hash import SUM_MODULUS
from cleveragents.infrastructure.snapshots.damage import (
    Damages,
    ProofStage,
    looked_up,
    needs_of,
    refusal,
    told,
)
from cleveragents.infrastructure.snapshots.pages.history import FileState
from cleveragents.infrastructure.snapshots.pages.layout import BLOCK_PAGES, STRONG, blocks_in, token
from cleveragents.infrastructure.snapshots.pages.session import PageSession

Need = int | bytes
"""A block of the base copy by its number, or a stored content by its hash."""


def page_damages(session: PageSession, snapshots: Collection[Expected]) -> Damages:
    """Those that could not be restored whole, each with the reason."""
    there, missing = looked_up(snapshots, session.snapshot)
    stages = list(_stages(session, there))
    broken = _broken(session, needs_of(stages))
    found = missing | told(stages, broken, lambda page, need: _reason(session, page, need))
    return {snapshot: found[snapshot] for snapshot in snapshots if snapshot in found}


def wrong_hash(
    session: PageSession, state: FileState, expected: str, total: int
) -> SnapshotDamagedError | None:
    """Unless this is the sum of the snapshot, and its hash the expected one."""
    recorded = session.versions.recorded_hash(state.seq)
    if total == state.total and {recorded, state.state_hash} == {expected}:
        return None
    return SnapshotDamagedError(
        session.resource.name,
        f"the hash of snapshot {state.seq} is not the one that was recorded",
    )


def _stages(
    session: PageSession, targets: Mapping[Expected, FileState]
) -> Iterator[ProofStage[int, Need]]:
    walk = _PagesWalk(session, max((state.seq for state in targets.values()), default=0))
    for snapshot, state in sorted(targets.items(), key=lambda item: item[1].seq):
        changed = walk.moved_to(state)
        wrong = wrong_hash(session, state, snapshot.state_hash, walk.total)
        yield ProofStage(snapshot=snapshot, wrong=wrong, changed=changed)


class _PagesWalk:
    """The file as it was, from the beginning on; `total` is the sum over its pages."""

    def __init__(self, session: PageSession, until: int) -> None:
        self.total = 0
        self._history = session.versions.history(until)
        self._ahead = next(self._history, None)
        self._base = {
            block: b"".join(session.versions.base_block(block))
            for block in range(blocks_in(session.known.base_size))
        }
        self._stored: dict[int, bytes] = {}
        self._pages = 0

    def moved_to(self, state: FileState) -> dict[int, Need | None]:
        """Every page that has changed since, came or went, with what it needs there."""
        newer = self._newer(state.seq)
        fewer, more = sorted((self._pages, state.pages))
        changed = sorted({*newer, *range(fewer, more)})
        self._count(-1, changed)
        self._stored |= newer
        self._pages = state.pages
        self._count(1, changed)
        return {page: self._need(page) if page < state.pages else None for page in changed}

    def _newer(self, seq: int) -> dict[int, bytes]:
        newer: dict[int, bytes] = {}
        while self._ahead is not None and self._ahead[0] <= seq:
            _, page, strong = self._ahead
            newer[page] = strong
            self._ahead = next(self._history, None)
        return newer

    def _count(self, sign: int, pages: Collection[int]) -> None:
        there = ((page, self._hash(page)) for page in pages if page < self._pages)
        moved = sum(token(page, strong) for page, strong in there if strong)
        self.total = (self.total + sign * moved) % SUM_MODULUS

    def _need(self, page: int) -> Need | None:
        strong = self._hash(page)
        return page // BLOCK_PAGES if strong and strong == self._in_base(page) else strong or None

    def _hash(self, page: int) -> bytes:
        """Empty where nothing is known of the page; then the sum cannot be right."""
        return self._stored.get(page) or self._in_base(page)

    def _in_base(self, page: int) -> bytes:
        block, index = divmod(page, BLOCK_PAGES)
        return self._base.get(block, b"")[index * STRONG : (index + 1) * STRONG]


def _broken(session: PageSession, needs: Mapping[Need, int]) -> set[Need]:
    names = {n: session.name_of(page) for n, page in needs.items() if isinstance(n, bytes)}
    blocks = {block: page for block, page in needs.items() if isinstance(block, int)}
    lost = {block for block, page in blocks.items() if _reason(session, page, block)}
    return {*session.contents.damaged(names), *lost}


def _reason(session: PageSession, page: int, need: Need) -> SnapshotDamagedError | None:
    return refusal(lambda: _check(session, page, need))


def _check(session: PageSession, page: int, need: Need) -> None:
    """Raises SnapshotDamagedError."""
    if isinstance(need, bytes):
        session.contents.check({need: session.name_of(page)})
        return
    hashes = session.versions.base_block(need)
    session.base_pages.check_block(need, hashes, session.known.base_size)
