"""Which groups go again, by number, age and size, and which ones never do."""

import sqlite3
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.support.agents import Agents
from tests.support.refusals import refused
from tests.support.triggers import run
from tests.support.world import PlanHandle, World, shell, write


@pytest.fixture
def two(world: World) -> Agents:
    return world.agents.having(CLEVERAGENTS_CHECKPOINT_MAX_PER_PLAN="2")


def states(plan: PlanHandle) -> int:
    return plan("checkpoint", "list").ok().data["states"]


def test_the_oldest_groups_go_whole_and_the_first_and_newest_stay(
    world: World, two: Agents
) -> None:
    steps = [write(f"f{index}", str(index), f"s{index}") for index in range(5)]
    plan = run(world, two, *steps)
    labels = [group.label for group in plan.groups]
    assert labels == [
        "start",
        "decision 1: s0",
        "before file.write f0",
        "after file.write f3",
        "decision 5: s4",
        "before file.write f4",
        "after file.write f4",
    ]
    kinds = [{row["checkpoint_type"] for row in group.rows} for group in plan.groups]
    assert all("plan-state" in kind for kind in kinds)
    assert plan.status["execution"]["checkpoints"] == 7


def test_what_is_left_after_pruning_can_still_be_gone_back_to(world: World, two: Agents) -> None:
    commands = [f"echo {index} > f{index}; echo {index} > same" for index in range(5)]
    trees = world.replay(commands)
    plan = run(world, two, *(shell(c, f"s{i}") for i, c in enumerate(commands)))
    plan.agents = world.agents  # each rollback keeps a safety group, which counts too
    plan("checkpoint", "verify").ok()
    for group in plan.groups[::-1]:
        plan.rollback(group.group_id).ok()
        done = group.reason == "on_tool_write_complete"
        assert plan.tree() == trees[group.step_index + (1 if done else 0)], group.label


def test_a_group_labelled_by_hand_is_never_pruned(world: World, two: Agents) -> None:
    cure = world.top / "cure"
    steps = [write(f"f{index}", str(index), f"s{index}") for index in range(5)]
    plan = run(world, two, write("a", "1", "a"), shell(f"test -e {cure}", "wait"), *steps)
    world.agents("plan", "checkpoint", "create", "--label", "keep me", plan.id).ok()
    cure.touch()
    plan("resume").ok()
    labels = [group.label for group in plan.groups]
    assert labels[0] == "start"
    assert {"keep me", "after file.write f4"} <= set(labels)
    assert not {"decision 3: s0", "decision 7: s4"} & set(labels)
    assert states(plan) == 3
    plan.rollback("keep me").ok()
    assert (plan.sandbox / "a").exists()
    assert not (plan.sandbox / "f0").exists()


def test_pruning_frees_space_on_disk(world: World) -> None:
    agents = world.agents.having(CLEVERAGENTS_CHECKPOINT_MAX_PER_PLAN="4")
    steps = [shell("head -c 300000 /dev/urandom > noise", f"s{index}") for index in range(8)]
    plan = run(world, agents, *steps)
    assert plan.status["state"] == "complete"
    assert _disk_use(world.agents.data_dir / "snapshots") < 5 * 300_000


