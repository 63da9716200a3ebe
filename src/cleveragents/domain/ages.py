"""How long ago something was, as people type it: `14d`, `12h`, or a date."""

import re
from datetime import UTC, datetime, timedelta

from cleveragents.domain.errors import UsageError

_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_AGE = re.compile(rf"(\d{{1,5}}) ?([{''.join(_UNITS)}])", re.ASCII)
_EXAMPLE = "an age such as 90m, 12h, 14d or 2w"


def age(text: str, option: str) -> timedelta:
    """Raises UsageError that names the option."""
    found = _AGE.fullmatch(text.strip().lower())
    if found is None:
        raise UsageError(f"{option} {text!r} is not {_EXAMPLE}", f"for example: {option} 14d")
    return timedelta(**{_UNITS[found[2]]: int(found[1])})


def moment(text: str, option: str, now: datetime) -> datetime:
    """An age before now, or a date, which is one of this machine's time zone unless it says which.

    Raises UsageError that names the option.
    """
    if _AGE.fullmatch(text.strip().lower()):
        return now - age(text, option)
    try:
        return datetime.fromisoformat(text.strip()).astimezone(UTC)
    except (ValueError, OverflowError):
        raise UsageError(
            f"{option} {text!r} is neither {_EXAMPLE}, nor a date such as 2026-07-14",
            f"for example: {option} 14d",
        ) from None
