"""What people type when they are in a hurry, and terminals that are not what one would wish."""

import os
import re
import subprocess

import pytest
from tests.e2e.test_what_people_read import TYPED, day
from tests.support.agents import COMMAND
from tests.support.refusals import refused
from tests.support.terminals import on_a_terminal
from tests.support.world import PlanHandle, World, write

COLOUR = re.compile(r"\x1b\[[0-9;]*m")


@pytest.fixture
def plan(world: World) -> PlanHandle:
    return world.run(write("a.txt", "a\n", "write the page"), write("b.txt", "b\n", "write more"))


def test_a_part_that_fits_several_steps_is_refused_with_what_tells_them_apart(
    plan: PlanHandle,
) -> None:
    answer = plan.rollback("write")
    refused(answer, "checkpoint-ambiguous")
    lines = [line.split() for line in answer.error["message"].splitlines()[1:]]
    assert [(words[0], " ".join(words[4:])) for words in lines] == [
        ("1", "write the page (after file.write a.txt)"),
        ("2", "write more (after file.write b.txt)"),
    ]
    for words in lines:  # and the letters do name it
        plan.agents("plan", "checkpoint", "show", plan.id, words[3]).ok()


def test_a_decision_that_fits_several_is_refused_too(plan: PlanHandle) -> None:
    told = refused(plan.agents("plan", "explain", "write"), "decision-ambiguous")
    assert "write the page" in told
    assert "write more" in told


@pytest.mark.parametrize("label", ["7", "-1", "0", "+3", " 2 "])
def test_no_label_may_look_like_a_number(plan: PlanHandle, label: str) -> None:
    before = plan.groups
    answer = plan.agents("plan", "checkpoint", "create", f"--label={label}", plan.id)
    refused(answer, "label-is-a-number", 2)
    assert plan.groups == before


def test_of_a_step_that_is_called_as_a_number_the_number_counts(world: World) -> None:
    plan = world.run(write("a.txt", "a"), write("b.txt", "b", "1"), write("c.txt", "c"))
    plan.rollback("1").ok()
    assert {path.name for path in plan.sandbox.glob("?.txt")} >= {"a.txt"}
    assert not (plan.sandbox / "b.txt").exists()


def test_ids_may_be_typed_in_lower_case(plan: PlanHandle) -> None:
    agents, group = plan.agents, plan.groups[0]
    assert agents("plan", "status", plan.id.lower()).ok().data["plan_id"] == plan.id
    assert agents("plan", "status", plan.id[-6:].lower()).ok().data["plan_id"] == plan.id
    for name in (group.group_id.lower(), group.group_id[-8:].lower(), group.checkpoint_id.lower()):
        shown = agents("plan", "checkpoint", "show", plan.id.lower(), name).ok().data
        assert shown["group_id"] == group.group_id
    decision = plan("tree").ok().data["tree"]["children"][0]["id"]
    for name in (decision.lower(), decision[-8:].lower()):
        assert agents("plan", "explain", name).ok().data["decision_id"] == decision
    corrected = agents("plan", "correct", "2", "-g", "again", "--yes").ok().data["correction_id"]
    for name in (corrected.lower(), corrected[-8:].lower()):
        agents("plan", "diff", "--correction", name).ok()


def test_a_plan_of_another_place_needs_any_or_its_id(world: World, plan: PlanHandle) -> None:
    elsewhere = world.top / "elsewhere"
    elsewhere.mkdir()
    away = world.agents.at(elsewhere)
    for name in ("demo-1", "demo"):
        answer = away("plan", "status", name)
        assert answer.code == 1
        assert str(world.project.path) in answer.error["message"] + answer.error["hint"]
        assert "--any" in answer.error["hint"]
        assert away("plan", "status", "--any", name).ok().data["plan_id"] == plan.id
    assert away("plan", "status", plan.id).ok().data["plan_id"] == plan.id


def test_colours_that_are_forced_and_forbidden_at_once_are_forbidden(
    world: World, plan: PlanHandle
) -> None:
    both = {"NO_COLOR": "1", "FORCE_COLOR": "1"}
    for words in (("plan", "status"), ("plan", "diff"), ("plan", "status", "nobody")):
        _, drawn = on_a_terminal(world, *words, **both)
        _, coloured = on_a_terminal(world, *words)
        found = COLOUR.findall(drawn)
        assert [code for code in found if re.search(r"[345][0-8]|9[0-7]", code)] == []
        assert "38;5" in coloured


def test_every_answer_fits_a_terminal_of_twenty_columns(world: World) -> None:
    said = day(world, "rich", 20)
    assert {s.typed for s in said} >= set(TYPED)
    verbatim = re.compile(r"plan (diff|show|artifacts|status|errors|correct)|tool show")
    for one in said:
        assert "Traceback" not in one.err
        wide = [line for line in one.out.splitlines() if len(line) > 20]
        # What a step said, a patch and an example are told as they are.
        assert wide == [] or verbatim.match(one.typed), one.typed


@pytest.mark.parametrize(
    "words", [("plan", "rollback", "0"), ("plan", "apply"), ("plan", "discard"), ("uninstall",),
              ("prune", "--older-than", "0m", "--unapplied")],
)  # fmt: skip
def test_without_a_terminal_nothing_is_done_that_would_be_asked(
    world: World, plan: PlanHandle, words: tuple[str, ...]
) -> None:
    before = plan.status
    answer = world.agents.process(*words)
    assert answer.code == 2
    assert "--yes" in answer.err
    assert plan.status == before


@pytest.mark.parametrize("closed", ["0", "1", "2"])
def test_closed_streams_do_no_harm(world: World, plan: PlanHandle, closed: str) -> None:
    shell = f"exec {COMMAND} plan checkpoint list {closed}>&-"
    done = subprocess.run(["sh", "-c", shell], cwd=world.project.path, capture_output=True,
                          env=world.agents.environ, check=False)  # fmt: skip
    assert b"Traceback" not in done.stderr
    assert (b"write more" in done.stdout) is (closed != "1")


def test_a_reader_that_leaves_is_no_failure(world: World, plan: PlanHandle) -> None:
    shell = f"{COMMAND} plan diff | true; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", shell], cwd=world.project.path, capture_output=True,
                          env={**world.agents.environ, "PATH": os.environ["PATH"]},
                          check=False)  # fmt: skip
    assert (done.returncode, done.stderr) == (0, b"")
