"""A family of plans killed at moments all along its run: the next command goes on to the same end.

Children run in threads, so that the n-th thing that lasts is not always the same one. That is no
loss: whatever it is, the end must be the same.
"""

from pathlib import Path
from typing import Any

import pytest
from tests.support.kill_points import THOROUGH, cut_short
from tests.support.world import PlanHandle, Step, World, shell

STRIDE = 47 * min(THOROUGH, 3)
PARTS = 2


@pytest.fixture
def world(quick_path: Path, template: World) -> World:
    return World(quick_path / "w", template)


def child(name: str, *steps: Step, **keys: Any) -> dict[str, Any]:
    return {"name": name, "steps": list(steps), **keys}


STEPS = [
    shell("seq 1 9 > list.txt; echo keep > keep.txt", "list"),
    {
        "name": "spawn",
        "subplans": {
            "parallel": True,
            "plans": [
                child("a", shell("sed -i s/^1$/one/ list.txt", "one"), shell("echo a > a.txt")),
                child(
                    "b", shell("sed -i s/^9$/nine/ list.txt; rm keep.txt; mkdir d; echo b > d/b")
                ),
                child("c", shell("cat a.txt d/b > c.txt"), depends_on=["a", "b"]),
            ],
        },
    },
    shell("cat list.txt c.txt > all.txt", "sum"),
]
ALL = "one\n2\n3\n4\n5\n6\n7\n8\nnine\na\nb\n"


@pytest.mark.parametrize("part", range(PARTS))
def test_a_family_killed_anywhere_comes_to_the_same_end(world: World, part: int) -> None:
    wanted = world.run(*STEPS).tree()
    number, kills = 1 + part * STRIDE // PARTS, 0
    while True:
        plan = world.use(*STEPS)
        if not cut_short(lambda plan=plan: plan("execute"), number):
            break
        _goes_on(plan, wanted, number)
        number, kills = number + STRIDE, kills + 1
    assert kills >= 2


@pytest.mark.parametrize("part", range(PARTS))
def test_a_family_killed_anywhere_can_be_rolled_back(world: World, part: int) -> None:
    start = world.replay([])[0]
    number = 60 + part * STRIDE
    while True:
        plan = world.use(*STEPS)
        done = not cut_short(lambda plan=plan: plan("execute"), number)
        if plan.groups:
            plan.rollback("start").ok()
            assert plan.tree() == start, number
            assert plan.status["execution"]["child_plans"] == 0
        if done:
            break
        number += PARTS * STRIDE


def _goes_on(plan: PlanHandle, wanted: object, number: int) -> None:
    plan("resume").ok()
    assert plan.tree() == wanted, f"killed before {number}"
    status = plan.status
    assert status["state"] == "complete"
    outcomes = {c["name"]: c["outcome"] for c in status["children"] if c["outcome"] != "discarded"}
    assert outcomes == {"a": "merged", "b": "merged", "c": "merged"}
    merges = [c for c in plan("artifacts").data["artifacts"] if c["tool"] == "subplans"]
    assert len(merges) == 3
    assert (plan.sandbox / "all.txt").read_text() == ALL
