"""`strategy: in-place` in an action file: its steps are steps of the place's own timeline."""

import os
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.support.in_place import Place, error_of
from tests.support.world import PlanHandle, Step, World, action, shell, wait_for, write

HERE = {"code": {"type": "git-checkout", "path": ".", "strategy": "in-place"}}
_STEPS = (
    write("new.txt", "new\n", name="make it"),
    shell("echo two > README.md; mkdir -p deep; echo x > deep/x", name="change it"),
    shell("git add -A; git commit -qm agent", name="commit it"),
)


@pytest.fixture
def place(world: World) -> Place:
    return Place(world)


def used(place: Place, *steps: Step, **keys: Any) -> PlanHandle:
    return place.world.use(*steps, **{"resources": HERE, **keys})


def refused(place: Place, content: Mapping[str, Any]) -> list[str]:
    """What `action check` and `plan use` both say, and nothing was made."""
    path = place.world.write_action({"resources": HERE, **content})
    before = place.world.records()
    checked, made = place("action", "check", path), place("plan", "use", path)
    assert checked.code == made.code == 1
    assert place.world.records() == before
    return [checked.error["message"], made.error["message"] + made.error["hint"]]


# --- the whole way ------------------------------------------------------------------------------


def test_the_steps_of_a_file_work_in_the_tree_itself_and_every_one_can_be_undone(
    place: Place,
) -> None:
    plan = used(place, *_STEPS)
    states = [place.state()]
    plan.execute().ok()

    done = place.state()
    assert place.project.read("README.md") == "two\n"
    assert plan.status["sandboxes"][0]["strategy"] == "in-place"
    assert plan.status["sandboxes"][0]["path"] == str(place.path)
    assert [item["status"] for item in plan.status["progress"]] == ["complete"] * 3
    assert plan("diff").ok().data["diff_summary"]["files_changed"] == 3
    for _ in _STEPS:
        place("undo").ok()
        states.append(place.state())
    assert states[-1] == states[0]
    for _ in _STEPS:
        place("redo").ok()
    assert place.state() == done
    plan.rollback("0").ok()
    assert place.state() == states[0]
    plan.execute().ok()
    assert place.tree() == done["tree"]
    before = place.state()
    assert plan("apply", "--yes").ok().data["state"] == "applied"
    assert place.state() == before
    assert not (place.path / ".git" / "cleveragents-in-place").exists()


def test_what_plan_use_tells_is_what_a_run_tells(place: Place) -> None:
    folder = place.path / "node_modules"
    folder.mkdir()
    (folder / ".package-lock.json").write_text("{}")
    path = place.world.write_action(action(*_STEPS, resources=HERE))

    told = place("plan", "use", path).ok()

    assert "npm ci" in told.out
    assert "if `.git` is lost" in told.out
    assert told.data["resources"][0]["strategy"] == "in-place"
    assert told.data["name"] == "in-place-1"


def test_a_folder_that_is_no_repository_is_worked_on_in_place_too(world: World) -> None:
    folder = world.top / "plain"
    folder.mkdir()
    (folder / "a.txt").write_text("one")
    resources = {"docs": {"type": "fs-directory", "path": str(folder), "strategy": "in-place"}}
    step = {"tool": "file.write", "with": {"resource": "docs", "path": "a.txt", "content": "two"}}

    plan = world.run(step, resources=resources)

    assert (folder / "a.txt").read_text() == "two"
    plan.rollback("0").ok()
    assert (folder / "a.txt").read_text() == "one"


# --- one timeline per place ---------------------------------------------------------------------


def test_files_and_programs_go_on_with_one_timeline(place: Place) -> None:
    states = [place.state()]
    first = used(place, write("one.txt", "1"))
    first.execute().ok()
    states.append(place.state())
    place.run("echo 2 > two.txt").ok()
    states.append(place.state())
    path = place.world.write_action(action(write("three.txt", "3"), resources=HERE))
    again = place("plan", "use", path).ok()
    PlanHandle(place.world.agents, again.data["plan_id"]).execute().ok()

    assert again.data["plan_id"] == first.id
    assert "goes on with in-place-1" in again.out
    assert place.world.plan_count() == 1
    for wanted in reversed(states):
        place("undo").ok()
        assert place.state() == wanted


def test_what_was_used_before_and_not_done_is_told_and_is_not_done(place: Place) -> None:
    used(place, write("one.txt", "1"), write("two.txt", "2"))
    path = place.world.write_action(action(write("three.txt", "3"), resources=HERE))

    again = place("plan", "use", path).ok()
    place("plan", "execute", again.data["plan_id"]).ok()

    assert "2 steps of what was used there before had not been done" in again.out
    assert place.project.git("status", "--short") == "?? three.txt"


