"""JSON of others: what is read as it is, and what is refused in a few words."""

import pytest

from cleveragents.domain.foreign_json import (
    DEEPEST,
    NotJsonError,
    TooMuchGivenBackError,
    read_json,
)


def nested(levels: int) -> bytes:
    """Lists and objects by turns."""
    opened = [b"[" if level % 2 else b'{"a": ' for level in range(levels)]
    closed = [b"]" if level % 2 else b"}" for level in reversed(range(levels))]
    return b"".join([*opened, b"1", *closed])


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": [1, "b", null]}', {"a": [1, "b", None]}),
        ("[[], {}]", [[], {}]),
        ("7", 7),
        ('"text"', "text"),
        ("null", None),
    ],
)
def test_what_is_json_is_read_as_it_is(text: str, value: object) -> None:
    assert read_json(text.encode()) == value


@pytest.mark.parametrize("levels", [1, 2, DEEPEST - 1, DEEPEST])
def test_so_many_levels_can_be_shown_and_stored(levels: int) -> None:
    value = read_json(nested(levels))
    for level in range(levels):
        value = value[0] if level % 2 else value["a"]  # type: ignore[index]
    assert value == 1


@pytest.mark.parametrize("levels", [DEEPEST + 1, DEEPEST + 2, 100_000])
def test_more_levels_are_refused(levels: int) -> None:
    with pytest.raises(NotJsonError, match=r"^it is nested more than 100 levels deep$"):
        read_json(nested(levels))


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"[NaN]", "^NaN is no number$"),
        (b"-Infinity", "^-Infinity is no number$"),
        (b"{", "^Expecting property name"),
        (b"\xff\xfe\xfa", "codec can't decode"),
        (b"", "^Expecting value"),
    ],
)
def test_what_is_no_json_is_refused_with_the_reason(data: bytes, why: str) -> None:
    with pytest.raises(NotJsonError, match=why):
        read_json(data)


def test_a_result_without_an_end_is_told_with_what_to_do() -> None:
    error = TooMuchGivenBackError("sum", 10)

    assert error.message == "sum gave back more than 10 bytes"
    assert error.hint == "let it write a file, or raise tool.output-limit in the config"
