"""Owns what has been proven while snapshots of one resource are verified: it is read once."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from cleveragents.infrastructure.snapshots.contents import ContentStore
from cleveragents.infrastructure.snapshots.pages_base import BasePages


@dataclass(slots=True)
class Proven:
    """Contents by hash, and blocks of a base copy by number, that were found unharmed.

    What is damaged is not remembered: each snapshot that needs it has its own name for it.
    """

    _contents: set[bytes] = field(default_factory=set[bytes])
    _blocks: set[int] = field(default_factory=set[int])

    def check(self, contents: ContentStore, wanted: Mapping[bytes, str]) -> None:
        """Read what is not proven yet, each with its name; raises SnapshotDamagedError."""
        left = {key: name for key, name in wanted.items() if key not in self._contents}
        for key, pieces in contents.read(left):
            for _ in pieces:
                pass
            self._contents.add(key)

    def check_block(self, base: BasePages, block: int, hashes: list[bytes], size: int) -> None:
        """The same for a block of a base of this size."""
        if block not in self._blocks:
            base.check_block(block, hashes, size)
            self._blocks.add(block)
