"""`agents doctor` and child plans: what they leave, and what comes back of it."""

from collections.abc import Mapping
from typing import Any

from tests.support.world import World, write


def findings(world: World, *words: str) -> list[Mapping[str, Any]]:
    return world.agents("doctor", *words).data["findings"]


def test_child_plans_and_what_they_leave_are_in_order(world: World) -> None:
    children = {
        "parallel": True,
        "plans": [
            {"name": "en", "steps": [write("en.txt", "1")]},
            {"name": "de", "steps": [write("de.txt", "1")]},
        ],
    }
    plan = world.run({"name": "both", "subplans": children}, write("last", "1", "last"))
    assert findings(world) == []
    plan.rollback("start").ok()
    assert findings(world) == []
    world.agents("store", "verify").ok()
    plan.execute().ok()
    plan("apply", "--yes").ok()
    assert findings(world) == []


def test_a_childs_sandbox_that_came_back_after_it_was_removed_goes_again(world: World) -> None:
    """As after a power cut: that it was removed is on record, and the file system forgot it."""
    children = {"plans": [{"name": "en", "steps": [write("en.txt", "1")]}]}
    plan = world.run({"name": "both", "subplans": children}, write("last", "1", "last"))
    (child,) = plan.status["children"]
    back = world.agents.data_dir / "sandboxes" / child["plan_id"] / "code"
    back.mkdir(parents=True)
    (back / "en.txt").write_text("1")
    assert findings(world) != []
    assert [item["state"] for item in findings(world, "--fix", "--yes")] == ["mended"]
    assert not back.exists()
    assert findings(world) == []
