"""What a person lets stand is kept, and unchecked until it ran again: told wherever it matters."""

import os
from typing import Any

from tests.support.corrections import correct, decisions, read, step_file
from tests.support.refusals import refused
from tests.support.terminals import asking
from tests.support.world import PlanHandle, Step, World, shell, write

GREETING = write("hello.txt", "Hello\n", "write the greeting")
CHECK = shell("grep Hello hello.txt", "check it")
BUILD = shell("wc -c < hello.txt > size.txt", "build")
HI = write("hello.txt", "Hi\n", "write the greeting")
KEPT = "kept as it was when `file.write: write the greeting` was corrected"


def lint(*reads: str) -> dict[str, Any]:
    return {"lint": {"command": ["true"], "resource": "code", "reads": list(reads)}}


def say_hi(world: World, plan: PlanHandle, *more: str) -> Any:
    file = step_file(world, HI)
    return correct(plan, decisions(plan)[0], "--step-file", file, *more)


def unchecked(plan: PlanHandle) -> list[int]:
    return [item["step_index"] for item in plan.status.get("unchecked", [])]


# --- keeping ------------------------------------------------------------------------------------


def test_a_kept_step_is_unchecked_and_everything_says_so(world: World) -> None:
    plan = world.run(GREETING, CHECK, BUILD)
    check = decisions(plan)[1]

    done = say_hi(world, plan, "--keep", "check it").ok()

    assert done.data["steps"] == [0, 2]
    assert done.data["unchecked"] == [check]
    assert done.envelope["status"] == "warn"
    assert read(plan, "size.txt").strip() == "3"
    assert decisions(plan)[1] == check
    (told,) = plan.status["unchecked"]
    assert told == {
        "plan_id": plan.id,
        "child": None,
        "step_index": 1,
        "step": "check it",
        "decision_id": check,
        "why": KEPT,
    }
    assert [item["status"] for item in plan.status["progress"]] == ["complete"] * 3
    nodes = {node["id"]: node for node in plan("tree").ok().data["tree"]["children"]}
    assert nodes[check]["unchecked"] is True
    assert sum("unchecked" in node for node in nodes.values()) == 1
    assert plan.agents("plan", "explain", check).ok().data["unchecked"] == KEPT
    shown = world.agents.inside("plan", "status", plan.id).ok()
    assert "finished, unchecked" in shown.out
    assert f"step 2 (check it) is unchecked: {KEPT}" in shown.err
    assert "(unchecked)" in world.agents.inside("plan", "tree", plan.id).ok().out


def test_who_applies_is_told_what_is_unchecked(world: World) -> None:
    plan = world.run(GREETING, CHECK)
    say_hi(world, plan, "--keep", "2").ok()

    with asking(world, "plan", "apply", plan.id) as (process, terminal):
        os.write(terminal, b"n\n")
        assert process.wait() == 1
        asked = os.read(terminal, 65536).decode()
    assert "although unchecked: step 2 (check it)?" in asked

    answer = plan("apply", "--yes").ok()
    assert [item["step"] for item in answer.data["unchecked"]] == ["check it"]
    assert answer.envelope["status"] == "warn"
    assert "applied, although unchecked: step 2 (check it)" in answer.envelope["messages"]
    assert plan.status["unchecked"] != [], "it stays on record"


def test_nothing_is_unchecked_where_nobody_let_anything_stand(world: World) -> None:
    plan = world.run(GREETING, CHECK)
    correct(plan, decisions(plan)[0]).ok()

    assert unchecked(plan) == []
    answer = plan("apply", "--yes").ok()
    assert "unchecked" not in answer.data
    assert not any("although" in message for message in answer.envelope["messages"])


def test_all_keeps_whatever_is_not_proven_to_depend(world: World) -> None:
    copy = {**shell("cp hello.txt copy.txt", "copy"), "uses": ["write the greeting"]}
    plan = world.run(GREETING, CHECK, copy, BUILD)

    done = say_hi(world, plan, "--keep", "all").ok()

    assert done.data["steps"] == [0, 2]
    assert unchecked(plan) == [1, 3]
    assert read(plan, "copy.txt") == "Hi\n"


