"""What the doctor makes of what it finds: what may be mended, and what is left to a person."""

import re
from typing import Any

import pytest
from domain_builders import DOCS, NOW, OTHER_PLAN, PLAN, a_plan, a_resource, ulid

from cleveragents.domain.doctor import (
    Check,
    Leftover,
    LeftoverKind,
    PlanFacts,
    database_findings,
    leftover_findings,
    lock_findings,
    moved_findings,
    pins_of_others,
    plan_findings,
    scratch_findings,
    store_findings,
    stranger_findings,
)
from cleveragents.domain.ids import GroupId
from cleveragents.domain.plan import Phase, Plan, State
from cleveragents.domain.resource import SandboxStatus
from cleveragents.domain.subplan import ChildOf, MergeOutcome


def facts(plan: Plan | None = None, **fields: Any) -> PlanFacts:
    resources = fields.pop("resources", (a_resource(), a_resource(DOCS)))
    return PlanFacts(plan=plan or a_plan(), resources=resources, **{"owner": None, **fields})


def child(outcome: MergeOutcome = MergeOutcome.PENDING) -> Plan:
    link = ChildOf(
        parent_id=OTHER_PLAN, root_id=OTHER_PLAN, name="c", outcome=outcome, invalidated=False
    )
    return a_plan(child_of=link)


def leftover(**fields: Any) -> Leftover:
    values: dict[str, Any] = {
        "kind": LeftoverKind.FOLDER,
        "repository": "",
        "name": "/data/sandboxes/x/code",
        "plan_id": ulid(7),
        "path": "/data/sandboxes/x/code",
        "there": True,
        "precious": False,
    }
    return Leftover(**{**values, **fields})


# --- plans --------------------------------------------------------------------------------------

RUNNING = a_plan(state=State.PROCESSING)


@pytest.mark.parametrize(
    ("plan", "check", "mendable"),
    [
        (RUNNING, Check.PLANS, True),
        (a_plan(state=State.PROCESSING, phase=Phase.APPLY), Check.APPLIES, False),
        (a_plan(rollback_target=GroupId(ulid(5))), Check.ROLLBACKS, True),
        (a_plan(state=State.PROCESSING, rollback_target=GroupId(ulid(5))), Check.ROLLBACKS, True),
    ],
)
def test_a_plan_that_was_cut_off_is_found(plan: Plan, check: Check, *, mendable: bool) -> None:
    (finding,) = plan_findings([facts(plan)])
    assert (finding.check, finding.subject, finding.mendable) == (check, PLAN, mendable)


@pytest.mark.parametrize(
    "item",
    [
        facts(RUNNING, owner="process 7"),
        facts(child(), owner="process 7", lost={"code": True}),
        facts(a_plan().cancel(NOW), lost={"code": True}),
        facts(a_plan(state=State.ERRORED)),
        facts(),
    ],
)
def test_a_plan_in_use_and_one_that_is_over_are_left_alone(item: PlanFacts) -> None:
    assert plan_findings([item]) == []


def test_each_sandbox_that_is_gone_is_named_and_no_plan_is_given_up_for_it() -> None:
    found = plan_findings([facts(lost={"docs": False, "code": True})])
    assert [finding.mendable for finding in found] == [True, False]
    assert ["`code`" in found[0].problem, "`docs`" in found[1].problem] == [True, True]
    assert "from its snapshots" in found[0].remedy
    assert f"agents plan cancel {PLAN}" in found[1].remedy


def test_the_sandbox_of_a_child_is_named_too() -> None:
    (found,) = plan_findings([facts(child(), lost={"code": True})])
    assert (found.check, found.mendable) == (Check.SANDBOXES, True)


# --- projects that moved ------------------------------------------------------------------------


def test_a_project_whose_new_place_is_known_can_be_followed() -> None:
    item = facts(lost={"code": True}, strays={"code": "/new"})
    ((finding, move),) = moved_findings([item])
    assert finding.mendable
    assert "/new" in finding.remedy
    assert move is not None
    assert (move.plan_id, move.resource, move.old, move.new) == (PLAN, "code", "/project", "/new")
    assert plan_findings([item]) == []  # what is wrong with its sandbox may be just that


