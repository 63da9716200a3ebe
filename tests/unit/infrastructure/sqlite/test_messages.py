"""What comes from the process inside is read only as far as it is well-formed."""

import random
import struct

import pytest

from cleveragents.infrastructure.sqlite.messages import (
    HEAD,
    LONGEST,
    NonsenseError,
    Value,
    framed,
    read,
)

VALUES: list[Value] = [
    None,
    True,
    False,
    0,
    -(1 << 63),
    (1 << 63) - 1,
    1.5,
    float("inf"),
    "",
    "grüße\0\ud800",
    b"\0\xff",
    [],
    [1, ["two", [b"three"]], None],
    {"a": 1, "b": [{"c": None}]},
]


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_a_value_arrives_as_it_was(value: Value) -> None:
    frame = framed(value)
    assert HEAD.unpack(frame[:4])[0] == len(frame) - 4
    assert read(frame[4:]) == value


@pytest.mark.parametrize(
    "value", [1 << 63, [-(1 << 63) - 1], "x" * (LONGEST + 1)], ids=["one", "in a list", "long"]
)
def test_what_has_no_room_is_refused_before_it_is_sent(value: Value) -> None:
    with pytest.raises(OverflowError):
        framed(value)


def nested(depth: int) -> Value:
    return [nested(depth - 1)] if depth else []


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"X",
        b"I\0",
        b"S\0\0\0\5abc",
        b"S\0\0\0\1\xff",
        b"L\xff\xff\xff\xff",
        b"L\0\0\0\2N",
        b"M\0\0\0\1NN",
        b"NN",
        framed(nested(30))[4:],
        framed({"a": nested(30)})[4:],
    ],
    ids=repr,
)
def test_nonsense_is_refused(body: bytes) -> None:
    with pytest.raises(NonsenseError):
        read(body)


def test_whatever_bytes_come_are_read_or_refused() -> None:
    chance = random.Random(7)
    whole = framed([VALUES[:-1], {"k": [1, "x", b"y", 2.5]}])[4:]
    for _ in range(3000):
        body = bytearray(whole)
        for _ in range(chance.randrange(1, 4)):
            body[chance.randrange(len(body))] = chance.randrange(256)
        try:
            read(bytes(body[: chance.randrange(1, len(body) + 1)]))
        except NonsenseError:
            continue


def test_a_count_of_nothing_costs_nothing() -> None:
    with pytest.raises(NonsenseError):
        read(b"L" + struct.pack(">I", (1 << 32) - 1) + b"N" * 10)