def _disk_use(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def test_the_policy_of_the_action_limits_the_groups_too(world: World) -> None:
    steps = [write(f"f{index}", str(index)) for index in range(4)]
    plan = world.run(*steps, rollback_policy={"max_checkpoints": 3})
    assert states(plan) == 4  # and one is where the plan stands
    assert plan.groups[0].label == "start"


def test_the_group_that_the_plan_stands_on_cannot_be_deleted(world: World) -> None:
    plan = world.run(write("a", "1"))
    head = plan.groups[-1].group_id
    answer = world.agents("plan", "checkpoint", "delete", "--yes", plan.id, head)
    assert (answer.code, answer.error["code"]) == (1, "checkpoint-needed")
    assert head in [group.group_id for group in plan.groups]


def test_a_deleted_group_is_gone_and_the_others_still_work(world: World) -> None:
    plan = world.run(write("a", "1", "one"), write("b", "2", "two"))
    gone = plan.group("after file.write a").group_id
    world.agents("plan", "checkpoint", "delete", "--yes", plan.id, gone).ok()
    assert gone not in [group.group_id for group in plan.groups]
    said = plan.rollback(gone).error
    assert said["code"] == "checkpoint-not-found"
    assert "it was pruned at" in said["message"]
    assert "deleted by hand" in said["message"]
    plan.rollback("decision 2: two").ok()
    assert (plan.sandbox / "a").read_text() == "1"
    assert not (plan.sandbox / "b").exists()


def prune(plan: PlanHandle, agents: Agents, flag: str) -> Mapping[str, Any]:
    return agents("plan", "checkpoint", "prune", flag, plan.id).ok().data


def reasons(items: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    return {item["label"]: item["reason"] for item in items}


def test_a_dry_run_says_which_groups_would_go_and_why_and_changes_nothing(
    world: World, two: Agents
) -> None:
    plan = world.run(*(write(f"f{index}", str(index), f"s{index}") for index in range(5)))
    world.agents("plan", "checkpoint", "create", "--label", "mine", plan.id).ok()
    plan.rollback("decision 4: s3").ok()
    records = world.records()

    found = prune(plan, two, "--dry-run")

    assert (found["dry_run"], found["freed_bytes"]) == (True, 0)
    assert reasons(found["kept"]) == {
        "start": "the first",
        "decision 1: s0": "within the limits",
        "before file.write f0": "within the limits",
        "after file.write f2": "within the limits",
        "decision 4: s3": "the plan stands on it",
        "before file.write f3": "within the limits",
        "after file.write f4": "within the limits",
        "mine": "labelled by hand",
        "before rollback to decision 4: s3": "the most recent",
    }
    assert len(found["removed"]) == 9
    assert set(reasons(found["removed"]).values()) == {"more than 2 states, and among the oldest"}
    assert world.records() == records
    said = refused(two("plan", "checkpoint", "prune", plan.id), "confirmation-needed", 2)
    assert "Prune 9 checkpoints" in said
    assert world.records() == records


def test_pruning_frees_the_room_that_it_says_and_the_rest_still_works(
    world: World, two: Agents
) -> None:
    steps = [shell("head -c 400000 /dev/urandom > noise", f"s{index}") for index in range(6)]
    plan = world.run(*steps)
    file = world.agents.data_dir / "snapshots" / f"{plan.id}.db"
    before, old = file.stat().st_size, plan.group("decision 2: s1").group_id

    done = prune(plan, two, "--yes")

    assert len(plan.groups) == len(done["kept"]) == 7
    assert done["freed_bytes"] > 3 * 400_000
    assert before - file.stat().st_size == done["freed_bytes"]
    plan("checkpoint", "verify").ok()
    said = refused(plan.rollback(old), "checkpoint-not-found")
    assert "it was pruned at" in said
    assert "more than 2 states" in said
    plan.rollback(plan.groups[-2].group_id).ok()
    assert prune(plan, world.agents, "--yes")["removed"] == []


def test_groups_go_by_age_and_the_clock_going_back_prunes_nothing(world: World) -> None:
    plan = world.run(*(write(f"f{index}", str(index), f"s{index}") for index in range(3)))
    young = world.agents.having(CLEVERAGENTS_CHECKPOINT_MAX_AGE="30d")
    assert prune(plan, young, "--dry-run")["removed"] == []
    _age_groups(world, plan, "-40 days")

    found = prune(plan, young, "--dry-run")
    assert set(reasons(found["removed"]).values()) == {"older than 30 days"}
    assert set(reasons(found["kept"])) == {"start", "after file.write f2"}

    _age_groups(world, plan, "+400 days")  # the clock was put back: all are from the future
    assert prune(plan, young, "--dry-run")["removed"] == []
    plan.rollback("decision 2: s1").ok()
    plan.agents = young
    plan.execute().ok()
    assert [group.label for group in plan.groups][-1] == "after file.write f2"
    assert (plan.sandbox / "f2").exists()


def _age_groups(world: World, plan: PlanHandle, by: str) -> None:
    with sqlite3.connect(world.agents.data_dir / "cleveragents.db") as database:
        moved = "strftime('%Y-%m-%dT%H:%M:%S+00:00', created_at, ?)"
        sql = f"UPDATE checkpoint_groups SET created_at = {moved} WHERE plan_id = ?"
        assert database.execute(sql, (by, plan.id)).rowcount


def test_groups_go_by_what_they_take(world: World) -> None:
    agents = world.agents.having(CLEVERAGENTS_CHECKPOINT_MAX_TOTAL_SIZE="1MB")
    steps = [shell("head -c 400000 /dev/urandom > noise", f"s{index}") for index in range(6)]
    plan = run(world, agents, *steps)
    file = world.agents.data_dir / "snapshots" / f"{plan.id}.db"
    assert file.stat().st_size < 1_600_000
    assert "after shell s5" in [group.label for group in plan.groups]
    assert "after shell s1" not in [group.label for group in plan.groups]
    assert "more than 1000000 bytes" in plan.rollback("after shell s1").error["message"]
