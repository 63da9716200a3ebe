"""Owns what a look at a whole tree tells whoever watches it."""

from collections.abc import Iterable
from typing import Protocol


class Watch(Protocol):
    """Is told of each folder before it is listed."""

    def folder(self, path: bytes, fd: int) -> None: ...

    def folders(self, root: int, paths: Iterable[bytes]) -> None:
        """Those that are there; parents come before their children."""
        ...

    def unheard(self, paths: Iterable[bytes]) -> set[bytes]:
        """Those of which it was not told."""
        ...

    def complete(self) -> None:
        """All that are known were told, and are listed by others now."""
        ...


class NoWatch:
    def folder(self, path: bytes, fd: int) -> None:
        """Nothing to do."""

    def folders(self, root: int, paths: Iterable[bytes]) -> None:
        """Nothing to do."""

    def unheard(self, paths: Iterable[bytes]) -> set[bytes]:  # noqa: ARG002 - a Watch
        return set()

    def complete(self) -> None:
        """Nothing to do."""
