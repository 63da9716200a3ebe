"""When sandboxes go, and that work which exists nowhere else never goes unasked."""

from pathlib import Path

import pytest
from tests.support.refusals import refused
from tests.support.world import PlanHandle, World, shell, write


def policy(world: World, name: str) -> None:
    world.agents("config", "set", "sandbox.cleanup", name).ok()


def sandboxes(world: World) -> list[Path]:
    folder = world.agents.data_dir / "sandboxes"
    return list(folder.glob("*/*")) if folder.is_dir() else []


def apply(world: World, plan: PlanHandle) -> dict[str, str]:
    return world.agents("plan", "apply", "--yes", plan.id).ok().data["sandboxes_kept"]


@pytest.mark.parametrize("name", ["on_apply", "on_terminal"])
def test_an_applied_plan_leaves_nothing(world: World, name: str) -> None:
    policy(world, name)
    plan = world.run(write("a", "b"))
    assert apply(world, plan) == {}
    assert (sandboxes(world), world.project.traces()) == ([], [])


def test_manual_keeps_the_sandbox_until_it_is_discarded(world: World) -> None:
    policy(world, "manual")
    plan = world.run(write("a", "b"))
    kept = apply(world, plan)
    there = [str(path) for path in sandboxes(world) if path.suffix != ".git"]
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


def test_a_plan_that_is_not_over_cannot_be_discarded(world: World) -> None:
    plan = world.run(write("a", "b"))
    assert "cancel" in refused(world.agents("plan", "discard", "--yes", plan.id), "plan-state")
    assert plan.sandbox.is_dir()


def test_another_value_is_refused_with_the_valid_ones(world: World) -> None:
    told = refused(
        world.agents("config", "set", "sandbox.cleanup", "on_aply"), "invalid-config-value", 2
    )
    assert "on_apply" in told and "on_terminal" in told
