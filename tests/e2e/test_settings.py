"""Settings through the command: who says what a key is, and which ones are refused."""

from collections.abc import Callable, Sequence

import pytest
from tests.support.agents import Agents
from tests.support.triggers import VARIABLE, run, triggered
from tests.support.world import PlanHandle, World, action, shell, write

KEY = "sandbox.checkpoint.auto-create-on"
LIMIT = "sandbox.checkpoint.max-checkpoints-per-plan"
DEFAULT = ["on_tool_write", "on_tool_write_complete", "on_subplan_spawn", "on_error"]


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


def test_a_value_that_is_unset_is_told_with_what_holds_instead(world: World) -> None:
    world.agents("config", "set", "tool.timeout", "7").ok()
    world.agents("config", "set", "--project", "tool.timeout", "5").ok()

    answer = world.agents("config", "unset", "--project", "tool.timeout").ok()

    assert (answer.data["removed"], answer.data["value"]) == (True, 7)
    assert answer.data["origin"].startswith("global config")
    assert world.agents("config", "unset", "tool.timeout").ok().data["origin"] == "default"
    assert world.agents("config", "unset", "tool.timeout").ok().data["removed"] is False


def test_setting_what_the_environment_overrides_says_so_and_what_to_type(world: World) -> None:
    agents = world.agents.having(CLEVERAGENTS_TOOL_TIMEOUT="3")

    told = agents("config", "set", "tool.timeout", "7").ok().envelope

    assert told["status"] == "warn"
    assert any("`unset CLEVERAGENTS_TOOL_TIMEOUT`" in text for text in told["messages"])


def test_setting_globally_what_the_project_overrides_says_so_and_what_to_type(world: World) -> None:
    world.agents("config", "set", "--project", "tool.timeout", "5").ok()

    told = world.agents("config", "set", "tool.timeout", "7").ok().envelope

    assert any("`agents config unset --project tool.timeout`" in m for m in told["messages"])
    told = world.agents("config", "set", "--project", "tool.timeout", "6").ok().envelope
    assert told["status"] == "ok"


def test_the_hint_at_a_bad_value_leads_to_where_it_comes_from(world: World) -> None:
    answer = world.agents.having(CLEVERAGENTS_TOOL_TIMEOUT="long")("plan", "list")
    assert "`unset CLEVERAGENTS_TOOL_TIMEOUT`" in answer.error["hint"]

    file = world.agents.data_dir / "config.toml"
    file.write_text("nonsense = 1\n")
    hint = world.agents("plan", "list").error["hint"]
    assert "`agents config unset nonsense`" in hint
    world.agents("config", "unset", "nonsense").ok()
    world.agents("plan", "list").ok()