def test_what_is_proven_to_depend_cannot_be_kept_and_nothing_changes(world: World) -> None:
    look = {"name": "look", "tool": "file.read", "with": {"path": "hello.txt"}}
    more = shell("echo more >> hello.txt", "more")
    plan = world.run(GREETING, look, more, {**CHECK, "uses": ["write the greeting"]})
    records, tree = world.records(), plan.tree()

    told = refused(say_hi(world, plan, "--keep", "look"), "correction-refused")
    assert "step 2 (file.read: look) cannot be kept: it reads code:hello.txt" in told
    told = refused(say_hi(world, plan, "--keep", "more"), "correction-refused")
    assert "changes code:hello.txt after it" in told
    told = refused(say_hi(world, plan, "--keep", "4"), "correction-refused")
    assert "uses 'write the greeting'" in told
    assert "is corrected" in refused(say_hi(world, plan, "--keep", "1"), "correction-refused")
    assert "1 (write the greeting)" in refused(say_hi(world, plan, "--keep", "9"), "usage", 2)
    refused(say_hi(world, plan, "--keep", "no such"), "usage", 2)
    assert (world.records(), plan.tree()) == (records, tree)


def test_a_name_that_several_steps_have_is_refused(world: World) -> None:
    plan = world.run(GREETING, CHECK, CHECK)

    assert "2, 3" in refused(say_hi(world, plan, "--keep", "check it"), "usage", 2)


def test_what_is_added_keeps_everything_anyway(world: World) -> None:
    plan = world.run(GREETING, CHECK)
    words = ("--mode", "append", "--guidance", "x", "--keep", "1", decisions(plan)[0])

    refused(plan.agents("plan", "correct", *words), "usage", 2)


# --- until it ran -------------------------------------------------------------------------------


def test_doing_it_again_checks_it(world: World) -> None:
    plan = world.run(GREETING, CHECK, BUILD)
    better = step_file(world, write("hello.txt", "Hello, world\n", "write the greeting"))
    correct(plan, decisions(plan)[0], "--step-file", better, "--keep", "all").ok()
    assert unchecked(plan) == [1, 2]

    correct(plan, decisions(plan)[1], "--keep", "3").ok()
    assert unchecked(plan) == [2]
    correct(plan, decisions(plan)[2]).ok()
    assert unchecked(plan) == []
    assert plan("artifacts").ok().data["artifacts"][-2]["output"] == "Hello, world\n"


def test_the_next_correction_does_again_what_was_kept_unless_it_is_kept_again(
    world: World,
) -> None:
    plan = world.run(GREETING, BUILD)
    say_hi(world, plan, "--keep", "build").ok()

    say_hi(world, plan, "--keep", "build").ok()
    assert unchecked(plan) == [1]
    assert read(plan, "size.txt").strip() == "6"

    say_hi(world, plan).ok()
    assert unchecked(plan) == []
    assert read(plan, "size.txt").strip() == "3"


def test_it_goes_back_and_forth_with_a_rollback(world: World) -> None:
    plan = world.run(GREETING, BUILD)
    done = say_hi(world, plan, "--keep", "build").ok().data

    plan.rollback(done["undo_checkpoint"]).ok()
    assert unchecked(plan) == []
    undo = [group for group in plan.groups if group.reason == "before_rollback"][-1]
    plan.rollback(undo.group_id).ok()
    assert unchecked(plan) == [1]

    plan.rollback("decision 2: build").ok()
    assert unchecked(plan) == []
    plan("resume").ok()
    assert unchecked(plan) == []
    assert read(plan, "size.txt").strip() == "6", "the correction is taken back too"


def test_a_correction_that_waits_keeps_what_it_was_told_to(world: World) -> None:
    plan = world.run(GREETING, BUILD)

    say_hi(world, plan, "--keep", "build", "--no-execute").ok()
    assert unchecked(plan) == [1]
    plan.execute().ok()

    assert unchecked(plan) == [1]
    assert read(plan, "size.txt").strip() == "6"


def test_a_kept_step_whose_own_file_is_overwritten_is_done_again(world: World) -> None:
    plan = world.run(GREETING, BUILD)
    both = shell("echo Hi > hello.txt; echo mine > size.txt", "write the greeting")
    file = step_file(world, both)

    correct(plan, decisions(plan)[0], "--step-file", file, "--keep", "build").ok()

    assert read(plan, "size.txt").strip() == "3"
    assert unchecked(plan) == []