def test_after_an_undo_into_what_came_before_a_file_begins_with_its_first_step(
    place: Place,
) -> None:
    used(place, write("one.txt", "1"), write("two.txt", "2")).execute().ok()
    plan = used(place, write("three.txt", "3", name="third"), write("four.txt", "4"))
    plan.execute().ok()
    done = place.tree()
    for _ in range(3):
        place("undo").ok()
    assert place.project.git("status", "--short") == "?? one.txt"

    assert [item["status"] for item in plan.status["progress"]] == ["complete", "queued", "queued"]
    plan.execute().ok()

    assert place.tree() == {path: how for path, how in done.items() if b"two.txt" not in path}


def test_undone_altogether_a_second_file_can_be_executed_again(place: Place) -> None:
    used(place, write("one.txt", "1")).execute().ok()
    plan = used(place, write("two.txt", "2"))
    plan.execute().ok()
    done = place.tree()
    place("undo").ok()
    assert plan.status["state"] == "queued"

    plan.execute().ok()

    assert place.tree() == done


@pytest.mark.parametrize(
    ("resource", "told"),
    [
        ({"name": "app"}, "it is of `code` (git-checkout), and not of `app` (git-checkout)"),
        ({"exclude": ["big/"]}, "exclude big/ was not said when it began"),
        ({"include": ["node_modules"]}, "include node_modules was not said when it began"),
    ],
)
def test_what_a_timeline_is_of_is_said_when_it_begins(
    place: Place, resource: dict[str, Any], told: str
) -> None:
    used(place, write("one.txt", "1")).execute().ok()
    (place.path / "node_modules").mkdir()
    name = resource.pop("name", "code")
    step = {"tool": "shell", "with": {"command": "true"}}
    content = action(step, resources={name: {**HERE["code"], **resource}})

    for said in refused(place, content):
        assert told in said
        assert "agents apply" in said


def test_the_same_file_is_used_again_with_what_it_leaves_out(place: Place) -> None:
    resources = {"code": {**HERE["code"], "exclude": ["big/"]}}
    plan = used(place, shell("mkdir -p big; echo x >> big/x"), resources=resources)
    plan.execute().ok()
    used(place, write("one.txt", "1"), resources=resources).execute().ok()

    place("undo").ok()

    assert (place.path / "big" / "x").exists()


def test_a_place_of_another_installation_is_refused(place: Place) -> None:
    place.run("true").ok()
    other = World(place.world.top / "other")
    path = place.world.write_action(action(*_STEPS, resources=HERE))
    at = other.agents.at(place.path)

    assert error_of(at("plan", "use", path)) == "place-taken"
    assert "another installation" in at("action", "check", path).error["message"]


def test_while_a_program_runs_there_nobody_else_begins(place: Place) -> None:
    running = place.world.agents.start("run", "--in-place", "--", "sh", "-c", "touch on; sleep 60")
    wait_for(lambda: (place.path / "on").exists())
    path = place.world.write_action(action(*_STEPS, resources=HERE))

    try:
        assert error_of(place("plan", "use", path)) == "plan-locked"
    finally:
        os.killpg(running.pid, signal.SIGINT)
        running.wait(60)


# --- what is refused ----------------------------------------------------------------------------


def test_all_resources_are_in_place_or_none(place: Place, tmp_path: Path) -> None:
    docs = {"type": "fs-directory", "path": str(tmp_path)}
    step = shell("true")

    for said in refused(place, action(step, resources={**HERE, "docs": docs})):
        assert "resources.docs: all resources of a plan are worked on in place, or none" in said
    in_place = {**docs, "strategy": "in-place"}
    for said in refused(place, action(step, resources={**HERE, "docs": in_place})):
        assert "resources.docs.strategy: a timeline is of one place" in said


@pytest.mark.parametrize(
    ("keys", "told"),
    [
        ({"rollback_policy": {"enabled": False}}, "rollback_policy.enabled: in place there is no"),
        (
            {"resources": {"code": {**HERE["code"], "checkpointable": False}}},
            "resources.code.checkpointable: in place there is no",
        ),
        (
            {"resources": {"code": {**HERE["code"], "strategy": "inplace"}}},
            "`inplace` is not one of sandbox, in-place; did you mean `in-place`?",
        ),
    ],
)
def test_what_does_not_go_with_working_in_place_is_told_with_its_place(
    place: Place, keys: dict[str, Any], told: str
) -> None:
    for said in refused(place, action(shell("true"), **{"resources": HERE, **keys})):
        assert told in said
        assert "line 1" in said


def test_child_plans_are_refused_with_their_line(place: Place) -> None:
    path = place.world.top / "b.yaml"
    path.write_text(
        "name: a\ndescription: b\nresources:\n  code: {type: git-checkout, path: ., strategy:"
        " in-place}\nsteps:\n  - name: both\n    subplans: {plans: [{name: en, steps: [{tool:"
        " shell, with: {command: 'true'}}]}]}\n"
    )

    said = place("action", "check", "--file-only", str(path)).error["message"]

    assert "line 7: steps[0].subplans: child plans need copies" in said


