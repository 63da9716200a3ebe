"""Whoever would go on writing once a step has ended: it does not, and no group misses anything."""

import sys
import time
from pathlib import Path
from typing import Any

from tests.support.trees import tree_of
from tests.support.world import PlanHandle, World, shell

SERVER = str(Path(__file__).parents[1] / "support" / "mcp_late_writer.py")
LATE = {"thread", "child", "chain"}
BEGIN = {"name": "begin", "tool": "begin", "with": {}}


def late_server(*words: str, tool: str = "begin") -> dict[str, Any]:
    begin = {"server": "late", "tool": tool, "writes": True, "timeout": 20}
    return {
        "mcp_servers": {"late": {"command": [sys.executable, SERVER, *words]}},
        "tools": {"begin": begin},
    }


def files_of_calls(plan: PlanHandle) -> list[set[str]]:
    calls = plan("artifacts").ok().data["artifacts"]
    return [{file["path"] for file in call["files"]} for call in calls]


def test_a_failed_plan_and_a_child_leave_no_server_behind(world: World) -> None:
    """Their groups, and what is merged, are what is there: nothing follows."""
    child = {"name": "one", "steps": [BEGIN]}
    spawn = {"name": "spawn", "subplans": {"plans": [child]}}
    plan = world.run(spawn, **late_server())
    ended = tree_of(plan.sandbox)
    told = plan("rollback", "--dry-run", "{}", plan.status["last_checkpoint_id"]).ok().data
    assert told["changes_reverted"] == []

    failed = world.use(BEGIN, shell("exit 3", "fail"), **late_server())
    assert failed.execute().code == 1
    assert failed.groups[-1].reason == "on_error"
    kept = tree_of(failed.sandbox)
    time.sleep(0.5)
    assert tree_of(plan.sandbox) == ended
    assert tree_of(failed.sandbox) == kept
    told = failed("rollback", "--dry-run", "{}", failed.groups[-1].group_id).ok().data
    assert told["changes_reverted"] == []


def test_a_server_writes_nothing_that_no_call_lists(world: World) -> None:
    """From a thread, from a child in its own session, from a chain of them, when it is told to end,
    and at the end of its input."""
    plan = world.run(BEGIN, shell("sleep 0.3; echo 1 > own", "other"), **late_server())
    assert files_of_calls(plan) == [LATE, {"own"}]
    ended = tree_of(plan.sandbox)
    assert not {"term", "end-of-input"} & {path.name for path in plan.sandbox.iterdir()}
    plan.rollback(plan.status["last_checkpoint_id"]).ok()
    time.sleep(0.3)
    assert tree_of(plan.sandbox) == ended


def test_a_server_that_was_started_for_nothing_writes_nothing_more_either(world: World) -> None:
    """It has no such tool, and has written since its first breath."""
    plan = world.use(BEGIN, **late_server("early", tool="bigin"))
    answer = plan.execute()
    assert "did you mean `begin`" in answer.error["message"]
    left = tree_of(plan.sandbox)
    plan.rollback("start").ok()
    plan.rollback("error in begin begin").ok()
    assert tree_of(plan.sandbox) == left
    assert plan("diff").ok().data["files"]
