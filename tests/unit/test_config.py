"""Settings: where each value comes from, what is refused, and how one is set."""

import dataclasses
import os
import stat
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path

import pytest

from cleveragents import config
from cleveragents.config import ConfigProblem, LoadedSettings, describe_keys
from cleveragents.domain import checkpoint

TRIGGERS = "sandbox.checkpoint.auto-create-on"
MAXIMUM = "sandbox.checkpoint.max-checkpoints-per-plan"


class World:
    def __init__(self, root: Path) -> None:
        self.home = root / "home"
        self.cwd = root / "work" / "project" / "src"
        self.home.mkdir()
        self.cwd.mkdir(parents=True)
        self.global_file = self.home / ".cleveragents" / "config.toml"
        self.project_file = self.cwd.parent / ".cleveragents" / "config.toml"
        self.config_path: str | None = None

    def load(
        self, environ: Mapping[str, str] | None = None, flags: Mapping[str, str] | None = None
    ) -> LoadedSettings:
        return config.load_settings(
            environ or {},
            home=str(self.home),
            cwd=str(self.cwd),
            flags=flags or {},
            config_path=self.config_path,
        )

    def set(self, key: str, text: str, *, project: bool = False) -> str:
        return config.set_value(
            key,
            text,
            home=str(self.home),
            cwd=str(self.cwd),
            config_path=self.config_path,
            project=project,
        )

    def write_global(self, text: str) -> Path:
        return write(self.global_file, text)

    def write_project(self, text: str) -> Path:
        return write(self.project_file, text)

    def refused(self, environ: Mapping[str, str] | None = None) -> ConfigProblem:
        with pytest.raises(ConfigProblem) as caught:
            self.load(environ)
        return caught.value


def write(file: Path, text: str) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


# --- where values come from ---------------------------------------------------------------------


def test_without_any_source_the_defaults_hold(world: World) -> None:
    loaded = world.load()

    assert loaded.settings == config.Settings(
        format=None,
        data_dir=str(world.home / ".cleveragents"),
        database_url="",
        auto_create_on=("on_tool_write", "on_tool_write_complete", "on_subplan_spawn", "on_error"),
        max_checkpoints_per_plan=50,
        checkpoint_max_age=0,
        checkpoint_max_total_size=0,
        sandbox_cleanup="on_apply",
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
    )
    assert {loaded.origin(key.name) for key in config.KEYS} == {"default"}
    assert loaded.warnings == ()


def test_every_key_can_be_set_in_the_global_file(world: World) -> None:
    file = world.write_global(
        """
        format = "json"
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
        """
    )

    loaded = world.load()

    assert loaded.settings == config.Settings(
        format="json",
        data_dir="/data",
        database_url="sqlite:////db/x.db",
        auto_create_on=("before_step",),
        max_checkpoints_per_plan=7,
        checkpoint_max_age=7200,
        checkpoint_max_total_size=1000000,
        sandbox_cleanup="manual",
        max_retries_per_step=4,
        tool_timeout=1.5,
        tool_output_limit=2048,
        tool_process_limit=50,
        confinement_mode="off",
        confinement_environment=("A_B",),
        store_max_size=1_500_000_000,
        actor_max_steps=9,
        actor_max_tokens=1000,
        actor_max_cost=1.5,
        actor_max_recoveries=1,
        llm_base_url="http://x",
        llm_api_key="k",
        llm_timeout=60.0,
        llm_max_retries=2,
    )
    assert {loaded.origin(key.name) for key in config.KEYS} == {f"global config {file}"}


