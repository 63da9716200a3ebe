"""Reading JSON that a function, a server or an agent made."""

import json
from collections.abc import Iterable
from typing import NoReturn, cast

from cleveragents.domain.errors import ToolError

DEEPEST = 100
"""Levels. Whoever shows or stores a value goes down level by level, and has only so many."""


class NotJsonError(ValueError):
    """Says why in a few words."""


class TooMuchGivenBackError(ToolError):
    """A result has no end that could be kept alone."""

    def __init__(self, name: str, most: int) -> None:
        super().__init__(
            f"{name} gave back more than {most} bytes",
            "let it write a file, or raise tool.output-limit in the config",
        )


def read_json(data: bytes) -> object:
    """Raises NotJsonError, whatever it is that is wrong."""
    try:
        value = json.loads(data, parse_constant=_refuse)
    except RecursionError:
        raise _TooDeepError from None
    except ValueError as error:  # also bytes that are no text, and numbers without an end
        raise NotJsonError(str(error)) from None
    _refuse_if_deep(value)
    return value


class _TooDeepError(NotJsonError):
    def __init__(self) -> None:
        super().__init__(f"it is nested more than {DEEPEST} levels deep")


def _refuse_if_deep(value: object) -> None:
    """Level by level, since to go down would be what it is to keep others from."""
    level = [value] if _has_levels(value) else []
    for _ in range(DEEPEST + 1):
        if not level:
            return
        level = [inner for item in level for inner in _inside(item)]
    raise _TooDeepError


def _inside(value: object) -> Iterable[object]:
    if isinstance(value, dict):
        return filter(_has_levels, cast("dict[str, object]", value).values())
    return filter(_has_levels, cast("list[object]", value))


def _has_levels(value: object) -> bool:
    return isinstance(value, dict | list)


def _refuse(name: str) -> NoReturn:
    raise NotJsonError(f"{name} is no number")
