"""Three versions of a text: what is agreed, what is disputed, what one takes back of another."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cleveragents.domain.threeway import (
    MOST_LINES,
    Region,
    lines_of,
    three_way,
    two_way,
    undone,
)

TEXTS = st.lists(st.sampled_from([b"a\n", b"b\n", b"c\n", b"d\n"]), max_size=8)


def disputed(found: list[Region]) -> list[tuple[int, bytes, bytes, bytes]]:
    return [
        (r.line, b"".join(r.base), b"".join(r.ours), b"".join(r.theirs))
        for r in found
        if r.disputed
    ]


def taken(found: list[Region], side: str) -> list[bytes]:
    return [line for region in found for line in getattr(region, side)]


def lines(text: str) -> list[bytes]:
    """One line for each letter."""
    return [f"{letter}\n".encode() for letter in text]


@given(TEXTS, TEXTS, TEXTS)
def test_nothing_is_lost_and_nothing_is_made_up(
    base: list[bytes], ours: list[bytes], theirs: list[bytes]
) -> None:
    found = three_way(base, ours, theirs)

    assert [line for region in found for line in region.base] == base
    if not disputed(found):
        assert taken(found, "ours") == taken(found, "theirs")
    if ours == base:
        assert taken(found, "ours") == taken(found, "theirs") == theirs
    if theirs == base:
        assert taken(found, "ours") == ours
    if ours == theirs:
        assert not disputed(found)
        assert taken(found, "ours") == ours


@given(TEXTS, TEXTS)
def test_of_two_texts_each_side_is_that_text(ours: list[bytes], theirs: list[bytes]) -> None:
    found = two_way(ours, theirs)

    assert taken(found, "ours") == ours
    assert taken(found, "theirs") == theirs


@given(TEXTS, TEXTS, TEXTS)
def test_who_changed_nothing_since_takes_nothing_back(
    base: list[bytes], ours: list[bytes], theirs: list[bytes]
) -> None:
    assert undone(base, ours, ours) == []
    assert undone(ours, ours, theirs) == []


def test_changes_of_different_lines_are_brought_together() -> None:
    found = three_way(lines("abcde"), lines("Abcde"), lines("abcdE"))

    assert disputed(found) == []
    assert taken(found, "ours") == lines("AbcdE")


def test_changes_of_the_same_line_are_disputed_and_the_rest_is_not() -> None:
    found = three_way(lines("abcde"), lines("abCde"), lines("abXdE"))

    assert disputed(found) == [(3, b"c\n", b"C\n", b"X\n")]
    assert taken(found, "ours") == lines("abCdE")
    assert taken(found, "theirs") == lines("abXdE")


def test_what_is_disputed_says_where_it_is_in_ours() -> None:
    found = three_way(lines("abc"), lines("123abC"), lines("abX"))

    assert disputed(found) == [(6, b"c\n", b"C\n", b"X\n")]


def test_two_texts_that_both_wrote_are_disputed_where_they_differ() -> None:
    assert disputed(two_way(lines("abc"), lines("aXc"))) == [(2, b"", b"b\n", b"X\n")]


def test_who_writes_the_old_text_again_takes_a_change_back() -> None:
    assert disputed(undone(lines("abc"), lines("aBc"), lines("abc"))) == [(2, b"", b"B\n", b"b\n")]
    assert disputed(undone(lines("abc"), lines("aBc"), lines("aXc"))) == [(2, b"", b"B\n", b"X\n")]


def test_who_brings_back_what_was_deleted_takes_that_back() -> None:
    assert disputed(undone(lines("abc"), lines("ac"), lines("abc"))) == [(2, b"", b"", b"b\n")]


def test_who_adds_beside_a_change_or_changes_something_else_takes_nothing_back() -> None:
    assert undone(lines("abc"), lines("aBc"), lines("aBXc")) == []
    assert undone(lines("abc"), lines("aBc"), lines("aBC")) == []
    assert undone(lines("abc"), lines("ac"), lines("aXc")) == []


def test_what_is_too_long_to_look_at_is_disputed_as_a_whole() -> None:
    long = [b"x\n"] * (MOST_LINES + 1)

    for found in (three_way([], long, []), two_way(long, []), undone([], long, [])):
        (region,) = found
        assert (region.disputed, region.line, len(region.ours)) == (True, 1, len(long))


def test_lines_keep_their_ends() -> None:
    assert lines_of(b"a\r\nb\rc") == [b"a\r\n", b"b\r", b"c"]


@pytest.mark.parametrize("longest", range(3))
def test_a_text_is_looked_at_up_to_so_many_lines_whichever_version_has_them(longest: int) -> None:
    def long(lines: int) -> list[list[bytes]]:
        return [[b"x\n"] * (lines if which == longest else 1) for which in range(3)]

    just, over = long(MOST_LINES), long(MOST_LINES + 1)

    assert [len(r.ours) for r in three_way(*over)] == [len(over[1])]
    assert three_way(*over)[0].disputed
    assert not three_way(*just)[0].disputed
    assert len(undone(*over)) == 1
    assert undone(*over)[0].base == tuple(over[0])
    assert all(r.base == () for r in undone(*just))
    if longest:
        assert two_way(*over[1:])[0].disputed
        assert not two_way(*just[1:])[0].disputed


def test_each_part_says_in_which_line_of_ours_it_begins() -> None:
    found = three_way(lines("abcde"), lines("axcde"), lines("abcdy"))

    assert [(r.line, r.disputed) for r in found] == [(1, False), (2, False), (3, False), (5, False)]


def test_a_line_that_is_everywhere_is_as_good_a_place_to_meet_as_any() -> None:
    base = [b"}\n" if n % 2 else b"%d\n" % n for n in range(400)]
    ours, theirs = [b"new\n", *base], [*base, b"end\n"]

    assert disputed(three_way(base, ours, theirs)) == []
    assert len(three_way(base, ours, theirs)) == 3


def test_a_change_elsewhere_takes_back_nothing_of_ours() -> None:
    assert undone(lines("ab"), lines("abx"), lines("cbx")) == [], "ours has changed the end"
    assert undone(lines("abcd"), lines("bcd"), lines("bcda")) == [], "it was gone before that"
    assert undone(lines("abcd"), lines("acd"), lines("bacd")) == [], "it was gone behind that"