def test_every_key_can_be_set_in_the_environment(world: World) -> None:
    loaded = world.load(
        {
            "CLEVERAGENTS_FORMAT": "yaml",
            "CLEVERAGENTS_DATA_DIR": "/data",
            "CLEVERAGENTS_DATABASE_URL": "sqlite:////db/x.db",
            "CLEVERAGENTS_CHECKPOINT_AUTO_CREATE_ON": "on_error, before_apply",
            "CLEVERAGENTS_CHECKPOINT_MAX_PER_PLAN": "3",
            "CLEVERAGENTS_CHECKPOINT_MAX_AGE": "30d",
            "CLEVERAGENTS_CHECKPOINT_MAX_TOTAL_SIZE": "2000",
            "CLEVERAGENTS_SANDBOX_CLEANUP": "on_terminal",
            "CLEVERAGENTS_EXECUTE_MAX_RETRIES_PER_STEP": "5",
            "CLEVERAGENTS_TOOL_TIMEOUT": "2.5",
            "CLEVERAGENTS_TOOL_OUTPUT_LIMIT": "4096",
            "CLEVERAGENTS_TOOL_PROCESS_LIMIT": "70",
            "CLEVERAGENTS_CONFINEMENT_MODE": "required",
            "CLEVERAGENTS_CONFINEMENT_ENVIRONMENT": "JAVA_HOME, X",
            "CLEVERAGENTS_STORE_MAX_SIZE": "500MB",
            "CLEVERAGENTS_ACTOR_MAX_STEPS": "8",
            "CLEVERAGENTS_ACTOR_MAX_TOKENS": "2000",
            "CLEVERAGENTS_ACTOR_MAX_COST": "2.5",
            "CLEVERAGENTS_ACTOR_MAX_RECOVERIES": "2",
            "CLEVERAGENTS_ACTOR_LLM_BASE_URL": "http://y",
            "CLEVERAGENTS_ACTOR_LLM_API_KEY": "l",
            "CLEVERAGENTS_ACTOR_LLM_TIMEOUT": "70",
            "CLEVERAGENTS_ACTOR_LLM_MAX_RETRIES": "1",
        }
    )

    assert loaded.settings == config.Settings(
        format="yaml",
        data_dir="/data",
        database_url="sqlite:////db/x.db",
        auto_create_on=("on_error", "before_apply"),
        max_checkpoints_per_plan=3,
        checkpoint_max_age=2592000,
        checkpoint_max_total_size=2000,
        sandbox_cleanup="on_terminal",
        max_retries_per_step=5,
        tool_timeout=2.5,
        tool_output_limit=4096,
        tool_process_limit=70,
        confinement_mode="required",
        confinement_environment=("JAVA_HOME", "X"),
        store_max_size=500_000_000,
        actor_max_steps=8,
        actor_max_tokens=2000,
        actor_max_cost=2.5,
        actor_max_recoveries=2,
        llm_base_url="http://y",
        llm_api_key="l",
        llm_timeout=70.0,
        llm_max_retries=1,
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


# --- values -------------------------------------------------------------------------------------


def test_paths_are_relative_to_where_they_are_said(world: World) -> None:
    world.write_global('data-dir = "data"\n[database]\nurl = "sqlite:///x.db"')

    from_file = world.load().settings
    from_flag = world.load(flags={"data-dir": "../data"}).settings

    assert from_file.data_dir == str(world.global_file.parent / "data")
    assert from_file.database_url == f"sqlite:///{world.global_file.parent}/x.db"
    assert from_flag.data_dir == str(world.cwd.parent / "data")


@pytest.mark.parametrize(("text", "tail"), [("~", ""), ("~/d", "/d")])
def test_a_tilde_is_the_home_folder(world: World, text: str, tail: str) -> None:
    assert world.load({"CLEVERAGENTS_DATA_DIR": text}).settings.data_dir == f"{world.home}{tail}"


def test_trigger_aliases_are_normalised_and_duplicates_dropped(world: World) -> None:
    text = "before_tool_execute,on_tool_write,after_tool_execute"

    settings = world.load({"CLEVERAGENTS_CHECKPOINT_AUTO_CREATE_ON": text}).settings

    assert settings.auto_create_on == ("on_tool_write", "on_tool_write_complete")


def test_trigger_names_are_those_of_the_domain() -> None:
    assert tuple(checkpoint.Trigger) == config.TRIGGERS
    assert config.TRIGGER_ALIASES == checkpoint.TRIGGER_ALIASES
    assert config.DEFAULT_TRIGGERS == checkpoint.DEFAULT_TRIGGERS


def test_an_invalid_trigger_is_refused_with_the_valid_names_and_a_suggestion(world: World) -> None:
    problem = world.refused({"CLEVERAGENTS_CHECKPOINT_AUTO_CREATE_ON": "on_eror"})

    assert (problem.kind, problem.key) == ("bad-value", TRIGGERS)
    assert problem.suggestion == "on_error"
    for name in (*config.TRIGGERS, *config.TRIGGER_ALIASES):
        assert name in problem.problem


def test_auto_is_a_format_that_takes_a_projects_choice_back(world: World) -> None:
    world.write_project('format = "json"')

    assert world.load({"CLEVERAGENTS_FORMAT": "auto"}).settings.format is None


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ('format = "jsn"', "format"),
        ("format = 3", "format"),
        ("format = {a = 1}", "format"),
        ('data-dir = ""', "data-dir"),
        ('data-dir = "a\\u0000b"', "data-dir"),
        ("data-dir = false", "data-dir"),
        ('database.url = "postgresql://me:secret@host/db"', "database.url"),
        ('database.url = "sqlite:///:memory:"', "database.url"),
        ('database.url = "sqlite:///"', "database.url"),
        ('database.url = "sqlite:///x.db?mode=ro"', "database.url"),
        (f'{TRIGGERS} = "on_error"', TRIGGERS),
        (f"{TRIGGERS} = [1]", TRIGGERS),
        (f'{TRIGGERS} = ["never"]', TRIGGERS),
        (f"{MAXIMUM} = 1", MAXIMUM),
        (f"{MAXIMUM} = 2.0", MAXIMUM),
        (f"{MAXIMUM} = true", MAXIMUM),
        (f'{MAXIMUM} = "50"', MAXIMUM),
        ("tool.timeout = 0", "tool.timeout"),
        ("tool.timeout = -1", "tool.timeout"),
        ("tool.timeout = nan", "tool.timeout"),
        ("tool.timeout = inf", "tool.timeout"),
        ("tool.timeout = true", "tool.timeout"),
        ("tool.output-limit = 1023", "tool.output-limit"),
        ("tool.output-limit = 99999999999", "tool.output-limit"),
    ],
)
def test_a_bad_value_in_a_file_is_refused(world: World, text: str, key: str) -> None:
    file = world.write_global(text)

    problem = world.refused()

    assert (problem.kind, problem.key, problem.where) == ("bad-value", key, f"global config {file}")
    assert "secret" not in str(problem)


