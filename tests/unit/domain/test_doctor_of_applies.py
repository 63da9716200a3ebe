"""The doctor on undos of an apply that were cut off, broken refs, and what was removed before."""

import pytest
from domain_builders import LATER, NOW, OTHER_PLAN, PLAN, a_plan, a_resource
from test_doctor_rules import facts, leftover

from cleveragents.domain.applied import AppliedChange, ApplySide
from cleveragents.domain.doctor import (
    Check,
    Finding,
    LeftoverKind,
    leftover_findings,
    plan_findings,
    store_findings,
    stranger_findings,
)
from cleveragents.domain.plan import Phase, State
from cleveragents.domain.resource import SandboxStatus

APPLIED = a_plan(phase=Phase.APPLY, state=State.APPLIED)
CHANGE = AppliedChange(plan_id=PLAN, side=ApplySide.AFTER, until=LATER, changed_at=NOW)
REF = leftover(
    kind=LeftoverKind.REF,
    repository="/r/.git",
    name="refs/x",
    plan_id=PLAN,
    broken=True,
    base="abc",
)


@pytest.mark.parametrize(
    ("change", "word"),
    [(CHANGE.begin({}), "undo"), (CHANGE.begin({}).arrived(NOW).begin({}), "redo")],
)
def test_an_undo_or_redo_of_an_apply_that_was_cut_off_is_told_with_what_to_type(
    change: AppliedChange, word: str
) -> None:
    items = [
        facts(a_plan(state=State.PROCESSING, plan_id=OTHER_PLAN)),
        facts(APPLIED, applied=change),
    ]

    other, found = plan_findings(items)

    assert other.subject == OTHER_PLAN
    assert found == Finding(
        check=Check.APPLIES,
        subject=PLAN,
        problem=f"the {word} of its apply was cut off, and may have changed the project",
        remedy=f"agents {word} --plan {PLAN}",
        mendable=False,
    )


def test_an_apply_that_stands_and_one_that_somebody_moves_are_left_alone() -> None:
    assert plan_findings([facts(APPLIED, applied=CHANGE)]) == []
    assert plan_findings([facts(APPLIED, applied=CHANGE.begin({}), owner="process 7")]) == []


@pytest.mark.parametrize(("base", "remedy"), [("abc", "make it again"), ("", "remove it")])
def test_a_ref_that_a_power_cut_has_emptied_is_mended_while_its_plan_lives(
    base: str, remedy: str
) -> None:
    empty = leftover(
        kind=LeftoverKind.REF,
        repository="/r/.git",
        name="refs/x",
        plan_id=PLAN,
        broken=True,
        base=base,
    )

    ((found, left),) = leftover_findings([empty], [facts()])

    assert left is empty
    assert found == Finding(
        check=Check.LEFTOVERS,
        subject=PLAN,
        problem="the ref refs/x in /r/.git holds nothing, as after a power cut",
        remedy=remedy,
    )


def test_a_broken_ref_is_found_among_others_and_only_if_it_is_ours() -> None:
    over = facts(a_plan(plan_id=OTHER_PLAN).cancel(NOW), resources=())
    whole = leftover(plan_id=PLAN)
    young = leftover(kind=LeftoverKind.REF, young=True)
    foreign = leftover(kind=LeftoverKind.REF, plan_id=PLAN, broken=True, ours=False)
    unknown = leftover(kind=LeftoverKind.REF, broken=True)
    gone = leftover(plan_id=OTHER_PLAN)

    pairs = leftover_findings([REF, whole, young, foreign, unknown, gone], [facts(), over])

    assert [left for _, left in pairs] == [REF, unknown, gone]
    assert [found.problem.endswith("power cut") for found, _ in pairs] == [True, False, False]


def test_a_broken_ref_of_a_plan_that_is_over_goes_with_it() -> None:
    ((found, _),) = leftover_findings([REF], [facts(a_plan().cancel(NOW), resources=())])

    assert "belongs to a plan that is over" in found.problem


def test_what_a_plan_keeps_for_taking_its_apply_back_stays() -> None:
    left = [leftover(plan_id=PLAN), leftover(plan_id=OTHER_PLAN)]
    over = facts(a_plan(plan_id=OTHER_PLAN).cancel(NOW), resources=())

    pairs = leftover_findings(left, [facts(APPLIED, resources=(), applied=CHANGE), over])

    assert [found for _, found in pairs] == [left[1]]


@pytest.mark.parametrize(
    ("status", "path", "goes"),
    [
        (SandboxStatus.REMOVED, "/data/x", True),
        (SandboxStatus.REMOVED, "/data/y", False),
        (SandboxStatus.MISSING, "/data/x", False),
    ],
)
def test_only_a_sandbox_that_we_have_removed_before_goes_though_it_holds_something(
    status: SandboxStatus, path: str, *, goes: bool
) -> None:
    item = facts(
        a_plan().cancel(NOW), resources=(a_resource(sandbox_path="/data/x", status=status),)
    )
    back = leftover(plan_id=PLAN, path=path, there=False, precious=True)

    ((found, _),) = leftover_findings([back], [item])

    assert found.mendable is goes


def test_what_could_not_be_judged_has_a_remedy_of_its_own() -> None:
    judged, damaged = store_findings({PLAN: ["busy"], OTHER_PLAN: ["lost"]}, {PLAN: "look later"})

    assert judged.remedy == "look later"
    assert damaged.remedy.startswith(f"agents plan checkpoint verify {OTHER_PLAN}")


def test_snapshots_of_no_plan_are_told_by_where_they_are() -> None:
    assert stranger_findings(["/data/x.db"]) == [
        Finding(
            check=Check.STORE,
            subject="/data/x.db",
            problem="these snapshots belong to no plan of this database",
            remedy="if no other one uses this data folder: rm /data/x.db",
            mendable=False,
        )
    ]


def test_who_gives_up_a_plan_for_a_lost_sandbox_is_told_that_checkpoints_stay_till_then() -> None:
    (found,) = plan_findings([facts(lost={"code": False})])

    assert found.remedy == (
        f"put it back, or give the plan up with `agents plan cancel {PLAN}`;"
        " checkpoints are kept until then"
    )
