"""When groups are made beside those of the decisions, and what a policy changes about it."""

from collections.abc import Sequence

import pytest
from tests.support.triggers import VARIABLE, run, triggered
from tests.support.world import PlanHandle, World, action, shell, write

READ = {"name": "read", "tool": "file.read", "with": {"resource": "code", "path": "README.md"}}


def decided(plan: PlanHandle) -> int:
    return plan.reasons.count("decision")


# --- which triggers -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["on_tool_write"], ["on_tool_write"]),
        (["on_tool_write_complete"], ["on_tool_write_complete"]),
        (["before_step"], ["before_step", "before_step"]),
        (["after_step"], ["after_step", "after_step"]),
        (["before_tool_execute"], ["on_tool_write"]),
        (["after_tool_execute"], ["on_tool_write_complete"]),
        (["on_subplan_spawn", "after_subplan", "on_error"], []),
        (
            ["before_step", "after_step", "before_tool_execute", "on_tool_write"],
            ["before_step", "on_tool_write", "after_step", "before_step", "after_step"],
        ),
    ],
)
def test_exactly_the_named_triggers_fire(
    world: World, names: Sequence[str], expected: Sequence[str]
) -> None:
    agents = world.agents.having(**{VARIABLE: ",".join(names)})
    plan = run(world, agents, write("a", "1"), READ)
    assert triggered(plan) == list(expected)
    assert decided(plan) == 3


def test_a_tool_that_only_reads_fires_no_write_trigger(world: World) -> None:
    plan = world.run(READ)
    assert plan.reasons == ["decision", "decision", "complete"]


def test_before_apply_makes_its_group_before_anything_real_changes(world: World) -> None:
    agents = world.agents.having(**{VARIABLE: "before_apply"})
    # The ignored file keeps the sandbox and with it the groups.
    plan = run(world, agents, shell("echo 1 > a.txt; echo 2 > a.log", "s"))
    plan("apply", "--yes").ok()
    assert triggered(plan) == ["before_apply"]


def test_the_empty_list_leaves_the_groups_of_the_decisions_and_they_still_work(
    world: World,
) -> None:
    agents = world.agents.having(**{VARIABLE: ""})
    plan = run(world, agents, write("a", "1", "one"), write("b", "2", "two"))
    assert plan.reasons == [*["decision"] * 3, "complete"]
    plan.rollback("decision 2: two").ok()
    assert (plan.sandbox / "a").exists()
    assert not (plan.sandbox / "b").exists()
    plan("resume").ok()
    assert (plan.sandbox / "b").read_text() == "2"


def test_an_error_without_its_trigger_leaves_no_group_but_an_errored_plan(world: World) -> None:
    agents = world.agents.having(**{VARIABLE: "[]"})
    plan = run(world, agents, shell("echo half > half; false", "bad"))
    assert triggered(plan) == []
    assert plan.status["state"] == "errored"
    plan.rollback("decision 1: bad").ok()
    assert not (plan.sandbox / "half").exists()


# --- policy -------------------------------------------------------------------------------------


def test_a_policy_that_switches_checkpoints_off_leaves_none_and_the_plan_still_runs(
    world: World,
) -> None:
    plan = world.run(write("a", "1"), rollback_policy={"enabled": False})
    assert plan.groups == []
    assert plan.status["state"] == "complete"
    assert plan.rollback("start").error["code"] == "checkpoint-not-found"
    plan("apply", "--yes").ok()
    assert world.project.read("a") == "1"


def test_a_policy_that_switches_checkpoints_off_still_lets_a_failed_step_be_undone(
    world: World,
) -> None:
    cure = world.top / "cure"
    plan = world.use(
        write("a", "1"),
        shell(f"echo x >> half; test -e {cure}", "bad"),
        rollback_policy={"enabled": False},
    )
    assert plan.execute().code == 1
    cure.touch()
    plan("resume").ok()
    assert (plan.sandbox / "half").read_text() == "x\n"
    assert plan.groups == []


TOOLS = {"deploy": {"command": ["touch", "deployed"], "writes": True, "checkpointable": False}}
FIXED = {"code": {"type": "git-checkout", "path": ".", "checkpointable": False}}


def test_a_plan_that_needs_checkpoints_it_cannot_have_is_refused_whole_with_every_reason(
    world: World,
) -> None:
    before = (world.project.fingerprint(), world.project.traces(), world.records())
    steps = [{"name": "d", "tool": "deploy"}, write("a", "1"), shell("true"), *_reading()]
    path = world.write_action(action(*steps, resources=FIXED, tools=TOOLS))
    answer = world.agents("plan", "use", path)
    assert (answer.code, answer.error["code"]) == (1, "action-invalid")
    message = answer.error["message"]
    assert "steps[0]: deploy writes, but says that its effects cannot be checkpointed" in message
    for number, tool in ((0, "deploy"), (1, "file.write"), (2, "shell")):
        said = f"steps[{number}]: {tool} writes to `code`, of which no checkpoint can be made"
        assert said in message
    assert "steps[3]" not in message
    assert "require_checkpoints: false" in message
    assert (world.project.fingerprint(), world.project.traces(), world.records()) == before
    assert world.plan_count() == 0


def _reading() -> list[dict[str, object]]:
    return [{"name": "r", "tool": "file.read", "with": {"path": "README.md"}}]


@pytest.mark.parametrize("policy", [{"require_checkpoints": False}, {"enabled": False}])
def test_a_policy_that_asks_for_no_checkpoints_lets_such_a_plan_run(
    world: World, policy: dict[str, bool]
) -> None:
    steps = [{"name": "d", "tool": "deploy"}, write("a", "1")]
    plan = world.run(*steps, resources=FIXED, tools=TOOLS, rollback_policy=policy)
    assert (plan.sandbox / "a").read_text() == "1"


def test_require_checkpoints_false_lets_such_a_tool_run(world: World) -> None:
    policy = {"require_checkpoints": False}
    plan = world.run({"name": "d", "tool": "deploy"}, tools=TOOLS, rollback_policy=policy)
    assert (plan.sandbox / "deployed").exists()


def test_effects_outside_the_sandbox_are_warned_about_at_rollback(world: World) -> None:
    tools = {"mail": {"command": ["touch", "sent"], "side_effects": ["a mail to the boss"]}}
    plan = world.run({"name": "m", "tool": "mail"}, tools=tools)
    answer = plan.rollback("start").ok()
    assert answer.envelope["status"] == "warn"
    assert any("a mail to the boss" in text for text in answer.envelope["messages"])


def test_excluded_paths_stay_in_place_and_are_named(world: World) -> None:
    resources = {"code": {"type": "git-checkout", "path": ".", "exclude": ["target/"]}}
    plan = world.run(shell("mkdir target; echo o > target/o; echo n > n", "s"), resources=resources)
    answer = plan.rollback("start").ok()
    assert (plan.sandbox / "target" / "o").exists()
    assert not (plan.sandbox / "n").exists()
    assert any("target/" in text for text in answer.envelope["messages"])


def test_included_paths_are_brought_along(world: World) -> None:
    resources = {"code": {"type": "git-checkout", "path": ".", "include": ["debug.log"]}}
    plan = world.run(shell("cat debug.log > seen", "s"), resources=resources)
    assert (plan.sandbox / "seen").read_text() == "ignored\n"