def test_corrections_are_refused_with_what_to_do(place: Place) -> None:
    plan = used(place, *_STEPS)
    plan.execute().ok()

    found = place(
        *("plan", "correct", "--mode", "revert", "--guidance", "x", "--yes", "--plan", plan.id, "1")
    )

    assert error_of(found) == "correction-refused"
    assert "agents undo" in found.error["hint"]


def test_a_home_folder_and_a_part_of_a_repository_are_refused(place: Place) -> None:
    below = place.path / "below"
    below.mkdir()
    for type_, path, told in (
        ("fs-directory", place.world.home, "is or holds a home folder"),
        ("fs-directory", place.path, "is a repository, whose own state"),
        ("fs-directory", below, "is a part of the repository"),
        ("git-checkout", below, "is a part of the repository"),
        ("git-checkout", place.world.beside, "is not a git repository"),
    ):
        here = {"code": {"type": type_, "path": str(path), "strategy": "in-place"}}
        for said in refused(place, action(shell("true"), resources=here)):
            assert told in said, said


def test_a_folder_above_or_below_a_timeline_is_refused(world: World) -> None:
    outer = world.top / "outer"
    inner = outer / "inner"
    inner.mkdir(parents=True)
    place = Place(world)

    def at(folder: Path) -> dict[str, Any]:
        here = {"type": "fs-directory", "path": str(folder), "strategy": "in-place"}
        return action({"tool": "shell", "with": {"command": "true"}}, resources={"it": here})

    path = world.write_action(at(inner))
    plan = PlanHandle(world.agents, place("plan", "use", path).ok().data["plan_id"])
    plan.execute().ok()
    assert "of which there is a timeline" in refused(place, at(outer))[1]
    plan("apply", "--yes").ok()
    path = world.write_action(at(outer))
    place("plan", "execute", place("plan", "use", path).ok().data["plan_id"]).ok()
    assert "of which there is a timeline" in refused(place, at(inner))[1]


# --- others, failures and kills -----------------------------------------------------------------


def test_what_others_change_between_two_steps_has_a_row_of_its_own(place: Place) -> None:
    go, on = place.world.beside / "go", place.world.beside / "on"
    steps = (
        write("one.txt", "1", name="first"),
        shell(f"touch {on}; while [ ! -e {go} ]; do sleep 0.02; done", name="wait"),
        write("two.txt", "2", name="second"),
    )
    plan = used(place, *steps)
    place.project.write("before.txt", "edited before the first step")
    running = place.world.agents.start("plan", "execute", plan.id)
    wait_for(on.exists)
    go.touch()
    assert running.wait(60) == 0
    place.project.write("mine.txt", "mine")
    again = used(place, write("three.txt", "3", name="third"))
    again.execute().ok()

    assert place.rows() == ["first", "wait", "second", "changed by others: mine.txt", "third"]
    place("undo").ok()
    assert place.project.read("mine.txt") == "mine"


def test_a_step_that_fails_leaves_its_work_which_is_a_step_and_can_be_undone(
    place: Place,
) -> None:
    before = place.state()
    flag = place.world.beside / "flag"
    step = shell(f"echo half >> half.txt; [ -e {flag} ]", name="half")
    plan = used(place, step, write("two.txt", "2", name="second"), max_retries_per_step=3)

    assert plan.execute().code == 1
    assert place.project.read("half.txt") == "half\n"  # once: nothing is tried again by itself
    failed = place.state()
    place("undo").ok()
    assert place.state() == before
    place("redo").ok()
    assert place.state() == failed
    flag.touch()
    plan.execute().ok()

    assert place.project.read("half.txt") == "half\nhalf\n"
    assert place.rows() == ["left by half: half.txt", "half", "second"]


def test_a_step_that_was_killed_is_noted_and_done_again_and_nothing_is_undone(
    place: Place,
) -> None:
    on = place.world.beside / "on"
    step = shell(f"echo half >> half.txt; touch {on}; [ -e go ] || sleep 60", name="slow")
    plan = used(place, step, write("two.txt", "2", name="second"))
    running = place.world.agents.start("plan", "execute", plan.id)
    wait_for(on.exists)
    os.killpg(running.pid, signal.SIGKILL)
    running.wait(60)
    place.project.write("go", "")

    plan.execute().ok()

    assert place.project.read("half.txt") == "half\nhalf\n"
    assert place.rows()[-2:] == ["slow", "second"]
    assert place.rows()[0].startswith("left by slow: ")
    for _ in range(3):
        place("undo").ok()
    assert not (place.path / "half.txt").exists()


def test_validations_judge_the_tree_and_a_required_one_fails_the_plan(place: Place) -> None:
    tools = {
        "judge": {"command": ["test", "-e", "good"], "resource": "code", "validation": "required"}
    }
    plan = used(place, write("one.txt", "1"), tools=tools)

    assert plan.execute().code == 1
    assert plan.status["state"] == "errored"
    place.project.write("good", "")
    plan.execute().ok()
    assert plan.status["state"] == "complete"
