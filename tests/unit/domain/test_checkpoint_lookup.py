"""People name a checkpoint by id, number, label, or a part of these; nothing is guessed."""

from collections.abc import Sequence

import pytest
from domain_builders import ACTION, NOW, OTHER_PLAN, PLAN, a_group, a_plan, ulid
from msgspec.structs import replace

from cleveragents.domain.checkpoint import CheckpointGroup, CheckpointReason, PrunedCheckpoint
from cleveragents.domain.checkpoint_lookup import (
    CheckpointNames,
    looks_like_an_ordinal,
    told_apart,
)
from cleveragents.domain.errors import (
    CheckpointAmbiguousError,
    CheckpointMismatchError,
    CheckpointNotFoundError,
)
from cleveragents.domain.ids import SHORTEST_PART, GroupId, PlanId, id_part
from cleveragents.domain.timeline import Timeline, timeline

FOREIGN = ulid(900)
FIRST = a_group(1, group_id=ulid(1, "01AAAA"), own=ulid(1, "01AABB"), label="start")
SECOND = a_group(2, group_id=ulid(2, "01AAAC"), own=ulid(2, "01CCCC"), label="step")
THIRD = a_group(3, group_id=ulid(3, "01DDDD"), own=ulid(3, "01EEEE"), label="step")
GROUPS = (FIRST, SECOND, THIRD)
GONE = PrunedCheckpoint(
    group_id=GroupId(ulid(800)),
    reason="older than 2 days",
    pruned_at=NOW.replace(microsecond=123456),
)


def line_of(groups: Sequence[CheckpointGroup]) -> Timeline:
    done = max((group.last_completed_step for group in groups), default=-1)
    head = groups[-1].head if groups else None
    return timeline(a_plan(action=ACTION, last_completed_step=done, head=head), groups)


def found(wanted: str, groups: Sequence[CheckpointGroup] = GROUPS) -> CheckpointGroup:
    part = id_part(wanted)

    def owner_of(name: str) -> PlanId | None:
        return OTHER_PLAN if name == FOREIGN else None

    def pruned(plan_id: PlanId, name: str) -> PrunedCheckpoint | None:
        assert plan_id == PLAN
        return GONE if name in (GONE.group_id, "old label") else None

    fitting = [
        group
        for group in groups
        if group.label == wanted.strip()
        or (part and any(n.startswith(part) or n.endswith(part) for n in group.names()))
    ]
    names = CheckpointNames(PLAN, lambda: line_of(groups), owner_of, pruned)
    return names.find(wanted, fitting)


@pytest.mark.parametrize("group", GROUPS)
def test_the_id_of_a_group_or_of_a_checkpoint_in_it_names_the_group(
    group: CheckpointGroup,
) -> None:
    for name in (*group.names(), group.group_id.lower(), f"  {group.group_id}\n"):
        assert found(name) is group


@pytest.mark.parametrize("wanted", ["01AAAA", "01aaaa", "01AAB", "01AABB"])
def test_the_start_of_an_id_is_enough_if_only_one_group_has_it(wanted: str) -> None:
    assert found(wanted) is FIRST


def test_a_start_that_fits_both_a_group_and_its_own_checkpoint_is_not_ambiguous() -> None:
    group = a_group(4, group_id=ulid(4, "01FFF0"), own=ulid(4, "01FFF1"))

    assert found("01FFF", (*GROUPS, group)) is group


def test_a_start_that_fits_several_groups_is_refused_with_all_of_them() -> None:
    with pytest.raises(CheckpointAmbiguousError) as caught:
        found("01AAA")

    said = caught.value.message
    assert said.startswith("'01AAA' fits 2 checkpoint groups:\n")
    # Each can be typed as it is told: by its number, or by the ending of its id.
    for group, line in zip((FIRST, SECOND), said.splitlines()[1:], strict=True):
        assert line.endswith(group.label)
        assert found(next(word for word in line.split() if id_part(word))) is group
    assert PLAN in caught.value.hint


