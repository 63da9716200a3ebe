"""When sandboxes go, and that work which exists nowhere else never goes unasked."""

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from tests.support.agents import Agents, Answer
from tests.support.refusals import refused
from tests.support.terminals import asked, asking
from tests.support.world import PlanHandle, Step, World, shell, wait_for, write


def policy(world: World, name: str) -> None:
    world.agents("config", "set", "sandbox.cleanup", name).ok()


def sandboxes(world: World) -> list[Path]:
    folder = world.agents.data_dir / "sandboxes"
    return list(folder.glob("*/*")) if folder.is_dir() else []


def apply(world: World, plan: PlanHandle) -> dict[str, str]:
    return world.agents("plan", "apply", "--yes", plan.id).ok().data["sandboxes_kept"]


@pytest.mark.parametrize("name", ["on_apply", "on_terminal"])
def test_an_applied_plan_leaves_nothing(world: World, name: str) -> None:
    policy(world.keep_nothing(), name)
    plan = world.run(write("a", "b"))
    assert apply(world, plan) == {}
    assert (sandboxes(world), world.project.traces()) == ([], [])


def test_manual_keeps_the_sandbox_until_it_is_discarded(world: World) -> None:
    policy(world, "manual")
    plan = world.run(write("a", "b"))
    kept = apply(world, plan)
    beside = (".git", ".layers", ".index")
    there = [str(path) for path in sandboxes(world) if path.suffix not in beside]
    assert there == list(kept.values())
    assert plan.status["sandboxes"][0]["status"] == "ready"
    answer = world.agents("plan", "discard", "--yes", plan.id).ok()
    assert answer.data["sandboxes_removed"] == kept
    assert (sandboxes(world), world.project.traces()) == ([], [])
    assert world.project.read("a") == "b"
    world.agents("plan", "discard", "--yes", plan.id).ok()  # there is nothing left to do


def test_on_terminal_a_cancelled_plan_without_changes_leaves_nothing(world: World) -> None:
    policy(world, "on_terminal")
    plan = world.run(shell("true"))
    assert plan("cancel").ok().data["sandboxes_kept"] == {}
    assert (sandboxes(world), world.project.traces()) == ([], [])


@pytest.mark.parametrize("command", ["echo work > new.txt", "echo x > kept.log"])
@pytest.mark.parametrize("name", ["on_apply", "on_terminal", "manual"])
def test_work_that_was_not_applied_is_kept_when_a_plan_is_cancelled(
    world: World, name: str, command: str
) -> None:
    policy(world, name)
    plan = world.run(shell(command))
    answer = plan("cancel").ok()
    place = Path(answer.data["sandboxes_kept"]["code"])
    assert place.is_dir()
    assert "plan discard" in str(answer.envelope["messages"])
    refused(world.agents("plan", "discard", plan.id), "confirmation-needed", 2)
    assert place.is_dir()
    world.agents("plan", "discard", "--yes", plan.id).ok()
    assert not place.exists()


def discard(world: World, plan: PlanHandle) -> Answer:
    return world.agents("plan", "discard", "--yes", plan.id)


def snapshots(world: World) -> list[Path]:
    return list((world.agents.data_dir / "snapshots").glob("*"))


def gone(world: World) -> bool:
    return not (sandboxes(world) or snapshots(world) or world.project.traces())


def test_what_would_be_lost_is_all_that_is_nowhere_else_whoever_made_it(world: World) -> None:
    """By steps, and by hand since the last group; ignored folders as one."""
    ignored = write(".gitignore", "build/\n")
    plan = world.run(ignored, shell("mkdir build; echo 1 > build/one; rm README.md"))
    (plan.sandbox / "build/two").write_text("by hand")
    (plan.sandbox / "by-hand").write_text("after the last group")

    answer = discard(world, plan).ok()

    lost = [".gitignore", "README.md", "build/", "by-hand"]
    assert answer.data["files_lost"] == {"code": lost}
    assert gone(world)


