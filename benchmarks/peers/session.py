"""Owns what every compared tool is asked for, so that all of them are asked the same."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from benchmarks.peers.places import Place


class Session(Protocol):
    """One tool at work on one tree. Any call raises `PeerError` if the tool refused or failed."""

    tree: Path

    def snapshot(self) -> str: ...

    def restore(self, ref: str) -> None: ...

    def stored(self) -> int: ...

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """`missing` says why it could not be installed; then it has a row, and no figures. One that is
    not `judged` shows its fidelity through another."""

    key: str
    name: str
    how: str
    version: str
    open: Callable[[Place], Session]
    ours: bool = False
    judged: bool = True
    missing: str = ""
