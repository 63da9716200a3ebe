"""The end of a plan, killed at every moment: it is complete with its last group, or neither."""

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.support.coding_agent import use_command
from tests.support.kill_points import PARTS, Point, kill_points, killed, share
from tests.support.trees import tree_of
from tests.support.triggers import VARIABLE
from tests.support.world import PlanHandle, World, write

READ = {"name": "read", "tool": "file.read", "with": {"resource": "code", "path": "README.md"}}
CHECK = {"description": "Judges", "command": ["test", "-e", "a"], "validation": "required"}
ENDS: dict[str, Callable[[World], PlanHandle]] = {
    "reads": lambda world: world.use(write("a", "1"), READ),
    "is validated": lambda world: world.use(write("a", "1"), tools={"check": CHECK}),
    "was silent": lambda world: use_command(world, ["sh", "-c", "echo 1 > a"]),
}


@pytest.fixture(params=range(PARTS))
def part(request: pytest.FixtureRequest) -> int:
    return request.param


@pytest.mark.parametrize("make", ENDS.values(), ids=ENDS)
def test_a_plan_that(
    quick_path: Path, template: World, make: Callable[[World], PlanHandle], part: int
) -> None:
    world = World(quick_path / "w", template)
    world.agents = world.agents.having(**{VARIABLE: ""})
    plan = make(world)
    expected: list[str] = []
    for point in _killed_everywhere(world, plan, part):
        status = plan.status
        if status["state"] == "complete":
            _is_whole(plan, point)
        plan.execute().ok()
        # What a kill left half done is kept beside it.
        reasons = [reason for reason in plan.reasons if reason != "before_rollback"]
        expected = expected or reasons
        assert reasons == expected, point
        _is_whole(plan, point)
        world.agents("store", "verify").ok()


def _killed_everywhere(world: World, plan: PlanHandle, part: int) -> Iterator[Point]:
    saved = world.top.with_name("saved")
    subprocess.run(["cp", "-a", str(world.top), str(saved)], check=True)
    data = world.agents.data_dir
    watched = [
        *(data / name for name in ("cleveragents.db", "cleveragents.db-wal")),
        *(data / name for name in ("sandboxes", "snapshots", "locks", "repositories")),
    ]

    def work() -> None:
        plan.execute().ok()

    points = kill_points(work, watched)
    for point in share(points, part, PARTS):
        subprocess.run(["rm", "-rf", str(world.top)], check=True)
        subprocess.run(["cp", "-a", str(saved), str(world.top)], check=True)
        killed(work, point)
        yield point


def _is_whole(plan: PlanHandle, point: Point) -> None:
    """Going back to where it stands would change nothing, and does not."""
    status, before = plan.status, tree_of(plan.sandbox)
    assert status["state"] == "complete", point
    assert "a" in {path.name for path in plan.sandbox.iterdir()}, point
    told = plan("rollback", "--dry-run", "{}", status["last_checkpoint_id"]).ok().data
    assert told["changes_reverted"] == [], point
    assert told["impact"]["tool_calls_after_cp"] == "0 undone", point
    assert told["impact"]["decisions_after_cp"] == "0 discarded", point
    assert tree_of(plan.sandbox) == before, point
