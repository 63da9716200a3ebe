"""When groups are made beside those of the decisions, which ones go again, and who says so."""

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.support.agents import Agents
from tests.support.refusals import refused
from tests.support.world import PlanHandle, World, action, shell, write

KEY = "sandbox.checkpoint.auto-create-on"
LIMIT = "sandbox.checkpoint.max-checkpoints-per-plan"
VARIABLE = "CLEVERAGENTS_CHECKPOINT_AUTO_CREATE_ON"
DEFAULT = ["on_tool_write", "on_tool_write_complete", "on_subplan_spawn", "on_error"]
READ = {"name": "read", "tool": "file.read", "with": {"resource": "code", "path": "README.md"}}


def run(world: World, agents: Agents, *steps: object) -> PlanHandle:
    path = world.write_action(action(*steps))  # type: ignore[arg-type]
    plan = PlanHandle(agents, agents("plan", "use", path).ok().data["plan_id"])
    plan.execute()
    return plan


def triggered(plan: PlanHandle) -> list[str]:
    return [reason for reason in plan.reasons if reason != "decision"]


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
    assert plan.reasons == ["decision", "decision"]


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
    assert plan.reasons == ["decision"] * 3
    plan.rollback("decision 1: two").ok()
    assert (plan.sandbox / "a").exists()
    assert not (plan.sandbox / "b").exists()
    plan("resume").ok()
    assert (plan.sandbox / "b").read_text() == "2"


def test_an_error_without_its_trigger_leaves_no_group_but_an_errored_plan(world: World) -> None:
    agents = world.agents.having(**{VARIABLE: "[]"})
    plan = run(world, agents, shell("echo half > half; false", "bad"))
    assert triggered(plan) == []
    assert plan.status["state"] == "errored"
    plan.rollback("decision 0: bad").ok()
    assert not (plan.sandbox / "half").exists()


# --- where the list comes from ------------------------------------------------------------------


def value(agents: Agents) -> tuple[list[str], str]:
    data = agents("config", "get", KEY).ok().data
    return data["value"], data["origin"]


def test_the_default_is_the_four_triggers(world: World) -> None:
    assert value(world.agents) == (DEFAULT, "default")


def test_environment_wins_over_project_and_project_over_global(world: World) -> None:
    world.agents("config", "set", KEY, "on_error").ok()
    assert value(world.agents)[0] == ["on_error"]
    assert value(world.agents)[1].startswith("global config")
    world.agents("config", "set", "--project", KEY, "before_tool_execute").ok()
    assert value(world.agents)[0] == ["on_tool_write"]
    assert value(world.agents)[1].startswith("project config")
    agents = world.agents.having(**{VARIABLE: "after_step,before_step"})
    assert value(agents)[0] == ["after_step", "before_step"]
    assert VARIABLE in value(agents)[1]
    plan = run(world, world.agents, write("a", "1"))
    assert triggered(plan) == ["on_tool_write"]


def test_a_config_path_takes_the_place_of_the_global_config(world: World) -> None:
    world.agents("config", "set", KEY, "on_error").ok()
    file = world.top / "other.toml"
    file.write_text('[sandbox.checkpoint]\nauto-create-on = ["before_step"]\n')
    answer = world.agents("--config-path", str(file), "config", "get", KEY).ok()
    assert answer.data["value"] == ["before_step"]
    path = world.write_action(action(write("a", "1")))
    plan_id = world.agents("--config-path", str(file), "plan", "use", path).data["plan_id"]
    world.agents("--config-path", str(file), "plan", "execute", plan_id).ok()
    assert triggered(PlanHandle(world.agents, plan_id)) == ["before_step"]


def test_the_data_dir_may_come_from_flag_or_environment_and_the_flag_wins(world: World) -> None:
    one, two = world.top / "one", world.top / "two"
    agents = world.agents.having(CLEVERAGENTS_DATA_DIR=str(one))
    agents("plan", "list").ok()
    assert (one / "cleveragents.db").exists()
    agents("--data-dir", str(two), "plan", "list").ok()
    assert (two / "cleveragents.db").exists()


def test_a_database_url_puts_the_database_elsewhere(world: World) -> None:
    file = world.top / "elsewhere" / "my.db"
    agents = world.agents.having(CLEVERAGENTS_DATABASE_URL=f"sqlite:///{file}")
    run(world, agents, write("a", "1"))
    assert file.exists()
    assert world.plan_count() == 0


def _by_flag(world: World) -> Sequence[str]:
    return ["config", "set", KEY, "on_tool_wirte"]


