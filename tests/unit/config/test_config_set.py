"""Settings: setting one keeps the rest of the file, and a bad one writes nothing."""

import stat
import tomllib

import pytest
from config_world import MAXIMUM, TRIGGERS, World, world, write

from cleveragents.config import ConfigProblem

__all__ = ["world"]


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
