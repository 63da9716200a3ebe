"""Owns what an unquoted YAML scalar means: the core schema of YAML 1.2."""

import math
import re

Scalar = str | int | float | bool | None

# Dates, `yes` and `off` are text, as they are for whoever wrote them.
_NULLS = ("", "~", "null", "Null", "NULL")
_BOOLEANS = {
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_WHOLE = re.compile(r"[-+]?[0-9]+")
_BASED = re.compile(r"0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_NOT_FINITE = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")


def core_value(text: str) -> tuple[Scalar, str | None]:
    """What an unquoted scalar means, and what is wrong with it."""
    if text in _NULLS:
        return None, None
    if text in _BOOLEANS:
        return _BOOLEANS[text], None
    if _NOT_FINITE.fullmatch(text):
        return text, "must be a finite number; put it in quotes if it is text"
    number = _number(text)
    if number is None:
        return text, None
    if not math.isfinite(number) or (isinstance(number, int) and abs(number) >= 2**63):
        return text, "this number is too large; put it in quotes if it is text"
    return number, None


def _number(text: str) -> int | float | None:
    # Python refuses to convert thousands of digits; as a float they are infinite, so too large.
    if _WHOLE.fullmatch(text):
        return int(text) if len(text) < 100 else math.inf
    if _BASED.fullmatch(text):
        return int(text, 0) if len(text) < 100 else math.inf
    return float(text) if _FLOAT.fullmatch(text) else None
