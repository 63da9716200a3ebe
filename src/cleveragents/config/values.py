"""What the values of settings look like, and how each is read from a file or from text."""

import math
import os
import re
from collections.abc import Callable, Collection, Sequence
from typing import Any, Generic, NamedTuple, TypeVar, cast

from msgspec import Struct

FORMATS = ("rich", "color", "table", "plain", "json", "yaml")
AUTO_FORMAT = "auto"
PAGER = ("on", "off")
# The domain has these names too; it may not be imported from here, so a test compares the two.
DEFAULT_TRIGGERS = ("on_tool_write", "on_tool_write_complete", "on_subplan_spawn", "on_error")
TRIGGERS = (*DEFAULT_TRIGGERS, "before_step", "after_step", "after_subplan", "before_apply")
CONFINEMENTS = ("preferred", "required", "off")
SECRETS = ("capture", "skip")
CLEANUPS = ("on_apply", "on_terminal", "manual")
TRIGGER_ALIASES = {
    "before_tool_execute": "on_tool_write",
    "after_tool_execute": "on_tool_write_complete",
}
# Longer waits overflow the system's own timers.
LONGEST_TIMEOUT = 604_800
_MOST_MONEY = 1_000_000

Value = str | int | float | tuple[str, ...] | None
T = TypeVar("T")


class Base(Struct, frozen=True, kw_only=True):
    """What a path in a value is relative to: `~` is `home`, anything else is in `folder`."""

    home: str
    folder: str

    def absolute(self, text: str) -> str:
        if text == "~" or text.startswith("~/"):
            text = f"{self.home}/{text[2:]}"
        return os.path.normpath(os.path.join(self.folder, text))


def closest(name: str, names: Collection[str]) -> str | None:
    import difflib  # noqa: PLC0415 - only a mistake needs it, and every command loads this module

    return next(iter(difflib.get_close_matches(name[:80], names, n=1)), None)


