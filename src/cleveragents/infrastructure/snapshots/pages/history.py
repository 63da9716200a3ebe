"""The history of one file: each page's versions by number, and the snapshots over them.

A page at k is its version with the greatest seq up to k, or else that of the base copy. Which
pages there are at k follows from the size at k alone.
"""

import sqlite3
from collections.abc import Collection, Iterable, Iterator

from msgspec import Struct
from msgspec.structs import replace

from cleveragents.infrastructure.files.entry import Kind
from cleveragents.infrastructure.snapshots.pages.layout import (
    BLOCK_PAGES,
    PAGE,
    STRONG,
    pages_in,
    state_hash,
)
from cleveragents.infrastructure.snapshots.store.sweep import (
    HistoryTables,
    is_worth_it,
    keep_snapshots,
)

_TABLES = HistoryTables("page_snapshots", "page_versions", "page", str(PAGE))


class FileState(Struct, frozen=True, kw_only=True):
    """The file at one moment; `total` is the sum over its pages, `target` that of a link."""

    seq: int = 0
    kind: Kind = Kind.GONE
    mode: int = 0
    size: int = 0
    target: bytes = b""
    total: int = 0

    @property
    def pages(self) -> int:
        return pages_in(self.size)

    @property
    def state_hash(self) -> str:
        return state_hash(self.total, self.kind, self.mode, self.size, self.target)

    def same_as(self, other: "FileState") -> bool:
        return replace(self, seq=0) == replace(other, seq=0)


class FileFingerprint(Struct, frozen=True, kw_only=True):
    """What was seen of the file at the newest snapshot.

    `fast` has one hash per block. `marks` tell that it is still the same; the empty ones tell
    nothing. `base_size` is the size of the base copy.
    """

    seed: int
    base_size: int
    fast: bytes = b""
    marks: str = ""


class PageVersions(Struct, frozen=True):
    db: sqlite3.Connection
    tree: str

    # --- snapshots --------------------------------------------------------------------------------

    def newest(self) -> FileState | None:
        return self._state("ORDER BY seq DESC LIMIT 1", ())

    def snapshot(self, ref: str) -> FileState | None:
        return self._state("AND seq=?", (int(ref),)) if ref.isdecimal() else None

    def add_snapshot(self, state: FileState) -> None:
        values = (self.tree, state.seq, state.kind, state.mode, state.size, state.target)
        total = state.total.to_bytes(32, "big")
        self.db.execute(
            "INSERT INTO page_snapshots VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (*values, total, state.state_hash),
        )

    def recorded_hash(self, seq: int) -> str:
        return self.db.execute(
            "SELECT state_hash FROM page_snapshots WHERE tree=? AND seq=?", (self.tree, seq)
        ).fetchone()[0]

    def _state(self, condition: str, values: tuple[int, ...]) -> FileState | None:
        row = self.db.execute(
            "SELECT seq, kind, mode, size, target, total FROM page_snapshots"
            f" WHERE tree=? {condition}",
            (self.tree, *values),
        ).fetchone()
        if row is None:
            return None
        seq, kind, mode, size, target, total = row
        return FileState(
            seq=seq,
            kind=Kind(kind),
            mode=mode,
            size=size,
            target=target,
            total=int.from_bytes(total, "big"),
        )

    # --- pages ------------------------------------------------------------------------------------

    def add_pages(self, seq: int, pages: Iterable[tuple[int, bytes]]) -> None:
        rows = ((self.tree, page, seq, strong) for page, strong in pages)
        self.db.executemany("INSERT INTO page_versions VALUES (?, ?, ?, ?)", rows)

    def block(self, block: int, seq: int) -> dict[int, bytes]:
        """The hashes of a block's pages at `seq`, of those beyond the end too if any are known."""
        first = block * BLOCK_PAGES
        found = {first + i: strong for i, strong in enumerate(self.base_block(block))}
        rows = self.db.execute(
            "SELECT page, hash FROM page_versions WHERE tree=? AND page>=? AND page<? AND seq<=?"
            " ORDER BY page, seq",
            (self.tree, first, first + BLOCK_PAGES, seq),
        )
        found.update(rows)
        return found

    def history(self, until: int) -> Iterator[tuple[int, int, bytes]]:
        """Every version up to `until`, the oldest first: its number, the page and its hash."""
        return self.db.execute(
            "SELECT seq, page, hash FROM page_versions WHERE tree=? AND seq<=? ORDER BY seq",
            (self.tree, until),
        )

    def touched(self, one: int, other: int) -> set[int]:
        """Pages with a version between the two: all whose bytes can differ."""
        rows = self.db.execute(
            "SELECT page FROM page_versions WHERE tree=? AND seq>? AND seq<=?",
            (self.tree, min(one, other), max(one, other)),
        )
        return {page for (page,) in rows}

    def add_base_block(self, block: int, hashes: list[bytes]) -> None:
        self.db.execute(
            "INSERT OR REPLACE INTO page_bases VALUES (?, ?, ?)",
            (self.tree, block, b"".join(hashes)),
        )

    def base_block(self, block: int) -> list[bytes]:
        row = self.db.execute(
            "SELECT hashes FROM page_bases WHERE tree=? AND block=?", (self.tree, block)
        ).fetchone()
        hashes: bytes = row[0] if row else b""
        return [hashes[start : start + STRONG] for start in range(0, len(hashes), STRONG)]

    # --- the present ------------------------------------------------------------------------------

    def known(self) -> FileFingerprint | None:
        row = self.db.execute(
            "SELECT seed, base_size, fast, marks FROM page_files WHERE tree=?", (self.tree,)
        ).fetchone()
        if row is None:
            return None
        seed, base_size, fast, marks = row
        return FileFingerprint(
            seed=int.from_bytes(seed, "big"), base_size=base_size, fast=fast, marks=marks
        )

    def save_known(self, known: FileFingerprint) -> None:
        self.db.execute(
            "INSERT OR REPLACE INTO page_files VALUES (?, ?, ?, ?, ?)",
            (self.tree, known.seed.to_bytes(8, "big"), known.base_size, known.fast, known.marks),
        )

    def are_worth_freeing(self, kept: Collection[int]) -> bool:
        """Whether all snapshots but these hold so much that `keep_only` pays."""
        return is_worth_it(self.db, _TABLES, self.tree, kept)

    def keep_only(self, kept: Collection[int]) -> None:
        """Delete the snapshots not in `kept`, and the versions that none of the rest sees."""
        keep_snapshots(self.db, _TABLES, self.tree, kept)