def test_a_plan_that_is_not_over_is_ended_and_discarded_in_one_command(world: World) -> None:
    plan = world.run(write("a", "b"), shell("echo x > kept.log"))
    before = world.project.fingerprint()

    answer = discard(world, plan).ok()

    assert answer.data["files_lost"] == {"code": ["a", "kept.log"]}
    assert (answer.data["state"], answer.data["stopped"]) == ("cancelled", None)
    assert gone(world)
    assert world.project.fingerprint() == before
    assert plan.status["cancel_reason"] == "discarded"
    discard(world, plan).ok()


@pytest.mark.parametrize("steps", [[write("a", "b")], [shell("exit 3")]])
def test_new_and_failed_plans_can_be_discarded(world: World, steps: list[Step]) -> None:
    plan = world.use(*steps)
    if steps[0]["tool"] == "shell":
        plan("execute")
    discard(world, plan).ok()
    assert gone(world)


def test_a_running_plan_is_stopped_and_discarded(world: World) -> None:
    plan = world.use(shell(f"touch {world.beside}/begun; sleep 60", "wait"))
    running = world.agents.start("plan", "execute", plan.id)
    wait_for((world.beside / "begun").exists)

    answer = discard(world, plan).ok()

    assert "`plan execute`" in answer.data["stopped"]
    assert running.wait(60) == 130
    assert gone(world)


def test_whoever_does_something_else_with_the_plan_is_named_and_nothing_is_removed(
    world: World,
) -> None:
    plan = world.run(write("a", "b"))
    with asking(world, "plan", "rollback", plan.id, "start") as (process, terminal):
        asked(terminal, b"?")
        told = refused(discard(world, plan), "plan-locked")
        os.write(terminal, b"n\n")
        process.communicate(timeout=60)
    assert "plan rollback" in told
    assert plan.sandbox.is_dir()
    assert plan.status["state"] == "complete"


def test_an_apply_that_was_cut_off_is_finished_and_not_discarded(world: World) -> None:
    plan = world.run(write("a", "b"))
    with closing(sqlite3.connect(world.agents.data_dir / "cleveragents.db")) as database:
        database.execute("UPDATE plans SET phase = 'apply', state = 'processing'")
        database.commit()
    assert "plan apply" in refused(discard(world, plan), "plan-state")
    assert plan.sandbox.is_dir()


def test_a_child_is_discarded_with_its_parent_only(world: World) -> None:
    plans = [{"name": "en", "steps": [write("en.md", "en")]}]
    plan = world.run({"name": "both", "subplans": {"plans": plans}})
    (child,) = plan.status["children"]
    assert plan.id in refused(
        world.agents("plan", "discard", "--yes", child["plan_id"]), "plan-state"
    )
    discard(world, plan).ok()
    assert gone(world)


def test_what_cannot_be_compared_is_told_and_goes_all_the_same(world: World) -> None:
    plan = world.run(write("a", "b"))
    world.project.path.rename(world.top / "moved")
    answer = Agents(world.home, world.top)("plan", "discard", "--yes", plan.id).ok()
    assert answer.envelope["status"] == "warn"
    assert any("cannot be compared" in text for text in answer.envelope["messages"])
    assert not (sandboxes(world) or snapshots(world))


def test_the_question_names_the_project_and_what_would_be_lost(world: World) -> None:
    plan = world.run(write("a.txt", "b"))
    with asking(world, "plan", "discard", plan.id) as (process, terminal):
        told = asked(terminal, b"]:").decode()
        os.write(terminal, b"n\n")
        process.communicate(timeout=60)
    assert process.returncode == 1
    assert str(world.project.path) in told.replace("\r\n", "")
    assert "a.txt" in told and "1 unapplied file would be lost" in told
    assert plan.sandbox.is_dir()


def test_another_value_is_refused_with_the_valid_ones(world: World) -> None:
    told = refused(
        world.agents("config", "set", "sandbox.cleanup", "on_aply"), "invalid-config-value", 2
    )
    assert "on_apply" in told and "on_terminal" in told