@pytest.mark.parametrize(
    ("variable", "text"),
    [
        ("CLEVERAGENTS_FORMAT", "xml"),
        ("CLEVERAGENTS_CHECKPOINT_MAX_PER_PLAN", "many"),
        ("CLEVERAGENTS_CHECKPOINT_MAX_PER_PLAN", "1"),
        ("CLEVERAGENTS_CHECKPOINT_MAX_AGE", "-1d"),
        ("CLEVERAGENTS_CHECKPOINT_MAX_AGE", "1 year"),
        ("CLEVERAGENTS_CHECKPOINT_MAX_AGE", "1.5"),
        ("CLEVERAGENTS_CHECKPOINT_MAX_TOTAL_SIZE", "much"),
        ("CLEVERAGENTS_TOOL_TIMEOUT", "soon"),
        ("CLEVERAGENTS_TOOL_TIMEOUT", "nan"),
        ("CLEVERAGENTS_TOOL_OUTPUT_LIMIT", "1e6"),
        ("CLEVERAGENTS_TOOL_OUTPUT_LIMIT", "9" * 5000),
    ],
)
def test_a_bad_variable_is_refused(world: World, variable: str, text: str) -> None:
    problem = world.refused({variable: text})

    assert (problem.kind, problem.where) == ("bad-value", f"environment {variable}")


def test_another_database_is_refused_by_saying_what_is_supported(world: World) -> None:
    problem = world.refused({"CLEVERAGENTS_DATABASE_URL": "postgresql://host/db"})

    assert "only sqlite is supported by this version" in problem.problem


# --- files --------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ['data-dir = "/x"', 'database.url = "sqlite:////x.db"'])
def test_a_project_may_not_say_where_data_goes(world: World, text: str) -> None:
    file = world.write_project(text)

    problem = world.refused()

    assert (problem.kind, problem.where) == ("bad-value", f"project config {file}")
    assert "a project may not" in problem.problem