_UNITS = {"KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
# Patterns are text, and compiled where one is needed: every command loads this module.
_SIZE = r"(\d{1,9}(?:\.\d{1,3})?) ?([kKmMgGtT][bB])"
_PERIODS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_LONGEST_AGE = 10**12
_VARIABLE = r"[A-Za-z_][A-Za-z0-9_]*"
_AGE = r"(\d{1,6}) ?([smhdw])"


_USER = r"//.*@"
_QUERY = r"\?.*"
_WHOLE = r"[-+]?[0-9]+"
_DECIMAL = r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?"
_LONGEST_NUMBER = 100


class BadValueError(Exception):
    def __init__(self, problem: str, suggestion: str | None = None) -> None:
        super().__init__(problem)
        self.problem = problem
        self.suggestion = suggestion


class ValueKind(NamedTuple, Generic[T]):
    """What the values of some settings look like: in words, as TOML has them, and as text."""

    words: str
    read: Callable[[object, Base], T]
    from_text: Callable[[str], object] = str
    empty_is_a_value: bool = False


def one_of(names: Sequence[str], none: str | None = None) -> ValueKind[Any]:
    """`none` stands for no value."""
    valid = ", ".join((*names, *([none] if none else ())))

    def read(raw: object, base: Base) -> str | None:
        del base
        text = _text(raw)
        if text == none:
            return None
        if text not in names:
            raise BadValueError(f"{text!r} is not one of {valid}", closest(text, names))
        return text

    return ValueKind(f"one of {valid}", read)


def variables_value(raw: object, base: Base) -> tuple[str, ...]:
    del base
    items = cast("Sequence[object]", raw) if isinstance(raw, list | tuple) else [None]
    if not all(isinstance(item, str) and re.fullmatch(_VARIABLE, item, re.ASCII) for item in items):
        raise BadValueError('must be a list of names of variables, for example ["JAVA_HOME"]')
    return tuple(dict.fromkeys(str(item) for item in items))


def path_value(raw: object, base: Base) -> str:
    text = _text(raw)
    if not text or "\0" in text:
        raise BadValueError("must be a path")
    return base.absolute(text)


def database_url_value(raw: object, base: Base) -> str:
    text = _text(raw)
    if not text:
        return ""
    # The text is not repeated: an address of another kind may hold a password.
    if not text.startswith("sqlite:///"):
        raise BadValueError("only sqlite is supported by this version: sqlite:///<path>")
    file = text.removeprefix("sqlite:///")
    if not file or file.startswith(":") or "?" in file or "\0" in file:
        raise BadValueError("must name a file, without options: sqlite:///<path>")
    return f"sqlite:///{base.absolute(file)}"


def triggers_value(raw: object, base: Base) -> tuple[str, ...]:
    del base
    items = cast("Sequence[object]", raw) if isinstance(raw, list | tuple) else [None]
    if not all(isinstance(item, str) for item in items):
        raise BadValueError('must be a list of trigger names, for example ["on_error"]')
    return tuple(dict.fromkeys(_trigger(str(item)) for item in items))


def _trigger(name: str) -> str:
    known = TRIGGER_ALIASES.get(name, name)
    if known not in TRIGGERS:
        valid = (*TRIGGERS, *TRIGGER_ALIASES)
        problem = f"{name!r} is not a trigger; valid names are {', '.join(valid)}"
        raise BadValueError(problem, closest(name, valid))
    return known


def whole_number(lowest: int, highest: int, words: str) -> ValueKind[int]:
    def read(raw: object, base: Base) -> int:
        del base
        if not isinstance(raw, int) or isinstance(raw, bool) or not lowest <= raw <= highest:
            raise BadValueError(f"must be a whole number from {lowest} to {highest}")
        return raw

    return ValueKind(words, read, number_from_text)


def size_value(raw: object, base: Base) -> int:
    del base
    if isinstance(raw, int) and not isinstance(raw, bool) and raw >= 0:
        return raw
    match = re.fullmatch(_SIZE, raw.strip(), re.ASCII) if isinstance(raw, str) else None
    if match is None:
        raise BadValueError("must be a size such as 500MB or 20GB, or a number of bytes")
    return int(float(match[1]) * _UNITS[match[2].upper()])


def age_value(raw: object, base: Base) -> int:
    del base
    if isinstance(raw, int) and not isinstance(raw, bool) and 0 <= raw <= _LONGEST_AGE:
        return raw
    match = re.fullmatch(_AGE, raw.strip(), re.ASCII) if isinstance(raw, str) else None
    if match is None:
        raise BadValueError("must be an age such as 30d, 12h or 90m, or a number of seconds")
    return int(match[1]) * _PERIODS[match[2]]


def amount_value(raw: object, base: Base) -> float:
    del base
    number = raw if isinstance(raw, int | float) and not isinstance(raw, bool) else math.nan
    if not 0 <= number <= _MOST_MONEY:
        raise BadValueError(f"must be a number from 0 to {_MOST_MONEY}")
    return float(number)


def web_address_value(raw: object, base: Base) -> str:
    text = text_value(raw, base)
    if text and not text.startswith(("https://", "http://")):
        raise BadValueError("must begin with https:// or http://")
    # The text is not repeated: it may hold a password.
    if text and not _has_a_place(text):
        raise BadValueError("must be an address such as https://models.example/v1")
    return text


def _has_a_place(address: str) -> bool:
    from urllib.parse import urlsplit  # noqa: PLC0415 - hardly anybody has an address of their own

    try:
        parts = urlsplit(address)
        return bool(parts.hostname) and parts.port != 0 and address.isprintable()
    except ValueError:
        return False


def shown_address(value: Value) -> Value:
    """Without what may be a password: whoever reads it learns only where the models are."""
    return re.sub(
        _QUERY, "?...", re.sub(_USER, "//...@", str(value), flags=re.DOTALL), flags=re.DOTALL
    )


def text_value(raw: object, base: Base) -> str:
    del base
    return _text(raw)


def seconds_value(raw: object, base: Base) -> float:
    del base
    number = raw if isinstance(raw, int | float) and not isinstance(raw, bool) else math.nan
    if not 0 < number <= LONGEST_TIMEOUT:
        raise BadValueError(
            f"must be a number of seconds, more than 0 and at most {LONGEST_TIMEOUT}"
        )
    return float(number)


def _text(raw: object) -> str:
    if not isinstance(raw, str):
        raise BadValueError("must be text")
    return raw


def number_from_text(text: str) -> object:
    """As people write numbers. Python would also take `1_000`, and digits of every script."""
    wanted = text.strip()
    if len(wanted) > _LONGEST_NUMBER:
        return text
    if re.fullmatch(_WHOLE, wanted):
        return int(wanted)
    return float(wanted) if re.fullmatch(_DECIMAL, wanted) else text


def list_from_text(text: str) -> object:
    inner = text.strip().removeprefix("[").removesuffix("]")
    items = [item.strip(" \t\"'") for item in inner.split(",")]
    return [item for item in items if item]
