"""How we talk with the process inside: frames of plain values, none of which can do anything.

What comes out of there may be a step's forgery; it is read as far as it is well-formed, no further.
Both sides import this, so it imports next to nothing.
"""

import struct
from collections.abc import Mapping, Sequence

Value = None | bool | int | float | str | bytes | Sequence["Value"] | Mapping[str, "Value"]

# Why a request was refused: somebody keeps the database locked, it is none, a rule forbids it, the
# time is over, or whatever else SQLite says.
BUSY, NO_DATABASE, RULE, TIME, WRONG = "busy", "no database", "rule", "time", "wrong"

HEAD = struct.Struct(">I")
LONGEST = 32 << 20
_DEEPEST = 8
_WHOLE, _REAL, _COUNT = struct.Struct(">q"), struct.Struct(">d"), struct.Struct(">I")
_WORDS: dict[bytes, None | bool] = {b"N": None, b"T": True, b"F": False}


class NonsenseError(Exception):
    """The other side said something that is no message, or not the one that was due."""


def framed(value: Value) -> bytes:
    """Raises OverflowError for a number or a message that is too large."""
    parts: list[bytes] = []
    _write(value, parts)
    body = b"".join(parts)
    if len(body) > LONGEST:
        raise OverflowError(f"{len(body)} bytes are more than a message may have")
    return HEAD.pack(len(body)) + body


def read(body: bytes) -> Value:
    """The value in a frame. Raises NonsenseError."""
    reader = _Reader(body)
    try:
        value = reader.value(_DEEPEST)
    except (UnicodeDecodeError, struct.error, IndexError) as error:
        raise NonsenseError(str(error)) from error
    if reader.at != len(body):
        raise NonsenseError("more than a message")
    return value


def _write(value: Value, parts: list[bytes]) -> None:
    if value is None or isinstance(value, bool):
        parts.append(b"N" if value is None else b"T" if value else b"F")
    elif isinstance(value, int):
        if not -(1 << 63) <= value < 1 << 63:
            raise OverflowError(f"{value} does not fit into 64 bits")
        parts.append(b"I" + _WHOLE.pack(value))
    elif isinstance(value, float):
        parts.append(b"D" + _REAL.pack(value))
    elif isinstance(value, str | bytes):
        _write_text(value, parts)
    else:
        _write_many(value, parts)


def _write_text(value: str | bytes, parts: list[bytes]) -> None:
    is_text = isinstance(value, str)
    data = value.encode("utf-8", "surrogatepass") if is_text else value
    parts.append((b"S" if is_text else b"B") + _COUNT.pack(len(data)))
    parts.append(data)


def _write_many(value: Sequence[Value] | Mapping[str, Value], parts: list[bytes]) -> None:
    is_map = isinstance(value, Mapping)
    parts.append((b"M" if is_map else b"L") + _COUNT.pack(len(value)))
    items = (part for pair in value.items() for part in pair) if is_map else value
    for item in items:
        _write(item, parts)


class _Reader:
    def __init__(self, body: bytes) -> None:
        self._body = body
        self.at = 0

    def value(self, depth: int) -> Value:
        kind = self._take(1)
        if kind in _WORDS:
            return _WORDS[kind]
        if kind == b"I":
            return _WHOLE.unpack(self._take(8))[0]
        if kind == b"D":
            return _REAL.unpack(self._take(8))[0]
        count = _COUNT.unpack(self._take(4))[0]
        if kind in (b"S", b"B"):
            data = self._take(count)
            return data.decode("utf-8", "surrogatepass") if kind == b"S" else data
        if kind not in (b"L", b"M") or not depth:
            raise NonsenseError("no value of a kind that there is")
        return self._many(kind == b"M", count, depth - 1)

    def _many(self, is_map: bool, count: int, depth: int) -> Value:  # noqa: FBT001
        # Each takes a byte at least: a count of nothing must not make us wait.
        if count > len(self._body) - self.at:
            raise NonsenseError("fewer values than were said")
        if not is_map:
            return [self.value(depth) for _ in range(count)]
        found: dict[str, Value] = {}
        for _ in range(count):
            key = self.value(0)
            if not isinstance(key, str):
                raise NonsenseError("a key that is no text")
            found[key] = self.value(depth)
        return found

    def _take(self, count: int) -> bytes:
        if count > len(self._body) - self.at:
            raise NonsenseError("cut off")
        self.at += count
        return self._body[self.at - count : self.at]