@pytest.mark.parametrize(
    ("text", "key", "suggestion"),
    [
        ('fromat = "json"', "fromat", "format"),
        ("[sandbox.checkpont]\nmax-checkpoints-per-plan = 5", None, MAXIMUM),
        ("[sandbox.checkpoint]\nmax_checkpoints_per_plan = 5", None, MAXIMUM),
        ('"tool.timeout" = 5', '"tool.timeout"', "tool.timeout"),
        ("[zzzzz]", "zzzzz", None),
        ("tool = 5", "tool", None),
    ],
)
def test_an_unknown_key_is_refused_with_a_suggestion(
    world: World, text: str, key: str | None, suggestion: str | None
) -> None:
    file = world.write_global(text)

    problem = world.refused()

    assert (problem.kind, problem.where) == ("unknown-key", f"global config {file}")
    assert key is None or problem.key == key
    assert problem.suggestion == suggestion


@pytest.mark.parametrize("text", ["", "# nothing\n", "[tool]\n", "[sandbox.checkpoint]\n"])
def test_an_empty_file_and_empty_tables_are_fine(world: World, text: str) -> None:
    world.write_global(text)

    assert world.load().origin("tool.timeout") == "default"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('format = "json"\nbroken\n', "line 2"),
        ('\n\nformat = """x', "line 3"),
        ("a = 1\na = 2\n", "line 2"),
    ],
)
def test_broken_toml_is_refused_with_its_line(world: World, text: str, line: str) -> None:
    file = world.write_global(text)

    problem = world.refused()

    assert (problem.kind, problem.where) == ("bad-file", f"global config {file}")
    assert line in problem.problem


def test_a_file_that_is_not_text_is_refused(world: World) -> None:
    world.write_global("").write_bytes(b"\xff\xfe")

    assert world.refused().kind == "bad-file"


@pytest.mark.parametrize("text", ["x = " + "[" * 100_000, "x = " + "9" * 5000])
def test_a_file_made_to_exhaust_the_parser_is_refused(world: World, text: str) -> None:
    world.write_project(text)

    assert world.refused().kind == "bad-file"


def test_a_folder_in_the_place_of_the_file_is_refused(world: World) -> None:
    world.project_file.mkdir(parents=True)

    assert world.refused().problem == "is not a file"


# --- setting ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "text", "value"),
    [
        ("format", "json", "json"),
        ("format", "auto", None),
        ("data-dir", "/d", "/d"),
        ("database.url", "sqlite:////d/x.db", "sqlite:////d/x.db"),
        ("database.url", "", ""),
        (TRIGGERS, "before_step,before_tool_execute", ("before_step", "on_tool_write")),
        (TRIGGERS, '["on_error"]', ("on_error",)),
        (TRIGGERS, "", ()),
        (MAXIMUM, "9", 9),
        ("tool.timeout", "30", 30.0),
        ("tool.timeout", "0.5", 0.5),
        ("tool.output-limit", "2048", 2048),
    ],
)
def test_a_value_that_was_set_is_read_again(
    world: World, key: str, text: str, value: object
) -> None:
    written = world.set(key, text)

    loaded = world.load()

    assert written == str(world.global_file)
    assert loaded.value(key) == value
    assert loaded.origin(key) == f"global config {written}"


def test_the_global_file_and_its_folder_are_private(world: World) -> None:
    world.set("format", "json")

    assert stat.S_IMODE(world.global_file.stat().st_mode) == 0o600
    assert stat.S_IMODE(world.global_file.parent.stat().st_mode) == 0o700
    assert list(world.global_file.parent.iterdir()) == [world.global_file]


def test_setting_keeps_comments_and_other_values(world: World) -> None:
    world.write_global(
        '# mine\nformat = "json"  # always\n\n[tool]\n# slow machine\ntimeout = 900\n'
    )

    world.set("format", "yaml")
    world.set("data-dir", "/d")
    world.set("tool.output-limit", "2048")
    world.set(MAXIMUM, "5")

    text = world.global_file.read_text()
    assert all(comment in text for comment in ("# mine", "# always", "# slow machine"))
    assert tomllib.loads(text) == {
        "format": "yaml",
        "data-dir": "/d",
        "tool": {"timeout": 900, "output-limit": 2048},
        "sandbox": {"checkpoint": {"max-checkpoints-per-plan": 5}},
    }


