"""How a person names a checkpoint: by number, by a part of a name or label, by a part of its id."""

import re
from pathlib import Path

import pytest
from tests.support.refusals import refused
from tests.support.world import PlanHandle, World, write


@pytest.fixture
def plan(world: World) -> PlanHandle:
    return world.run(
        write("hello.txt", "hello", "write the greeting"),
        write("bye.txt", "bye", "say good-bye"),
        write("more.txt", "more", "write more"),
    )


def files(plan: PlanHandle) -> set[str]:
    return {n for n in ("hello.txt", "bye.txt", "more.txt") if (plan.sandbox / n).exists()}


ONE, TWO = {"hello.txt"}, {"hello.txt", "bye.txt"}


@pytest.mark.parametrize(
    ("wanted", "there"),
    [
        ("0", set[str]()),
        ("1", ONE),
        ("2", TWO),
        ("GREETING", ONE),
        ("good-bye", TWO),
        ("say", TWO),
        ("after file.write hello", ONE),
    ],
)
def test_a_number_or_a_part_of_a_name_takes_the_plan_there(
    plan: PlanHandle, wanted: str, there: set[str]
) -> None:
    plan.rollback(wanted).ok()

    assert files(plan) == there


def test_what_was_kept_is_reached_by_the_end_of_its_id_in_lower_case(plan: PlanHandle) -> None:
    plan.rollback("1").ok()
    kept = next(group for group in plan.groups if group.reason == "before_rollback")

    plan.rollback(kept.group_id[-6:].lower()).ok()

    assert files(plan) == {*TWO, "more.txt"}


def test_a_name_that_fits_several_is_refused_with_what_tells_them_apart(plan: PlanHandle) -> None:
    said = refused(plan.rollback("write"), "checkpoint-ambiguous")

    lines = said.splitlines()[1:3]
    assert [line.split()[0] for line in lines] == ["1", "3"]
    for line, there in zip(lines, (ONE, {*TWO, "more.txt"}), strict=True):
        plan.rollback(line.split()[3]).ok()
        assert files(plan) == there
        plan("execute").ok()


@pytest.mark.parametrize("label", ["3", "-1", "007", "+2"])
def test_a_label_that_looks_like_a_number_is_refused(plan: PlanHandle, label: str) -> None:
    refused(plan("checkpoint", "create", f"--label={label}"), "label-is-a-number", 2)

    plan("checkpoint", "create", "--label", f"v{label}").ok()
    assert plan.rollback(f"v{label}").ok().data["rollback_summary"]["label"] == f"v{label}"


def test_a_number_that_no_step_has_is_refused(plan: PlanHandle) -> None:
    for wanted in ("4", "-4", "99"):
        said = refused(plan("checkpoint", "show", "{}", "--", wanted), "checkpoint-not-found")
        assert "checkpoint list" in said


def test_what_status_tree_list_and_rollback_tell_is_one_id(plan: PlanHandle) -> None:
    target = next(group for group in plan.groups if group.label == "decision 2: say good-bye")
    told = plan.rollback(target.rows[0]["checkpoint_id"]).ok().data

    assert told["rollback_summary"]["checkpoint"] == target.group_id
    assert plan.status["last_checkpoint_id"] == target.group_id
    explained = plan.agents("plan", "explain", target.decision_id).ok().data
    assert (explained["checkpoint"], explained["group_id"]) == (target.group_id, target.group_id)


ULID = re.compile(r"(?<![\w/])[0-7][0-9A-HJKMNP-TV-Z]{25}(?![\w/])")


def test_what_people_read_has_names_and_short_ids_that_can_be_typed(
    world: World, plan: PlanHandle
) -> None:
    """`plan` is the latest; an older one has to be named, and so its hints name it."""
    older, agents = plan, world.agents
    world.run(write("x.txt", "x"))
    plain = ("--format", "plain", "plan")

    for words in (("status",), ("tree",), ("checkpoint", "list"), ("artifacts",), ("list",)):
        said = agents.inside(*plain, *words).ok().out
        assert not ULID.search(said), said
    assert "next: agents plan apply\n" in agents.inside(*plain, "status").ok().out
    said = agents.inside(*plain, "status", older.id).ok().out
    assert "next: agents plan apply demo-1\n" in said
    assert said.startswith("demo-1; ")
    said = agents.inside(*plain, "rollback", "--yes", "demo-1", "1").ok().out
    undo = re.search(r"undo it: agents plan rollback (.*)", said)
    assert undo is not None
    assert not ULID.search(said)
    agents.inside("plan", "rollback", "--yes", *undo[1].split()).ok()
    assert files(older) == {*TWO, "more.txt"}


def test_a_plan_of_another_place_is_hinted_at_with_any(
    world: World, plan: PlanHandle, tmp_path: Path
) -> None:
    away = world.agents.at(tmp_path)

    said = away("--format", "plain", "plan", "status", plan.id).ok().out

    assert "next: agents plan apply --any demo-1\n" in said
    typed = away("--format", "plain", "plan", "diff", "--any", "demo-1").ok().out
    assert "hello.txt" in typed


def test_an_error_calls_a_plan_by_its_name_for_people_and_by_its_id_for_programs(
    plan: PlanHandle,
) -> None:
    plan("apply", "--yes").ok()
    told = plan("rollback", "{}", "1").error
    said = plan.agents.inside("--format", "plain", "plan", "rollback", plan.id, "1")

    assert plan.id in told["message"]
    assert "plan demo-1 is applied" in said.err
    assert plan.id not in said.err