def _by_global_file(world: World) -> Sequence[str]:
    file = world.agents.data_dir / "config.toml"
    file.write_text('[sandbox.checkpoint]\nauto-create-on = ["on_tool_wirte"]\n')
    return ["plan", "list"]


def _by_project_file(world: World) -> Sequence[str]:
    file = world.project.path / ".cleveragents" / "config.toml"
    file.parent.mkdir()
    file.write_text('[sandbox.checkpoint]\nauto-create-on = ["on_tool_wirte"]\n')
    return ["plan", "list"]


@pytest.mark.parametrize("make", [_by_flag, _by_global_file, _by_project_file])
def test_an_unknown_trigger_is_an_error_that_lists_the_valid_names(
    world: World, make: Callable[[World], Sequence[str]]
) -> None:
    answer = world.agents(*make(world))
    assert (answer.code, answer.error["code"]) == (2, "invalid-config-value")
    for name in (*DEFAULT, "before_step", "after_step", "after_subplan", "before_apply"):
        assert name in answer.error["message"]
    assert "on_tool_wirte" in answer.error["message"]


def test_an_unknown_trigger_in_the_environment_stops_execute_before_anything_happens(
    world: World,
) -> None:
    plan = world.use(write("a", "1"))
    before = world.records()
    answer = world.agents.having(**{VARIABLE: "sometimes"})("plan", "execute", plan.id)
    assert (answer.code, answer.error["code"]) == (2, "invalid-config-value")
    assert world.records() == before
    assert plan.status["state"] == "queued"


@pytest.mark.parametrize(
    ("content", "code"),
    [
        ("nonsense = 1\n", "unknown-config-key"),
        ('formt = "json"\n', "unknown-config-key"),
        ('format = "xml"\n', "invalid-config-value"),
        ("[sandbox.checkpoint]\nmax-checkpoints-per-plan = 1\n", "invalid-config-value"),
        ("[sandbox.checkpoint]\nmax-checkpoints-per-plan = true\n", "invalid-config-value"),
        ("this is = not [ toml\n", "config-file"),
    ],
)
def test_a_bad_config_file_is_refused_with_a_suggestion(
    world: World, content: str, code: str
) -> None:
    file = world.agents.data_dir / "config.toml"
    file.write_text(content)
    for words in (("plan", "list"), ("config", "list")):
        answer = world.agents(*words)
        assert (answer.code, answer.error["code"]) == (2, code)
        assert str(file) in answer.error["message"]
        assert answer.error["hint"]


def test_config_set_changes_one_value_and_keeps_the_rest_of_the_file(world: World) -> None:
    file = world.agents.data_dir / "config.toml"
    file.write_text('# mine\nformat = "json"  # yes\n')
    world.agents("config", "set", LIMIT, "7").ok()
    assert world.agents("config", "get", LIMIT).data["value"] == 7
    assert "# mine\n" in file.read_text()
    assert 'format = "json"  # yes' in file.read_text()


def test_a_project_may_not_say_where_data_is_kept(world: World) -> None:
    answer = world.agents("config", "set", "--project", "data-dir", "/tmp/elsewhere")
    assert (answer.code, answer.error["code"]) == (2, "invalid-config-value")


def test_every_key_of_the_config_is_listed_with_its_origin(world: World) -> None:
    listed = world.agents("config", "list").ok().data["config"]
    assert {KEY, LIMIT, "format", "data-dir", "database.url", "tool.timeout"} <= {
        item["key"] for item in listed
    }
    assert all(item["origin"] == "default" and item["doc"] for item in listed)


def test_a_mistyped_variable_is_warned_about(world: World) -> None:
    answer = world.agents.having(CLEVERAGENTS_FORMTA="json")("plan", "list").ok()
    assert answer.envelope["status"] == "warn"
    assert any("CLEVERAGENTS_FORMAT" in text for text in answer.envelope["messages"])


def test_the_configured_timeout_is_obeyed(world: World) -> None:
    agents = world.agents.having(CLEVERAGENTS_TOOL_TIMEOUT="0.2")
    plan = run(world, agents, shell("sleep 20", "slow"))
    assert "0.2 seconds" in plan.status["error"]["message"]


# --- retention ----------------------------------------------------------------------------------


@pytest.fixture
def six(world: World) -> Agents:
    return world.agents.having(CLEVERAGENTS_CHECKPOINT_MAX_PER_PLAN="6")


