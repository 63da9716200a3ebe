"""People name a checkpoint by id, by the start of one, or by its label; nothing is guessed."""

import pytest
from domain_builders import NOW, OTHER_PLAN, PLAN, a_group, ulid

from cleveragents.domain.checkpoint import CheckpointGroup, PrunedCheckpoint
from cleveragents.domain.checkpoint_lookup import SHORTEST_PREFIX, find_group
from cleveragents.domain.errors import (
    CheckpointAmbiguousError,
    CheckpointMismatchError,
    CheckpointNotFoundError,
)
from cleveragents.domain.ids import GroupId, PlanId

FOREIGN = ulid(900)
FIRST = a_group(1, group_id=ulid(1, "01AAAA"), head=ulid(1, "01AABB"), label="start")
SECOND = a_group(2, group_id=ulid(2, "01AAAC"), head=ulid(2, "01CCCC"), label="step")
THIRD = a_group(3, group_id=ulid(3, "01DDDD"), head=ulid(3, "01EEEE"), label="step")
GROUPS = (FIRST, SECOND, THIRD)
GONE = PrunedCheckpoint(
    group_id=GroupId(ulid(800)),
    reason="older than 2 days",
    pruned_at=NOW.replace(microsecond=123456),
)


def found(wanted: str, groups: tuple[CheckpointGroup, ...] = GROUPS) -> CheckpointGroup:
    def owner_of(name: str) -> PlanId | None:
        return OTHER_PLAN if name == FOREIGN else None

    def pruned(plan_id: PlanId, name: str) -> PrunedCheckpoint | None:
        assert plan_id == PLAN
        return GONE if name in (GONE.group_id, "old label") else None

    return find_group(PLAN, wanted, groups, owner_of=owner_of, pruned=pruned)


@pytest.mark.parametrize("group", GROUPS)
def test_the_id_of_a_group_or_of_a_checkpoint_in_it_names_the_group(
    group: CheckpointGroup,
) -> None:
    for name in (group.group_id, group.head, group.group_id.lower(), f"  {group.head}\n"):
        assert found(name) is group


@pytest.mark.parametrize("wanted", ["01AAAA", "01aaaa", "01AAB", "01AABB"])
def test_the_start_of_an_id_is_enough_if_only_one_group_has_it(wanted: str) -> None:
    assert found(wanted) is FIRST


def test_a_start_that_fits_both_a_group_and_its_own_checkpoint_is_not_ambiguous() -> None:
    group = a_group(4, group_id=ulid(4, "01FFF0"), head=ulid(4, "01FFF1"))

    assert found("01FFF", (*GROUPS, group)) is group


def test_a_start_that_fits_several_groups_is_refused_with_all_of_them() -> None:
    with pytest.raises(CheckpointAmbiguousError) as caught:
        found("01AAA")

    both = f"{FIRST.group_id}, {SECOND.group_id}"
    assert caught.value.message == f"'01AAA' fits 2 checkpoint groups: {both}"
    assert PLAN in caught.value.hint


def test_a_start_that_is_too_short_names_nothing() -> None:
    assert found("01DD") is THIRD
    with pytest.raises(CheckpointNotFoundError):
        found(THIRD.group_id[: SHORTEST_PREFIX - 1])


def test_a_label_names_its_group() -> None:
    assert found("start") is FIRST
    assert found(" start ") is FIRST


def test_labels_are_told_apart_by_case() -> None:
    with pytest.raises(CheckpointNotFoundError):
        found("START")


def test_a_label_that_several_groups_have_is_refused() -> None:
    with pytest.raises(CheckpointAmbiguousError) as caught:
        found("step")

    assert SECOND.group_id in caught.value.message
    assert THIRD.group_id in caught.value.message


def test_a_label_given_by_hand_wins_over_automatic_ones() -> None:
    by_hand = a_group(4, label="step", labelled_by_hand=True)

    assert found("step", (*GROUPS, by_hand)) is by_hand


@pytest.mark.parametrize("by_hand", [True, False])
def test_a_label_means_the_group_that_still_counts(*, by_hand: bool) -> None:
    gone = a_group(4, label="x", labelled_by_hand=by_hand, superseded=True)
    live = a_group(5, label="x", labelled_by_hand=by_hand)

    assert found("x", (gone, live)) is live
    assert found("x", (gone,)) is gone


def test_a_label_given_by_hand_wins_even_if_it_no_longer_counts() -> None:
    by_hand = a_group(4, label="x", labelled_by_hand=True, superseded=True)

    assert found("x", (by_hand, a_group(5, label="x"))) is by_hand


def test_a_full_id_wins_over_a_label() -> None:
    impostor = a_group(4, label=str(FIRST.group_id), labelled_by_hand=True)

    assert found(FIRST.group_id, (*GROUPS, impostor)) is FIRST


def test_a_label_wins_over_the_start_of_an_id() -> None:
    impostor = a_group(4, label="01AAAA", labelled_by_hand=True)

    assert found("01AAAA", (*GROUPS, impostor)) is impostor


@pytest.mark.parametrize("wanted", [FOREIGN, FOREIGN.lower()])
def test_a_checkpoint_of_another_plan_is_refused_with_its_plan(wanted: str) -> None:
    with pytest.raises(CheckpointMismatchError) as caught:
        found(wanted)

    told = f"checkpoint {wanted} belongs to plan {OTHER_PLAN}, not to {PLAN}"
    assert caught.value.message == told
    assert PLAN in caught.value.hint


@pytest.mark.parametrize("wanted", ["", "   ", "nothing", ulid(901)])
def test_what_nobody_knows_is_refused(wanted: str) -> None:
    with pytest.raises(CheckpointNotFoundError) as caught:
        found(wanted)

    told = f"plan {PLAN} has no checkpoint, group or label {wanted.strip()!r}"
    assert caught.value.message == told
    assert PLAN in caught.value.hint


@pytest.mark.parametrize("wanted", [GONE.group_id, "old label"])
def test_what_was_pruned_is_told_apart_from_what_never_was(wanted: str) -> None:
    with pytest.raises(CheckpointNotFoundError) as caught:
        found(wanted)

    what = f"plan {PLAN} has no checkpoint, group or label {str(wanted)!r} any more"
    when = "it was pruned at 2025-03-01 12:00:00+00:00"
    assert caught.value.message == f"{what}: {when}: older than 2 days"
    assert PLAN in caught.value.hint
