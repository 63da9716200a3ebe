"""How times, sizes and states are spelled for people and programs."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from cleveragents.cli.render.blocks import Cell, Tone
from cleveragents.domain.plan import Phase, Plan, State

_TONES: dict[str, Tone] = {
    "complete": "good",
    "finished": "good",
    "running": "accent",
    "interrupted": "warn",
    "held up": "warn",
    "new": "dim",
    "waiting": "dim",
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


_UNITS = (
    ("year", 365 * 86400),
    ("month", 30 * 86400),
    ("week", 7 * 86400),
    ("day", 86400),
    ("hour", 3600),
    ("minute", 60),
    ("second", 5),
)

_ENOUGH_OF_A_HASH = 12


def toned(word: str) -> Cell:
    return Cell(word, _TONES.get(word, "plain"))


def picked(item: object, names: str) -> dict[str, Any]:
    """Some of its attributes as data, each under its own name."""
    return {name: getattr(item, name) for name in names.split()}


_STATES = {
    State.PROCESSING: "running",
    State.COMPLETE: "finished",
    State.ERRORED: "failed",
    State.CONSTRAINED: "held up",
    State.APPLIED: "applied",
    State.CANCELLED: "cancelled",
}
_STEPS = {
    "complete": "finished",
    "queued": "waiting",
    "processing": "running",
    "errored": "failed",
}
STATE_WORDS = ("new", "waiting", "interrupted", *_STATES.values())


def state_word(plan: Plan, *, abandoned: bool = False) -> str:
    """As a person would say it; the glossary has the table, and JSON the exact state."""
    if plan.state is State.QUEUED:
        return "new" if plan.phase is Phase.STRATEGIZE else "waiting"
    return "interrupted" if abandoned else _STATES[plan.state]


def step_word(status: str) -> str:
    """A step is called as a plan is."""
    return _STEPS.get(status, status)


def ago(moment: datetime, now: datetime) -> str:
    """How long it is since then, in the largest unit that is there at least once."""
    seconds = max(int((now - moment).total_seconds()), 0)
    for unit, length in _UNITS:
        if seconds >= length:
            return f"{count(seconds if unit == 'second' else seconds // length, unit)} ago"
    return "just now"


def short_times(moments: Sequence[datetime | None], now: datetime) -> list[str]:
    """The time alone where all are of today; with the date where they are not."""
    local = [moment.astimezone() if moment else None for moment in moments]
    today = now.astimezone().date()
    form = "%H:%M:%S" if all(m.date() == today for m in local if m) else "%Y-%m-%d %H:%M"
    return [moment.strftime(form) if moment else "-" for moment in local]


def clock_time(moment: datetime | None) -> str:
    return "-" if moment is None else moment.astimezone().strftime("%Y-%m-%d %H:%M:%S")


def short_hash(ref: str) -> str:
    """As much of a commit, or of the hash of a state, as anybody compares; data has all of it."""
    before, colon, last = ref.rpartition(":")
    return f"{before}{colon}{last[:_ENOUGH_OF_A_HASH]}"


def size(count: int) -> str:
    amount = float(count)
    for unit in ("B", "kB", "MB", "GB"):
        if amount < 1000:
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1000
    return f"{amount:.1f} TB"


def count(number: int, thing: str, many: str = "") -> str:
    return f"{number} {thing}" if number == 1 else f"{number} {many or f'{thing}s'}"