def test_a_step_of_a_child_that_is_unchecked_is_told_by_its_parent(world: World) -> None:
    child = {"name": "c", "steps": [GREETING, CHECK, shell("exit 1", "fail")]}
    plan = world.use({"name": "split", "subplans": {"plans": [child], "max_retries": 0}})
    assert plan.execute().code == 1
    (inner,) = plan.status["children"]
    handle = PlanHandle(world.agents, inner["plan_id"])
    fine = step_file(world, shell("true", "fail"))
    correct(handle, decisions(handle)[2], "--step-file", fine).ok()
    say_hi(world, handle, "--keep", "check it").ok()

    plan("resume").ok()

    (told,) = plan.status["unchecked"]
    assert (told["child"], told["step"], told["plan_id"]) == ("c", "check it", handle.id)


# --- what is declared proves --------------------------------------------------------------------


def test_a_tool_that_declares_what_it_reads_stays_where_that_did_not_change(world: World) -> None:
    steps: list[Step] = [GREETING, {"name": "lint", "tool": "lint"}]
    before = []
    for reads, again in (([], False), (["src"], False), (["hello.txt"], True), (["code"], True)):
        plan = world.run(*steps, tools=lint(*reads))
        before = decisions(plan)
        say_hi(world, plan).ok()
        assert (decisions(plan)[1] != before[1]) is again, reads
        assert unchecked(plan) == []


def test_an_argument_says_what_a_tool_reads(world: World) -> None:
    tool = {"command": ["cat", "{file}"], "resource": "code", "reads": ["{file}"]}
    plan = world.run(
        GREETING,
        {"name": "one", "tool": "show", "with": {"file": "hello.txt"}},
        {"name": "two", "tool": "show", "with": {"file": "README.md"}},
        tools={"show": tool},
    )
    before = decisions(plan)

    say_hi(world, plan).ok()

    after = decisions(plan)
    assert (after[1] != before[1], after[2] != before[2]) == (True, False)


# --- files brought back -------------------------------------------------------------------------


def test_files_that_a_person_brings_back_leave_unchecked_what_may_have_used_them(
    world: World,
) -> None:
    look = {"name": "look", "tool": "file.read", "with": {"path": "README.md"}}
    plan = world.run(GREETING, CHECK, look, write("other.txt", "o\n", "other"))

    only = ("rollback", "--yes", "--only", "hello.txt", "{}", "start")
    plan(*only).ok()

    assert unchecked(plan) == [0, 1]
    assert "hello.txt came back from start" in plan.status["unchecked"][1]["why"]
    undo = [group for group in plan.groups if group.reason == "before_rollback"][-1]
    plan.rollback(undo.group_id).ok()
    assert unchecked(plan) == []


# --- the reason ---------------------------------------------------------------------------------


def test_a_dry_run_says_why_each_step_would_be_done_again(world: World) -> None:
    look = {"name": "look", "tool": "file.read", "with": {"path": "hello.txt"}}
    plan = world.run(GREETING, look, CHECK, write("b", "b\n", "b"), shell("cat hello.txt >> b"))
    records = world.records()

    told = say_hi(world, plan, "--dry-run", "--keep", "check it").ok().data

    why = {item["step_index"]: (item["why"], item["proven"]) for item in told["affected"]}
    unknown = "may read anything: no `reads` is declared"
    assert why == {
        0: ("is corrected", True),
        1: ("reads code:hello.txt", True),
        3: ("changed code:b, which goes back", True),
        4: (unknown, False),
    }
    (kept,) = told["kept"]
    assert (kept["step_index"], kept["why"], kept["proven"]) == (2, unknown, False)
    assert told["unchecked"] == [kept["id"]]
    assert world.records() == records
    shown = world.agents.inside(*_words(plan, "--dry-run", "--keep", "check it")).ok().out
    assert "stays, unchecked" in shown
    assert "reads code:hello.txt (step 1)" in shown


def _words(plan: PlanHandle, *more: str) -> tuple[str, ...]:
    words = ("plan", "correct", "--mode", "revert", "--guidance", "x", *more)
    return (*words, decisions(plan)[0])
