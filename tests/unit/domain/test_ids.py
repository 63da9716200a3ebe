"""Ids are checked once, where text comes in."""

import pytest
from domain_builders import ulid
from hypothesis import given
from hypothesis import strategies as st

from cleveragents.domain.errors import InvalidIdError
from cleveragents.domain.ids import (
    CheckpointId,
    DecisionId,
    GroupId,
    PlanId,
    ResourceId,
    ToolCallId,
    Ulid,
    endings,
    id_part,
    made_at,
)

KINDS = (PlanId, DecisionId, CheckpointId, GroupId, ResourceId, ToolCallId)
CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


@pytest.mark.parametrize("kind", KINDS)
def test_lower_case_and_surrounding_space_are_normalised(kind: type[Ulid]) -> None:
    text = "01arz3ndektsv4rrffq69g5fav"

    assert kind(f" {text}\n") == text.upper()
    assert type(kind(text)) is kind


@given(st.sampled_from("01234567"), st.text(CROCKFORD, min_size=25, max_size=25))
def test_every_ulid_is_accepted_as_it_is(first: str, rest: str) -> None:
    assert PlanId(first + rest) == first + rest


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "text",
    [
        "",
        "x",
        ulid(1)[:-1],
        ulid(1) + "0",
        "8" + ulid(1)[1:],
        ulid(1)[:-1] + "I",
        ulid(1)[:-1] + "L",
        ulid(1)[:-1] + "O",
        ulid(1)[:-1] + "U",
        ulid(1)[:-1] + "é",
        ulid(1)[:12] + " " + ulid(1)[13:],
        "٠" + ulid(1)[1:],
    ],
)
def test_other_text_is_refused_with_the_kind_of_id_that_was_wanted(
    kind: type[Ulid], text: str
) -> None:
    with pytest.raises(InvalidIdError) as caught:
        kind(text)

    assert kind.kind in caught.value.message
    assert repr(text) in caught.value.message
    assert caught.value.exit_code == 2


def test_each_kind_has_a_name_of_its_own() -> None:
    assert len({kind.kind for kind in KINDS}) == len(KINDS)


@given(st.sets(st.text("01AZ", min_size=26, max_size=26), max_size=20))
def test_an_ending_is_as_short_as_it_can_be_and_no_other_has_it(ids: set[str]) -> None:
    found = endings(ids)

    assert set(found) == ids
    for ulid_, ending in found.items():
        assert ulid_.endswith(ending)
        assert [other for other in ids if other.endswith(ending)] == [ulid_]
        shorter = ending[1:]
        assert (
            len(shorter) < 4
            or shorter.isdecimal()
            or any(other != ulid_ and other.endswith(shorter) for other in ids)
        )
        # It is never taken for a number, unless the whole id is one.
        assert not ending.isdecimal() or len(ending) == 26


@pytest.mark.parametrize("text", ["", "abc", "hello", "-123", "a" * 27, "test it"])
def test_what_is_no_part_of_an_id_is_not_taken_for_one(text: str) -> None:
    assert id_part(text) is None
    assert id_part(" 1zz9 ") == "1ZZ9"


def test_an_id_says_when_it_was_made() -> None:
    assert made_at("01ARYZ6S410000000000000000") == 1469918176.385
    assert made_at("00000000010000000000000000") == 0.001
    assert made_at("0" * 26) == 0


def test_a_kind_of_id_is_named_in_what_it_refuses() -> None:
    class ShelfId(Ulid, kind="shelf id"): ...

    with pytest.raises(InvalidIdError, match="shelf id"):
        ShelfId("x")
