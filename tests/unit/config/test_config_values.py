"""Settings: what a value means, and which values, keys and files are refused."""

import pytest
from config_world import MAXIMUM, TRIGGERS, World, world

from cleveragents import config
from cleveragents.domain import checkpoint

__all__ = ["world"]


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