def test_the_oldest_groups_go_whole_and_the_first_and_newest_stay(
    world: World, six: Agents
) -> None:
    steps = [write(f"f{index}", str(index), f"s{index}") for index in range(5)]
    plan = run(world, six, *steps)
    labels = [group.label for group in plan.groups]
    assert labels == [
        "start",
        "before file.write f3",
        "after file.write f3",
        "decision 4: s4",
        "before file.write f4",
        "after file.write f4",
    ]
    kinds = [{row["checkpoint_type"] for row in group.rows} for group in plan.groups]
    assert all("plan-state" in kind for kind in kinds)
    assert plan.status["execution"]["checkpoints"] == 6


def test_what_is_left_after_pruning_can_still_be_gone_back_to(world: World, six: Agents) -> None:
    commands = [f"echo {index} > f{index}; echo {index} > same" for index in range(5)]
    trees = world.replay(commands)
    plan = run(world, six, *(shell(c, f"s{i}") for i, c in enumerate(commands)))
    plan.agents = world.agents  # each rollback keeps a safety group, which counts too
    plan("checkpoint", "verify").ok()
    for group in plan.groups[::-1]:
        plan.rollback(group.group_id).ok()
        done = group.reason == "on_tool_write_complete"
        assert plan.tree() == trees[group.step_index + (1 if done else 0)], group.label


def test_a_group_labelled_by_hand_is_never_pruned(world: World, six: Agents) -> None:
    cure = world.top / "cure"
    steps = [write(f"f{index}", str(index), f"s{index}") for index in range(5)]
    plan = run(world, six, write("a", "1", "a"), shell(f"test -e {cure}", "wait"), *steps)
    world.agents("plan", "checkpoint", "create", "--label", "keep me", plan.id).ok()
    cure.touch()
    plan("resume").ok()
    labels = [group.label for group in plan.groups]
    assert len(labels) == 6
    assert labels[:2] == ["start", "keep me"]
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
    plan = world.run(*steps, rollback_policy={"max_checkpoints": 5})
    assert len(plan.groups) == 5
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
    plan.rollback("decision 1: two").ok()
    assert (plan.sandbox / "a").read_text() == "1"
    assert not (plan.sandbox / "b").exists()


def prune(plan: PlanHandle, agents: Agents, flag: str) -> Mapping[str, Any]:
    return agents("plan", "checkpoint", "prune", flag, plan.id).ok().data


def reasons(items: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    return {item["label"]: item["reason"] for item in items}


def test_a_dry_run_says_which_groups_would_go_and_why_and_changes_nothing(
    world: World, six: Agents
) -> None:
    plan = world.run(*(write(f"f{index}", str(index), f"s{index}") for index in range(3)))
    world.agents("plan", "checkpoint", "create", "--label", "mine", plan.id).ok()
    plan.rollback("decision 1: s1").ok()
    records = world.records()

    found = prune(plan, six, "--dry-run")

    assert (found["dry_run"], found["freed_bytes"]) == (True, 0)
    assert reasons(found["kept"]) == {
        "start": "the first",
        "decision 1: s1": "the plan stands on it",
        "mine": "labelled by hand",
        "before rollback to decision 1: s1": "the most recent",
        "before file.write f2": "within the limits",
        "after file.write f2": "within the limits",
    }
    assert set(reasons(found["removed"]).values()) == {"more than 6, and among the oldest"}
    assert world.records() == records
    said = refused(six("plan", "checkpoint", "prune", plan.id), "confirmation-needed", 2)
    assert "Prune 6 checkpoints" in said
    assert world.records() == records


def test_pruning_frees_the_room_that_it_says_and_the_rest_still_works(world: World) -> None:
    steps = [shell("head -c 400000 /dev/urandom > noise", f"s{index}") for index in range(6)]
    plan = world.run(*steps)
    file = world.agents.data_dir / "snapshots" / f"{plan.id}.db"
    before, old = file.stat().st_size, plan.groups[1].group_id
    agents = world.agents.having(CLEVERAGENTS_CHECKPOINT_MAX_PER_PLAN="4")

    done = prune(plan, agents, "--yes")

    assert len(plan.groups) == len(done["kept"]) == 4
    assert done["freed_bytes"] > 3 * 400_000
    assert before - file.stat().st_size == done["freed_bytes"]
    plan("checkpoint", "verify").ok()
    said = refused(plan.rollback(old), "checkpoint-not-found")
    assert "it was pruned at" in said
    assert "more than 4" in said
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
    plan.rollback("decision 1: s1").ok()
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