def test_a_start_that_is_too_short_names_nothing() -> None:
    assert found("01DD") is THIRD
    with pytest.raises(CheckpointNotFoundError):
        found(THIRD.group_id[: SHORTEST_PART - 1])


def test_a_label_names_its_group() -> None:
    assert found("start") is FIRST
    assert found(" start ") is FIRST


@pytest.mark.parametrize("ending", ["0001", "00001", "0000001"])
def test_the_end_of_an_id_is_enough_too(ending: str) -> None:
    assert FIRST.group_id.endswith("0001")
    assert found(ending, (FIRST, THIRD)) is FIRST


def test_a_group_by_its_own_id_counts_before_one_by_that_of_a_resource() -> None:
    other = a_group(4, own=ulid(1, "01ZZZZ"))

    assert found("00001", (FIRST, other)) is FIRST
    assert found("01ZZ", (FIRST, other)) is other


def test_labels_are_told_apart_by_case_and_then_parts_of_them_are_not() -> None:
    shouted = a_group(4, label="START", labelled_by_hand=True)

    assert found("START", (*GROUPS, shouted)) is shouted
    assert found("Start", (FIRST, SECOND)) is FIRST


def test_a_label_that_several_groups_have_is_refused() -> None:
    with pytest.raises(CheckpointAmbiguousError) as caught:
        found("step")

    assert len(caught.value.message.splitlines()) == 3


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


RUN = (
    a_group(10, label="start"),
    a_group(11, label="after write a.txt", last_completed_step=0),
    a_group(12, label="before the move", labelled_by_hand=True, last_completed_step=0),
    a_group(13, label="complete", step_index=1, last_completed_step=1),
    a_group(14, label="left behind", superseded=True),
)


@pytest.mark.parametrize(
    ("wanted", "number"),
    [("0", 10), ("1", 11), ("2", 13), ("-1", 11), ("-2", 10), (" 2 ", 13)],
)
def test_a_number_means_the_state_that_a_step_left(wanted: str, number: int) -> None:
    """Two steps are over, of which each has a row; so has the label, without a number."""
    line = (*RUN[:3], RUN[3])

    assert found(wanted, line).position.seq == number


@pytest.mark.parametrize("wanted", ["3", "-3", "007", "+1", "1.0", "99999999999999999999"])
def test_a_number_that_no_step_has_names_nothing(wanted: str) -> None:
    with pytest.raises(CheckpointNotFoundError):
        found(wanted, RUN)


def test_a_step_whose_groups_are_gone_says_so() -> None:
    with pytest.raises(CheckpointNotFoundError) as caught:
        found("1", (RUN[0], RUN[3]))

    assert "step 1" in caught.value.message


@pytest.mark.parametrize(
    ("wanted", "number"),
    [("one", 11), ("ON", 11), ("two", 13), ("the MOVE", 12), ("a.txt", 11), ("behind", 14)],
)
def test_a_part_of_a_name_or_of_a_label_is_enough_if_one_has_it(wanted: str, number: int) -> None:
    assert found(wanted, RUN).position.seq == number


def test_a_whole_name_counts_before_a_part_of_another() -> None:
    longer = a_group(15, label="one more", labelled_by_hand=True, last_completed_step=1)

    assert found("one", (*RUN, longer)).position.seq == 11
    assert found("one m", (*RUN, longer)) is longer


def test_steps_and_labels_by_hand_count_before_what_a_rollback_kept() -> None:
    kept = a_group(
        15,
        label="before restoring one",
        reason=CheckpointReason.BEFORE_ROLLBACK,
        last_completed_step=1,
    )

    assert found("on", (*RUN, kept)).position.seq == 11
    assert found("restoring", (*RUN, kept)) is kept


def test_a_part_that_fits_several_is_refused_with_what_tells_them_apart() -> None:
    with pytest.raises(CheckpointAmbiguousError) as caught:
        found("o", RUN[:4])

    first, *lines = caught.value.message.splitlines()
    assert first == "'o' fits 3 checkpoint groups:"
    assert [line.split()[0] for line in lines] == ["1", "2025-03-01", "2"]


