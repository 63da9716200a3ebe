"""What a spawn may still need to take back is kept, however few checkpoints are."""

from typing import Any

import pytest
from tests.support.containers import make_container
from tests.support.world import PlanHandle, Step, World, shell

from cleveragents.domain.errors import SnapshotDamagedError
from cleveragents.domain.ids import PlanId

FEW = {"max_checkpoints": 1}


def child(name: str, command: str, **keys: Any) -> dict[str, Any]:
    return {"name": name, "steps": [shell(command)], **keys}


def spawn(*children: dict[str, Any], **keys: Any) -> Step:
    told = {"parallel": True, "merge_strategy": "fail_on_conflict", "plans": list(children)}
    return {"name": "spawn", "subplans": {**told, "max_retries": 0, **keys}}


def names(plan: PlanHandle) -> set[str]:
    return {path.name for path in plan.sandbox.glob("?.txt")}


@pytest.fixture
def stuck(world: World) -> PlanHandle:
    """`a` is merged and `b` failed; if `b` does what it should, `c` conflicts with it."""
    gate = world.beside / "gate"
    plan = world.use(
        shell("echo one > t.txt"),
        spawn(
            child("a", "echo a > a.txt; rm README.md"),
            child("b", f"test -e {gate} && echo b > t.txt", depends_on=["a"]),
            child("c", f"test -e {gate} && echo c > t.txt", depends_on=["a"]),
            fail_fast=True,
        ),
        rollback_policy=FEW,
    )
    plan("execute")
    assert names(plan) == {"a.txt", "t.txt"}
    assert [group.label for group in plan.groups][3:] == ["error in spawn"]
    gate.touch()
    return plan


def test_merges_are_taken_back_although_the_checkpoint_before_them_was_pruned(
    stuck: PlanHandle,
) -> None:
    stuck("checkpoint", "prune", "--yes")
    stuck("resume")
    assert "child `c` conflicts: code:t.txt" in stuck.status["error"]["message"]
    assert names(stuck) == {"t.txt"}
    assert (stuck.sandbox / "t.txt").read_text() == "one\n"
    assert (stuck.sandbox / "README.md").exists()


def test_what_a_spawn_needed_is_freed_once_it_is_over(world: World) -> None:
    plan = world.use(
        shell("echo one > t.txt"),
        spawn(child("a", "echo a > a.txt")),
        *(shell(f"echo {n} > n.txt") for n in range(3)),
        rollback_policy=FEW,
    )
    plan("execute").ok()
    plan("checkpoint", "prune", "--yes").ok()  # a plan's end waits for more than so little

    container = make_container(world)
    (parent,) = container.plan_queries.status(PlanId(plan.id)).resources
    (a,) = plan.status["children"]
    with container._unit_of_work.reading() as uow:
        (branched,) = uow.resources.of_plan(PlanId(a["plan_id"]))
    assert branched.branched_at is not None
    with pytest.raises(SnapshotDamagedError):
        container._snapshots.compare(parent, branched.branched_at)
