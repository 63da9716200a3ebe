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
