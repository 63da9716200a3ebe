"""Owns which places a command is shown, and in which way."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """It runs in `folder`, and writes in what is `writable`, but not in what of that is `closed`.
    All of these are there."""

    folder: str
    writable: Sequence[str]
    closed: Sequence[str] = ()