def test_one_whose_new_place_is_not_known_is_asked_for() -> None:
    ((finding, move),) = moved_findings([facts(strays={"docs": None})])
    assert (finding.mendable, move) == (False, None)
    assert "agents doctor --fix --moved /project=NEW" in finding.remedy


@pytest.mark.parametrize("plan", [child(), a_plan().cancel(NOW)])
def test_only_the_plan_at_the_top_is_asked_about_its_projects(plan: Plan) -> None:
    assert moved_findings([facts(plan, strays={"code": "/new"})]) == []
    assert moved_findings([facts(owner="process 7", strays={"code": "/new"})]) == []


# --- what is left behind ------------------------------------------------------------------------


def test_a_sandbox_of_no_plan_is_told_and_left_for_another_database_may_know_it() -> None:
    pairs = leftover_findings([leftover(), leftover(precious=True)], [facts()])
    assert [finding.mendable for finding, _ in pairs] == [False, False]
    assert "rm -r /data/sandboxes/x/code" in pairs[1][0].remedy


def test_a_ref_of_ours_that_belongs_to_no_plan_goes_unless_it_is_the_only_copy() -> None:
    refs = [leftover(kind=LeftoverKind.REF, precious=precious) for precious in (False, True)]
    assert [f.mendable for f, _ in leftover_findings(refs, [facts()])] == [True, False]


def test_a_ref_of_another_data_folder_is_named_and_nothing_else() -> None:
    other = leftover(kind=LeftoverKind.REF, ours=False)
    over = facts(a_plan().cancel(NOW), resources=())
    of_plan = leftover(kind=LeftoverKind.REF, ours=False, plan_id=PLAN)

    assert leftover_findings([other, of_plan], [over]) == []
    assert pins_of_others([other, of_plan], [over]) == [other, of_plan]
    # A plan that was restored from a copy stands on the pin that its original has made.
    assert pins_of_others([other, of_plan], [facts()]) == [other]


def test_a_ref_of_a_plan_that_may_be_in_the_making_is_left_alone() -> None:
    young = leftover(kind=LeftoverKind.REF, young=True)
    assert leftover_findings([young], [facts()]) == []
    over = facts(a_plan().cancel(NOW), resources=())
    known = leftover(kind=LeftoverKind.REF, young=True, plan_id=PLAN)
    assert len(leftover_findings([known], [over])) == 1


def test_snapshots_of_no_plan_are_told_and_left() -> None:
    (found,) = stranger_findings(["/data/snapshots/x.db"])
    assert not found.mendable
    assert found.remedy.endswith("rm /data/snapshots/x.db")


def test_a_ref_that_is_the_only_copy_is_told_with_the_command_to_delete_it() -> None:
    ref = leftover(kind=LeftoverKind.REF, repository="/r/.git", name="refs/x", precious=True)
    ((finding, _),) = leftover_findings([ref], [])
    assert finding.remedy.endswith("git -C /r/.git update-ref -d refs/x")
    assert "in /r/.git" in finding.problem


def test_a_plan_that_is_not_over_keeps_everything() -> None:
    assert leftover_findings([leftover(plan_id=PLAN, there=False)], [facts()]) == []


def test_a_plan_that_is_over_keeps_a_sandbox_that_it_still_needs() -> None:
    over = a_plan().cancel(NOW)
    found = leftover(plan_id=PLAN, path="/data/db")
    kept = a_resource(sandbox_path="/data/db/app.db", status=SandboxStatus.READY)
    gone = a_resource(sandbox_path="/data/db/app.db", status=SandboxStatus.REMOVED)
    assert leftover_findings([found], [facts(over, resources=(kept,))]) == []
    assert len(leftover_findings([found], [facts(over, resources=(gone,))])) == 1


