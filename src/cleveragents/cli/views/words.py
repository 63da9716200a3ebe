"""How times, sizes and states are spelled for people and programs."""

from datetime import datetime
from typing import Any

from cleveragents.cli.render.blocks import Cell, Tone

_TONES: dict[str, Tone] = {
    "complete": "good",
    "applied": "good",
    "ready": "good",
    "succeeded": "good",
    "added": "good",
    "restored": "good",
    "kept": "good",
    "errored": "bad",
    "failed": "bad",
    "deleted": "bad",
    "removed": "dim",
    "cancelled": "dim",
    "queued": "dim",
    "pending": "dim",
    "processing": "accent",
    "modified": "accent",
    "constrained": "warn",
    "done": "good",
    "compensated": "good",
    "uncertain": "warn",
    "compensating": "warn",
    "skipped": "dim",
    "merged": "good",
    "conflict": "bad",
    "invalidated": "dim",
    "discarded": "dim",
}


def toned(word: str) -> Cell:
    return Cell(word, _TONES.get(word, "plain"))


def picked(item: object, names: str) -> dict[str, Any]:
    """Some of its attributes as data, each under its own name."""
    return {name: getattr(item, name) for name in names.split()}


def clock_time(moment: datetime | None) -> str:
    return "-" if moment is None else moment.astimezone().strftime("%Y-%m-%d %H:%M:%S")


def size(count: int) -> str:
    amount = float(count)
    for unit in ("B", "kB", "MB", "GB"):
        if amount < 1000:
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1000
    return f"{amount:.1f} TB"


def count(number: int, thing: str) -> str:
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"
