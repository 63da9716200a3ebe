"""Twenty processes at once on one data folder: nothing lost, nothing stuck."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.support.trees import tree_of
from tests.support.world import PlanHandle, World, write

pytestmark = pytest.mark.usefixtures("unmeasured")
MANY = 20


def all_at_once(world: World, lines: Sequence[Sequence[str]]) -> list[dict[str, Any]]:
    """Every line as a process of its own, all started before the first is waited for."""
    running = [world.agents.fork(*line) for line in lines]
    answers = [process.answer() for process in running]
    assert [a.err for a in answers if "locked" in a.err.replace("plan-locked", "")] == []
    return [answer.envelope for answer in answers]


def test_the_same_plan(world: World) -> None:
    plan = world.run(write("a.txt", "one"), write("b.txt", "two"))
    begin = plan.groups[0].group_id
    wishes = (
        lambda n: ("plan", "checkpoint", "create", "--label", f"hand {n}", plan.id),
        lambda _: ("plan", "rollback", "--yes", plan.id, begin),
        lambda _: ("plan", "execute", plan.id),
        lambda _: ("plan", "status", plan.id),
    )
    answers = all_at_once(world, [wishes[n % len(wishes)](n) for n in range(MANY)])

    refused = [answer["data"]["error"]["code"] for answer in answers if answer["exit_code"]]
    assert set(refused) <= {"plan-locked"}
    assert len(refused) < MANY
    made = [a["data"]["label"] for a in answers if a["command"].endswith("create") and not _bad(a)]
    labels = [group.label for group in plan.groups]
    assert all(labels.count(label) == 1 for label in made)
    # Whatever the order was: it can be gone on from, and everything can be gone back to.
    plan.execute().ok()
    assert (plan.sandbox / "a.txt").read_text() == "one"
    assert (plan.sandbox / "b.txt").read_text() == "two"
    plan("checkpoint", "verify").ok()
    world.agents("store", "verify").ok()


def test_as_many_plans(world: World) -> None:
    before = world.project.fingerprint()
    actions = [
        world.write_action(
            {
                "name": f"plan-{n}",
                "description": "one of many",
                "resources": {"code": {"type": "git-checkout", "path": "."}},
                "steps": [write("mine.txt", f"{n}"), write("more.txt", f"{n}")],
            },
            f"a{n}.yaml",
        )
        for n in range(MANY)
    ]
    used = all_at_once(world, [("plan", "use", path) for path in actions])
    assert [answer["exit_code"] for answer in used] == [0] * MANY, used
    plans = [PlanHandle(world.agents, answer["data"]["plan_id"]) for answer in used]
    executed = all_at_once(world, [("plan", "execute", plan.id) for plan in plans])
    assert not [a["data"]["error"] for a in executed if a["exit_code"]]

    for n, plan in enumerate(plans):
        assert (plan.sandbox / "mine.txt").read_text() == f"{n}"
    starts = [plan.groups[0].group_id for plan in plans]
    back = all_at_once(
        world,
        [
            ("plan", "rollback", "--yes", p.id, start)
            for p, start in zip(plans, starts, strict=True)
        ],
    )
    assert not [a["data"]["error"] for a in back if a["exit_code"]]
    begun = _committed(world)
    assert all(tree_of(plan.sandbox) == begun for plan in plans)
    assert world.project.fingerprint() == before
    world.agents("store", "verify").ok()


def _committed(world: World) -> object:
    clone = world.top / "clone"
    world.project.git("clone", "-q", str(world.project.path), str(clone))
    return tree_of(Path(clone))


def _bad(answer: dict[str, Any]) -> bool:
    return bool(answer["exit_code"])
