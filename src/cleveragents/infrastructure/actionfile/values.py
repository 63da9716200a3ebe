"""The rules for single values of an action file: texts, names, paths, numbers, choices."""

import re
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any, TypeVar, cast

from cleveragents.infrastructure.actionfile.model import Rule, SourcePlace, as_mapping, list_of

E = TypeVar("E", bound=StrEnum)


def quoted(text: str) -> str:
    """Text from a file as part of a sentence: short, and without anything a terminal obeys."""
    shown = text if len(text) <= 60 else text[:57] + "..."
    return f"`{shown}`" if shown.isprintable() else repr(shown)


def _string(value: object, place: SourcePlace) -> str | None:
    if isinstance(value, str):
        return value
    place.wrong_type("text", value)
    return None


def text(pattern: str, otherwise: str, *, longest: int | None = None) -> Rule[str]:
    """Text that follows the pattern, or what is said if it does not; with a limit, one line."""
    # Editors know only `$`, which for Python is also before the last line's end.
    follows = re.compile(re.sub(r"\$$", r"\\Z", pattern), re.DOTALL).search

    def read(value: object, place: SourcePlace) -> str | None:
        given = _string(value, place)
        if given is None:
            return None
        if not given.strip():
            place.wrong("must not be empty")
        elif "\0" in given:
            place.wrong("must not contain a null character")
        elif longest and len(given) > longest:
            place.wrong(f"must not be longer than {longest} characters")
        elif longest and not given.isprintable():
            place.wrong("must be one line without control characters")
        elif not follows(given):
            place.wrong(otherwise)
        else:
            return given
        return None

    limit = {"maxLength": longest} if longest else {}
    return Rule(read, {"type": "string", "pattern": pattern, **limit})


_SHORT = r"^[A-Za-z][A-Za-z0-9_-]{0,63}$"
_STAYING = r"(?!(.*/)?\.\.(/|$))"

STRING = Rule(_string, {"type": "string"})
TEXT = text(r"\S", "must not be empty")
ACTION_NAME = text(
    r"^(?!\.{1,2}$)[^\s/\\](?:[^/\\\n\r\t]{0,98}[^\s/\\])?$",
    "must be a short name, without slashes or spaces around it",
    longest=100,
)
STEP_NAME = text(r"^[^\n\r\t]*\S[^\n\r\t]*$", "must be one line", longest=200)
RESOURCE_NAME = text(
    _SHORT, "a resource's name is a letter, then up to 63 letters, digits, `_` or `-`"
)
CHILD_NAME = text(_SHORT, "a child's name is a letter, then up to 63 letters, digits, `_` or `-`")
TOOL_NAME = text(
    r"^[A-Za-z][A-Za-z0-9_.-]{0,63}$",
    "a tool's name is a letter, then up to 63 letters, digits, `_`, `-` or `.`",
)
INSIDE_PATH = text(rf"^(?!/){_STAYING}.*\S", "must be relative to the resource and stay inside it")
ABSOLUTE_PATH = text(rf"^(/|~/){_STAYING}", "must be an absolute path, or one that begins with ~/")
VARIABLE = text(r"^[A-Za-z_][A-Za-z0-9_]*$", "is not the name of a variable")


def choice(names: Sequence[str]) -> Rule[str]:
    def read(value: object, place: SourcePlace) -> str | None:
        given = _string(value, place)
        if given is None or given in names:
            return given
        meant = place.mistakes.meant(given, names)
        place.wrong(f"{quoted(given)} is not one of {', '.join(names)}{meant}")
        return None

    return Rule(read, {"type": "string", "enum": list(names)})


def one_of(kinds: type[E]) -> Rule[E]:
    names = choice([kind.value for kind in kinds if kind.value != "nothing"])

    def read(value: object, place: SourcePlace) -> E | None:
        name = names.read(value, place)
        return None if name is None else kinds(name)

    return Rule(read, names.schema)


def _boolean(value: object, place: SourcePlace) -> bool | None:
    if isinstance(value, bool):
        return value
    place.wrong_type("true or false", value)
    return None


BOOLEAN = Rule(_boolean, {"type": "boolean"})


def whole(*, least: int, most: int | None = None) -> Rule[int]:
    def read(value: object, place: SourcePlace) -> int | None:
        if isinstance(value, bool) or not isinstance(value, int):
            place.wrong_type("a whole number", value)
            return None
        return value if _in_limits(value, place, limits) else None

    limits = _given({"minimum": least, "maximum": most})
    return Rule(read, {"type": "integer", **limits})


def number(
    *, least: float | None = None, above: float | None = None, most: float | None = None
) -> Rule[float]:
    def read(value: object, place: SourcePlace) -> float | None:
        if isinstance(value, bool) or not isinstance(value, int | float):
            place.wrong_type("a number", value)
            return None
        return float(value) if _in_limits(value, place, limits) else None

    limits = _given({"minimum": least, "exclusiveMinimum": above, "maximum": most})
    return Rule(read, {"type": "number", **limits})


def _given(limits: Mapping[str, float | None]) -> dict[str, float]:
    return {keyword: limit for keyword, limit in limits.items() if limit is not None}


def _in_limits(value: float, place: SourcePlace, limits: Mapping[str, float]) -> bool:
    if value < limits.get("minimum", value):
        place.wrong(f"must be at least {limits['minimum']:g}")
    elif "exclusiveMinimum" in limits and value <= limits["exclusiveMinimum"]:
        place.wrong(f"must be more than {limits['exclusiveMinimum']:g}")
    elif value > limits.get("maximum", value):
        place.wrong(f"must be at most {limits['maximum']:g}")
    else:
        return True
    return False


_WORDS = list_of(TEXT, least=1)


def _argv(value: object, place: SourcePlace) -> tuple[str, ...] | None:
    if isinstance(value, str):
        place.wrong("must be a list of arguments, never a shell string: [python, migrate.py]")
        return None
    return _WORDS.read(value, place)


def _command_line(value: object, place: SourcePlace) -> str | list[str] | None:
    if isinstance(value, str):
        return TEXT.read(value, place)
    if not isinstance(value, list):
        place.wrong_type("text or a list", value)
        return None
    return list(_WORDS.read(cast("object", value), place) or ())


ARGV = Rule(_argv, _WORDS.schema)
COMMAND_LINE = Rule(_command_line, {"anyOf": [TEXT.schema, _WORDS.schema]})
ANY_MAPPING: Rule[Mapping[str, Any]] = Rule(
    as_mapping, {"type": "object", "additionalProperties": True}
)
