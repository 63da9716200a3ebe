"""Settings: where each value comes from, and how each is described."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from config_world import World, world, write

from cleveragents import config
from cleveragents.config import ConfigProblem, describe_keys

__all__ = ["world"]


# --- where values come from ---------------------------------------------------------------------


def test_without_any_source_the_defaults_hold(world: World) -> None:
    loaded = world.load()

    assert loaded.settings == config.Settings(
        format=None,
        pager="on",
        data_dir=str(world.home / ".cleveragents"),
        database_url="",
        auto_create_on=("on_tool_write", "on_tool_write_complete", "on_subplan_spawn", "on_error"),
        max_checkpoints_per_plan=50,
        checkpoint_max_age=0,
        checkpoint_max_total_size=0,
        store_secrets="capture",
        sandbox_cleanup="on_apply",
        apply_keep=604_800,
        max_retries_per_step=0,
        tool_timeout=600.0,
        tool_output_limit=1_048_576,
        tool_process_limit=1000,
        confinement_mode="preferred",
        confinement_environment=(),
        store_max_size=20_000_000_000,
        actor_max_steps=0,
        actor_max_tokens=0,
        actor_max_cost=0.0,
        actor_max_recoveries=3,
        llm_base_url="",
        llm_api_key="",
        llm_timeout=300.0,
        llm_max_retries=4,
        run_agent="none",
    )
    assert {loaded.origin(key.name) for key in config.KEYS} == {"default"}
    assert loaded.warnings == ()


def test_every_key_can_be_set_in_the_global_file(world: World) -> None:
    file = world.write_global(
        """
        format = "json"
        pager = "off"
        data-dir = "/data"
        [database]
        url = "sqlite:////db/x.db"
        [sandbox]
        cleanup = "manual"
        [sandbox.checkpoint]
        auto-create-on = ["before_step"]
        max-checkpoints-per-plan = 7
        max-age = "2h"
        max-total-size = "1MB"
        [execute]
        max-retries-per-step = 4
        [tool]
        timeout = 1.5
        output-limit = 2048
        process-limit = 50
        [confinement]
        mode = "off"
        environment = ["A_B"]
        [store]
        max-size = "1.5GB"
        secrets = "skip"
        [apply]
        keep = "12h"
        [actor]
        max-steps = 9
        max-tokens = 1000
        max-cost = 1.5
        max-recoveries = 1
        [actor.llm]
        base-url = "http://x"
        api-key = "k"
        timeout = 60
        max-retries = 2
        [run]
        agent = "codex"
        """
    )

    loaded = world.load()

    assert loaded.settings == config.Settings(
        format="json",
        pager="off",
        data_dir="/data",
        database_url="sqlite:////db/x.db",
        auto_create_on=("before_step",),
        max_checkpoints_per_plan=7,
        checkpoint_max_age=7200,
        checkpoint_max_total_size=1000000,
        sandbox_cleanup="manual",
        apply_keep=43_200,
        max_retries_per_step=4,
        tool_timeout=1.5,
        tool_output_limit=2048,
        tool_process_limit=50,
        confinement_mode="off",
        confinement_environment=("A_B",),
        store_max_size=1_500_000_000,
        store_secrets="skip",
        actor_max_steps=9,
        actor_max_tokens=1000,
        actor_max_cost=1.5,
        actor_max_recoveries=1,
        llm_base_url="http://x",
        llm_api_key="k",
        llm_timeout=60.0,
        llm_max_retries=2,
        run_agent="codex",
    )
    assert {loaded.origin(key.name) for key in config.KEYS} == {f"global config {file}"}


def test_every_key_can_be_set_in_the_environment(world: World) -> None:
    loaded = world.load(
        {
            "CLEVERAGENTS_FORMAT": "yaml",
            "CLEVERAGENTS_PAGER": "off",
            "CLEVERAGENTS_DATA_DIR": "/data",
            "CLEVERAGENTS_DATABASE_URL": "sqlite:////db/x.db",
            "CLEVERAGENTS_CHECKPOINT_AUTO_CREATE_ON": "on_error, before_apply",
            "CLEVERAGENTS_CHECKPOINT_MAX_PER_PLAN": "3",
            "CLEVERAGENTS_CHECKPOINT_MAX_AGE": "30d",
            "CLEVERAGENTS_CHECKPOINT_MAX_TOTAL_SIZE": "2000",
            "CLEVERAGENTS_SANDBOX_CLEANUP": "on_terminal",
            "CLEVERAGENTS_APPLY_KEEP": "0",
            "CLEVERAGENTS_EXECUTE_MAX_RETRIES_PER_STEP": "5",
            "CLEVERAGENTS_TOOL_TIMEOUT": "2.5",
            "CLEVERAGENTS_TOOL_OUTPUT_LIMIT": "4096",
            "CLEVERAGENTS_TOOL_PROCESS_LIMIT": "70",
            "CLEVERAGENTS_CONFINEMENT_MODE": "required",
            "CLEVERAGENTS_CONFINEMENT_ENVIRONMENT": "JAVA_HOME, X",
            "CLEVERAGENTS_STORE_MAX_SIZE": "500MB",
            "CLEVERAGENTS_STORE_SECRETS": "skip",
            "CLEVERAGENTS_ACTOR_MAX_STEPS": "8",
            "CLEVERAGENTS_ACTOR_MAX_TOKENS": "2000",
            "CLEVERAGENTS_ACTOR_MAX_COST": "2.5",
            "CLEVERAGENTS_ACTOR_MAX_RECOVERIES": "2",
            "CLEVERAGENTS_ACTOR_LLM_BASE_URL": "http://y",
            "CLEVERAGENTS_ACTOR_LLM_API_KEY": "l",
            "CLEVERAGENTS_ACTOR_LLM_TIMEOUT": "70",
            "CLEVERAGENTS_ACTOR_LLM_MAX_RETRIES": "1",
            "CLEVERAGENTS_RUN_AGENT": "aider",
        }
    )

    assert loaded.settings == config.Settings(
        format="yaml",
        pager="off",
        data_dir="/data",
        database_url="sqlite:////db/x.db",
        auto_create_on=("on_error", "before_apply"),
        max_checkpoints_per_plan=3,
        checkpoint_max_age=2592000,
        checkpoint_max_total_size=2000,
        sandbox_cleanup="on_terminal",
        apply_keep=0,
        max_retries_per_step=5,
        tool_timeout=2.5,
        tool_output_limit=4096,
        tool_process_limit=70,
        confinement_mode="required",
        confinement_environment=("JAVA_HOME", "X"),
        store_max_size=500_000_000,
        store_secrets="skip",
        actor_max_steps=8,
        actor_max_tokens=2000,
        actor_max_cost=2.5,
        actor_max_recoveries=2,
        llm_base_url="http://y",
        llm_api_key="l",
        llm_timeout=70.0,
        llm_max_retries=1,
        run_agent="aider",
    )
    for key in config.KEYS:
        assert loaded.origin(key.name) == f"environment {key.env}"
    assert loaded.warnings == ()


def test_a_flag_wins_over_environment_project_global_and_default(world: World) -> None:
    environ = {"CLEVERAGENTS_FORMAT": "yaml"}
    seen = [(world.load().settings.format, world.load().origin("format"))]
    world.write_global('format = "table"')
    seen.append((world.load().settings.format, world.load().origin("format")))
    world.write_project('format = "plain"')
    seen.append((world.load().settings.format, world.load().origin("format")))
    loaded = world.load(environ)
    seen.append((loaded.settings.format, loaded.origin("format")))
    loaded = world.load(environ, {"format": "rich"})
    seen.append((loaded.settings.format, loaded.origin("format")))

    assert seen == [
        (None, "default"),
        ("table", f"global config {world.global_file}"),
        ("plain", f"project config {world.project_file}"),
        ("yaml", "environment CLEVERAGENTS_FORMAT"),
        ("rich", "flag --format"),
    ]


def test_a_weaker_source_is_checked_even_where_a_stronger_one_wins(world: World) -> None:
    world.write_global('format = "nope"')

    assert world.refused({"CLEVERAGENTS_FORMAT": "json"}).key == "format"


def test_the_nearest_project_file_counts_and_only_that_one(world: World) -> None:
    world.write_project('format = "plain"\n[tool]\ntimeout = 9\n')
    nearest = write(world.cwd / ".cleveragents" / "config.toml", 'format = "json"')

    loaded = world.load()

    assert loaded.origin("format") == f"project config {nearest}"
    assert loaded.origin("tool.timeout") == "default"


def test_the_global_file_is_not_taken_for_a_project_file(world: World) -> None:
    world.cwd = world.home / "code"
    world.cwd.mkdir()
    world.write_global('data-dir = "/data"')

    assert world.load().origin("data-dir") == f"global config {world.global_file}"


def test_a_config_path_replaces_the_global_file(world: World) -> None:
    world.write_global('format = "json"\n[tool]\ntimeout = 5\n')
    other = write(world.cwd / "other.toml", 'format = "yaml"')
    world.config_path = "other.toml"

    loaded = world.load()

    assert loaded.settings.format == "yaml"
    assert loaded.origin("format") == f"global config {other}"
    assert loaded.settings.tool_timeout == 600


def test_with_a_config_path_the_usual_global_file_does_not_become_a_projects(world: World) -> None:
    world.cwd = world.home
    world.write_global('data-dir = "/data"')
    world.config_path = str(write(world.home / "other.toml", ""))

    assert world.load().origin("data-dir") == "default"


def test_a_config_path_that_is_not_there_is_refused(world: World) -> None:
    world.config_path = "missing.toml"

    problem = world.refused()

    assert problem.kind == "bad-file"
    assert "missing.toml" in problem.where


def test_an_empty_variable_counts_as_not_set(world: World) -> None:
    world.write_global('format = "json"')

    assert world.load({"CLEVERAGENTS_FORMAT": ""}).settings.format == "json"


def test_an_empty_trigger_variable_switches_the_triggers_off(world: World) -> None:
    assert world.load({"CLEVERAGENTS_CHECKPOINT_AUTO_CREATE_ON": ""}).settings.auto_create_on == ()


def test_an_empty_trigger_list_switches_the_triggers_off(world: World) -> None:
    world.write_global("[sandbox.checkpoint]\nauto-create-on = []")

    assert world.load().settings.auto_create_on == ()


def test_an_unknown_variable_gives_a_warning_with_a_suggestion(world: World) -> None:
    (warning,) = world.load({"CLEVERAGENTS_FROMAT": "json"}).warnings

    assert "CLEVERAGENTS_FROMAT" in warning
    assert "did you mean CLEVERAGENTS_FORMAT?" in warning


def test_the_variables_that_commands_get_and_those_of_others_are_silent(world: World) -> None:
    environ = {"CLEVERAGENTS_SANDBOX_CODE": "/s", "CLEVERAGENTS_PLAN_ID": "x", "HOME": "/h"}

    assert world.load(environ).warnings == ()


# --- descriptions -------------------------------------------------------------------------------


def test_every_key_is_described_with_value_and_origin(world: World) -> None:
    world.set("tool.timeout", "2.5")

    described = {item.name: item for item in describe_keys(world.load())}

    assert list(described) == [key.name for key in config.KEYS]
    assert described["tool.timeout"].value == "2.5"
    assert described["tool.timeout"].origin == f"global config {world.global_file}"
    assert described["format"].value == "auto"
    assert all(item.doc and item.kind and item.env for item in described.values())


def test_every_described_value_can_be_set(world: World) -> None:
    before = world.load()

    for item in describe_keys(before):
        world.set(item.name, item.value)

    assert world.load().settings == before.settings


def test_the_defaults_can_be_described_without_loading_anything() -> None:
    described = {item.name: item for item in describe_keys()}

    assert described["data-dir"].value == "~/.cleveragents"
    assert described["tool.timeout"].value == "600"


def test_an_unknown_key_has_no_origin_but_a_suggestion(world: World) -> None:
    with pytest.raises(ConfigProblem) as caught:
        world.load().origin("tool.timeot")

    assert (caught.value.kind, caught.value.suggestion) == ("unknown-key", "tool.timeout")


def test_every_key_is_in_the_reference() -> None:
    page = Path(__file__).parents[3] / "docs" / "reference" / "configuration.md"
    text = page.read_text()

    for item in describe_keys():
        assert f"`{item.name}`" in text
        assert f"`{item.env}`" in text


def test_loading_the_module_loads_no_slow_library() -> None:
    program = (
        "import sys, cleveragents.config; "
        "print([m for m in ('pydantic', 'tomlkit', 'tomllib', 'difflib') if m in sys.modules])"
    )

    # Without the variables by which a coverage tool would load modules of its own.
    environ = {k: v for k, v in os.environ.items() if not k.startswith("COVERAGE")}
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, env=environ)

    assert done.stdout.strip() == "[]"


def test_a_key_for_models_is_never_shown(world: World) -> None:
    loaded = world.load({"CLEVERAGENTS_ACTOR_LLM_API_KEY": "sk-very-secret"})

    assert loaded.settings.llm_api_key == "sk-very-secret"
    shown = {key.name: key.value for key in config.describe_keys(loaded)}
    assert shown["actor.llm.api-key"] == "(set, not shown)"
    assert "very-secret" not in str(shown)


@pytest.mark.parametrize(
    ("key", "text", "problem"),
    [
        ("actor.max-cost", "-1", "must be a number from 0 to"),
        ("actor.max-cost", "much", "must be a number from 0 to"),
        ("actor.llm.base-url", "ftp://x", "must begin with https:// or http://"),
        ("actor.llm.max-retries", "21", "must be a whole number from 0 to 20"),
    ],
)
def test_a_bad_value_about_actors_is_told(world: World, key: str, text: str, problem: str) -> None:
    with pytest.raises(config.ConfigProblem, match=problem):
        world.load({config.find_key(key, "").env: text})


@pytest.mark.parametrize("key", ["actor.llm.base-url", "actor.llm.api-key"])
def test_a_project_may_not_say_where_models_are(world: World, key: str) -> None:
    with pytest.raises(config.ConfigProblem):
        config.find_key(key, "").refuse_in_project("here")