@pytest.mark.parametrize(
    "text",
    [
        "tool.timeout = 5\n",
        "tool = {timeout = 5}\n",
        "[tool]\ntimeout = 5\n[database]\nurl = ''\n[sandbox.checkpoint]\n",
        "[sandbox.checkpoint]\nmax-checkpoints-per-plan = 5\n[tool]\n[sandbox]\n",
    ],
)
def test_every_way_to_write_tables_can_be_edited(world: World, text: str) -> None:
    world.write_global(text)

    world.set("tool.timeout", "7")
    world.set(MAXIMUM, "8")
    world.set("format", "json")

    settings = world.load().settings
    assert (settings.tool_timeout, settings.max_checkpoints_per_plan) == (7, 8)
    assert settings.format == "json"


def test_a_project_value_goes_to_the_nearest_project_file(world: World) -> None:
    world.write_project("")

    assert world.set("format", "json", project=True) == str(world.project_file)
    assert world.load().origin("format") == f"project config {world.project_file}"


def test_without_a_project_file_one_is_made_where_the_command_runs(world: World) -> None:
    written = world.set("format", "json", project=True)

    assert written == str(world.cwd / ".cleveragents" / "config.toml")


def test_the_home_folder_is_no_project(world: World) -> None:
    world.cwd = world.home

    with pytest.raises(ConfigProblem, match="global config"):
        world.set("format", "json", project=True)
    assert not world.global_file.exists()


def test_a_config_path_is_where_a_value_is_set(world: World) -> None:
    other = write(world.cwd / "other.toml", "# keep\n")
    world.config_path = str(other)

    assert world.set("format", "json") == str(other)
    assert other.read_text().startswith("# keep")


def test_a_path_is_stored_as_seen_from_where_it_was_set(world: World) -> None:
    world.set("data-dir", "data")

    assert world.load().settings.data_dir == str(world.cwd / "data")


def test_a_symlink_to_the_config_file_stays_one(world: World) -> None:
    real = write(world.home / "dotfiles" / "agents.toml", "")
    world.global_file.parent.mkdir()
    world.global_file.symlink_to(real)

    world.set("format", "json")

    assert world.global_file.is_symlink()
    assert tomllib.loads(real.read_text()) == {"format": "json"}


@pytest.mark.parametrize(
    ("key", "text", "kind"),
    [
        ("fromat", "json", "unknown-key"),
        ("format", "xml", "bad-value"),
        (MAXIMUM, "1", "bad-value"),
        (TRIGGERS, "never", "bad-value"),
        ("database.url", "mysql://x", "bad-value"),
    ],
)
def test_a_bad_value_writes_nothing(world: World, key: str, text: str, kind: str) -> None:
    with pytest.raises(ConfigProblem) as caught:
        world.set(key, text)

    assert caught.value.kind == kind
    assert not world.global_file.parent.exists()


@pytest.mark.parametrize("key", ["data-dir", "database.url"])
def test_where_data_goes_cannot_be_set_for_a_project(world: World, key: str) -> None:
    with pytest.raises(ConfigProblem, match="a project may not"):
        world.set(key, "", project=True)


@pytest.mark.parametrize("text", ["broken", "tool = 5\n"])
def test_a_file_that_cannot_be_edited_stays_as_it_is(world: World, text: str) -> None:
    file = world.write_global(text)

    with pytest.raises(ConfigProblem) as caught:
        world.set("tool.timeout", "5")

    assert caught.value.kind == "bad-file"
    assert file.read_text() == text


def test_a_place_that_cannot_be_written_is_a_problem_with_a_reason(world: World) -> None:
    (world.home / ".cleveragents").write_text("in the way")

    with pytest.raises(ConfigProblem) as caught:
        world.set("format", "json")

    assert caught.value.kind == "bad-file"


def test_a_symlink_that_leads_nowhere_is_a_problem_with_a_reason(world: World) -> None:
    world.global_file.parent.mkdir()
    world.global_file.symlink_to(world.home / "gone" / "config.toml")

    with pytest.raises(ConfigProblem, match="cannot write it"):
        world.set("format", "json")


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


def test_every_setting_has_exactly_one_key() -> None:
    fields = [field.name for field in dataclasses.fields(config.Settings)]

    assert fields == [key.field for key in config.KEYS]


def test_every_key_is_in_the_reference() -> None:
    page = Path(__file__).parents[2] / "docs" / "reference" / "configuration.md"
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
