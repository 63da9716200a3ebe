"""`agents prune`: old plans go with all that they hold; what is not over, or is in use, stays."""

import json
import os
import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta

import pytest
from tests.support.agents import Answer
from tests.support.refusals import refused
from tests.support.terminals import asked, asking
from tests.support.world import PlanHandle, World, shell, wait_for, write


def age(world: World, plan: PlanHandle, days: int) -> None:
    """As if everything had happened that long ago."""
    then = (datetime.now(UTC) - timedelta(days=days)).isoformat(timespec="microseconds")
    with closing(sqlite3.connect(world.agents.data_dir / "cleveragents.db")) as database:
        database.execute(
            "UPDATE plans SET created_at = ?1,"
            " started_at = CASE WHEN started_at IS NULL THEN NULL ELSE ?1 END,"
            " finished_at = CASE WHEN finished_at IS NULL THEN NULL ELSE ?1 END WHERE plan_id = ?2",
            (then, plan.id),
        )
        database.execute(
            "UPDATE checkpoint_groups SET created_at = ? WHERE plan_id = ?", (then, plan.id)
        )
        database.commit()


def applied(world: World, path: str, *more: str) -> PlanHandle:
    plan = world.run(write(path, "b"))
    world.agents("plan", "apply", "--yes", *more, plan.id).ok()
    return plan


def prune(world: World, *more: str) -> Answer:
    return world.agents("prune", "--older-than", "14d", "--yes", *more)


def removed(answer: Answer) -> list[str]:
    return [plan["plan_id"] for plan in answer.data["removed"]]


def listed(world: World) -> list[str]:
    return [p["plan_id"] for p in world.agents("plan", "list", "--all").ok().data["plans"]]


def rows_of(world: World, plan_id: str) -> dict[str, int]:
    """By table, how many rows name the plan."""
    with closing(sqlite3.connect(world.agents.data_dir / "cleveragents.db")) as database:
        dumped = [line for line in database.iterdump() if plan_id in line]
        assert database.execute("PRAGMA foreign_key_check").fetchall() == []
    counts: dict[str, int] = {}
    for line in dumped:
        table = line.split()[2].strip('"')
        counts[table] = counts.get(table, 0) + 1
    return counts


def test_old_plans_that_are_over_go_entirely_and_all_others_stay(world: World) -> None:
    old = applied(world, "old.txt", "--no-commit")
    cancelled = world.run(write("a", "b"))
    cancelled("cancel").ok()
    young = applied(world, "young.txt")
    waiting = world.run(write("c", "d"))
    for plan in (old, cancelled, waiting):
        age(world, plan, 20)
    assert any(old.id.encode() in trace for trace in world.project.traces())  # what was applied
    before = world.project.fingerprint()

    answer = prune(world).ok()

    assert sorted(removed(answer)) == sorted([old.id, cancelled.id])
    assert answer.data["unapplied"] == 1
    assert sorted(listed(world)) == sorted([young.id, waiting.id])
    for plan in (old, cancelled):
        assert rows_of(world, plan.id) == {}
        assert not any(plan.id.encode() in trace for trace in world.project.traces())
        assert not list(world.agents.data_dir.glob(f"*/{plan.id}*"))
    assert world.project.fingerprint() == before
    assert rows_of(world, waiting.id)["checkpoint_groups"] > 2
    waiting("checkpoint", "verify").ok()
    world.agents("doctor").ok()
    assert removed(prune(world).ok()) == []


def test_what_is_not_over_goes_only_if_that_is_said_and_its_loss_is_told(world: World) -> None:
    plan = world.run(write("new.txt", "b"))
    age(world, plan, 20)

    shown = world.agents("prune", "--older-than", "14d", "--unapplied", "--dry-run").ok()

    (due,) = shown.data["removed"]
    assert (due["plan_id"], due["files_lost"]) == (plan.id, {"code": ["new.txt"]})
    assert due["size_bytes"] > 0
    assert listed(world) == [plan.id]
    assert removed(prune(world, "--unapplied").ok()) == [plan.id]
    assert listed(world) == []
    assert world.project.traces() == []


def test_children_go_with_their_parent(world: World) -> None:
    plans = [{"name": name, "steps": [write(f"{name}.md", name)]} for name in ("en", "de")]
    plan = world.run({"name": "both", "subplans": {"plans": plans}})
    children = [child["plan_id"] for child in plan.status["children"]]
    plan("cancel").ok()
    age(world, plan, 20)

    assert removed(prune(world).ok()) == [plan.id]

    assert listed(world) == []
    assert [rows_of(world, key) for key in (plan.id, *children)] == [{}, {}, {}]
    assert not list(world.agents.data_dir.glob("sandboxes/*"))


def test_a_plan_that_somebody_works_on_stays_and_is_named(world: World) -> None:
    plan = world.use(shell(f"touch {world.beside}/begun; sleep 60", "wait"))
    running = world.agents.start("plan", "execute", plan.id)
    wait_for((world.beside / "begun").exists)
    age(world, plan, 20)
    try:
        answer = prune(world, "--unapplied").ok()
        assert (removed(answer), listed(world)) == ([], [plan.id])
    finally:
        running.terminate()
        running.wait(60)


def test_a_plan_without_its_project_goes_all_the_same(world: World) -> None:
    plan = world.run(write("a", "b"))
    plan("cancel").ok()
    age(world, plan, 20)
    world.project.path.rename(world.top / "moved")

    answer = world.agents.at(world.top)("prune", "--older-than", "14d", "--yes").ok()

    assert removed(answer) == [plan.id]
    assert any("cannot be compared" in text for text in answer.envelope["messages"])


@pytest.mark.parametrize("text", ["14", "soon", "-3d", ""])
def test_an_age_that_is_none_is_refused(world: World, text: str) -> None:
    assert "14d" in refused(world.agents("prune", "--older-than", text, "--yes"), "usage", 2)


def test_it_asks_with_the_plans_and_what_is_lost_and_a_no_changes_nothing(world: World) -> None:
    plan = world.run(write("new.txt", "b"))
    plan("cancel").ok()
    age(world, plan, 20)
    refused(world.agents("prune", "--older-than", "14d"), "confirmation-needed", 2)

    with asking(world, "prune", "--older-than", "14d") as (process, terminal):
        told = asked(terminal, b"]:").decode()
        os.write(terminal, b"n\n")
        process.communicate(timeout=60)

    assert "new.txt" in told and "1 plan and 1 unapplied file" in told
    assert listed(world) == [plan.id]
    assert plan.sandbox.is_dir()


def test_a_plan_that_was_changed_while_somebody_thought_about_it_stays(world: World) -> None:
    plan = world.run(write("new.txt", "b"))
    age(world, plan, 20)

    with asking(world, "prune", "--older-than", "14d", "--unapplied") as (process, terminal):
        asked(terminal, b"]:")
        plan.rollback("start").ok()
        os.write(terminal, b"y\n")
        out, _ = process.communicate(timeout=60)

    envelope = json.loads(out)
    assert (process.returncode, envelope["status"]) == (1, "error")
    (failed,) = envelope["data"]["failed"]
    assert (failed["plan_id"], "changed meanwhile" in failed["reason"]) == (plan.id, True)
    assert plan.status["state"] == "queued"
    assert plan.sandbox.is_dir()