def test_what_is_kept_does_not_keep_what_comes_after_it() -> None:
    live, over = a_plan(), a_plan(plan_id=OTHER_PLAN).cancel(NOW)
    needed = a_resource(sandbox_path="/data/needed", plan_id=OTHER_PLAN)
    left = [
        leftover(plan_id=PLAN),
        leftover(plan_id=OTHER_PLAN, path="/data/needed"),
        leftover(),
    ]

    pairs = leftover_findings(left, [facts(live), facts(over, resources=(needed,))])

    assert [found for _, found in pairs] == [left[2]]


def test_what_an_applied_plan_left_is_in_the_project_and_may_go() -> None:
    applied = a_plan(phase=Phase.APPLY, state=State.APPLIED)
    found = leftover(plan_id=PLAN, there=False, precious=True)
    ((finding, _),) = leftover_findings([found], [facts(applied)])
    assert finding.mendable


def test_what_a_settled_child_left_may_go() -> None:
    found = leftover(plan_id=PLAN, there=False)
    assert len(leftover_findings([found], [facts(child(MergeOutcome.MERGED))])) == 1
    assert leftover_findings([found], [facts(child())]) == []


# --- the rest -----------------------------------------------------------------------------------


def test_damage_is_never_mended_by_removing_it() -> None:
    found = [*database_findings(["page 7"]), *store_findings({PLAN: ["one", "two"]}, {})]
    assert [finding.mendable for finding in found] == [False] * 3
    assert found[1].remedy.startswith(f"agents plan checkpoint verify {PLAN}")


def test_dead_locks_and_scratch_files_are_mended() -> None:
    found = [*lock_findings({PLAN: "process 7"}), *scratch_findings(["a.db"])]
    assert [(f.subject, f.mendable) for f in found] == [(PLAN, True), ("a.db", True)]
    assert "process 7" in found[0].problem


def test_each_finding_tells_in_words_what_it_is_about_and_what_to_do() -> None:
    target = GroupId(ulid(5))
    ref = leftover(kind=LeftoverKind.REF, repository="/r/.git", name="refs/x", precious=True)
    plans = [facts(RUNNING), facts(a_plan(rollback_target=target), lost={"code": True})]
    applying = facts(a_plan(state=State.PROCESSING, phase=Phase.APPLY))
    moved = moved_findings([facts(strays={"code": "/new"}), facts(strays={"docs": None})])
    over = facts(a_plan().cancel(NOW), resources=())
    left = leftover_findings([leftover(), ref, leftover(plan_id=PLAN)], [over])
    found = [
        *database_findings(["page 7"]),
        *lock_findings({PLAN: "process 7"}),
        *plan_findings([*plans, applying]),
        *(finding for finding, _ in (*moved, *left)),
        *store_findings({PLAN: ["a lost file"]}, {}),
        *scratch_findings(["a.db"]),
    ]

    assert {finding.check for finding in found} == set(Check)
    for finding in found:
        assert finding.problem
        assert finding.remedy
        # Only what is to be filled in is in capitals.
        told = f"{finding.subject} {finding.problem} {finding.remedy}"
        assert set(re.findall(r"[A-Z]{2,}", told)) <= {"NEW"}
    told = {finding.problem for finding in found}
    folder = "the folder /data/sandboxes/x/code belongs to"
    assert told > {
        "page 7",
        "a lost file",
        f"its rollback to {target} was cut off",
        f"the sandbox of `code` is not usable at {a_resource().sandbox_path}",
        "the project of `code` is not at /project any more",
    }
    assert [finding.problem for finding, _ in left] == [
        f"{folder} no plan of this database",
        "the ref refs/x in /r/.git belongs to no plan of this database,"
        " and holds what exists nowhere else",
        f"{folder} a plan that is over",
    ]
    assert f"agents plan apply {PLAN}" in {finding.remedy for finding in found}
    assert {finding.subject for finding in found} == {"metadata", PLAN, ulid(7), "a.db"}