def test_what_there_is_can_be_typed_as_it_is_told() -> None:
    lines = told_apart(line_of(RUN))

    assert [line.split()[-1] for line in lines] == ["start", "one", "move", "two", "(superseded)"]
    for line, group in zip(lines, RUN, strict=True):
        assert found(next(word for word in line.split() if id_part(word)), RUN) is group


@pytest.mark.parametrize("label", ["0", "-1", "12", "+3", " 4 ", "007"])
def test_a_label_may_not_look_like_a_number(label: str) -> None:
    assert looks_like_an_ordinal(label)
    assert not looks_like_an_ordinal(f"v{label}")


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


def refused(wanted: str, groups: Sequence[CheckpointGroup]) -> str:
    with pytest.raises((CheckpointNotFoundError, CheckpointAmbiguousError)) as caught:
        found(wanted, groups)
    return caught.value.message


def test_what_is_refused_is_named_as_it_was_typed() -> None:
    assert refused("step", GROUPS).startswith("'step' fits 2 checkpoint groups:")
    twice = [a_group(n, label=f"same {n}", labelled_by_hand=True) for n in (15, 16)]
    assert refused("SAME", (*RUN, *twice)).startswith("'SAME' fits 2 checkpoint groups:")
    assert refused("1", (RUN[0], RUN[3])) == (
        f"plan {PLAN} has no checkpoint, group or label '1' any more: what step 1 left was pruned,"
        " or the step has failed, or a correction has left it alone"
    )
    assert refused("one", (RUN[0], RUN[3])).startswith(f"plan {PLAN} has no checkpoint, group or")
    assert "'one' any more" in refused("one", (RUN[0], RUN[3]))


def test_of_two_groups_that_fit_the_one_that_still_counts_is_meant() -> None:
    kept = [
        a_group(
            number,
            label="before moving house",
            reason=CheckpointReason.BEFORE_ROLLBACK,
            last_completed_step=1,
            superseded=number == 15,
        )
        for number in (15, 16)
    ]
    assert found("before moving", (*RUN, *kept)) is kept[1]
    assert found("BEFORE MOVING HOUSE", (*RUN, *kept)) is kept[1]
    gone = [
        a_group(number, label=label, last_completed_step=1, superseded=True)
        for number, label in ((17, "other"), (18, "wrote 18.md"))
    ]
    live = a_group(19, label="wrote 19.md", last_completed_step=1)
    assert found(".md", (*RUN, *gone, live)) is live
    assert found(".md", (*RUN, *gone)) is gone[1]
    both = a_group(20, label="wrote 20.md", last_completed_step=1)
    assert refused(".md", (*RUN, live, both)).startswith("'.md' fits 2 checkpoint groups:")


def test_of_two_steps_of_one_name_the_one_that_has_a_group_is_meant() -> None:
    action = replace(ACTION, steps=(replace(ACTION.steps[0], name="same"),) * 2)

    def named(*groups: CheckpointGroup) -> CheckpointGroup:
        plan = a_plan(action=action, last_completed_step=1, head=groups[-1].head)
        line = timeline(plan, groups)
        return CheckpointNames(PLAN, lambda: line, lambda _: None, lambda *_: None).find("same", [])

    second = a_group(13, label="after two", last_completed_step=1)
    assert named(RUN[0], second) is second
    with pytest.raises(CheckpointNotFoundError, match="'same' any more: what step 1 left"):
        named(RUN[0])
    with pytest.raises(CheckpointAmbiguousError, match="^'same' fits 2 checkpoint groups"):
        named(RUN[0], a_group(11, label="after one", last_completed_step=0), second)


def test_what_fits_several_is_told_with_name_and_label_and_steps_without_a_group_are_not() -> None:
    (line,) = told_apart(line_of(RUN), [RUN[1].group_id])

    assert line.endswith(f"  one ({RUN[1].label})")
    assert len(told_apart(line_of((RUN[0], RUN[3])))) == 2
