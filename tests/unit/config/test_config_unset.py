"""Settings: taking one out keeps the rest of the file, and finds what a person meant."""

import tomllib

import pytest
from config_world import MAXIMUM, World, world

from cleveragents.config import ConfigProblem, editing
from cleveragents.config.editing import Unset

__all__ = ["world"]


def unset(world: World, key: str, *, project: bool = False) -> Unset:
    return editing.unset_value(
        key,
        home=str(world.home),
        cwd=str(world.cwd),
        config_path=world.config_path,
        project=project,
    )


def test_a_value_that_is_taken_out_is_the_default_again(world: World) -> None:
    world.set("tool.timeout", "7")

    done = unset(world, "tool.timeout")

    assert done == Unset(file=str(world.global_file), removed=True)
    assert world.load().origin("tool.timeout") == "default"


def test_comments_and_other_values_stay(world: World) -> None:
    world.write_global(
        '# mine\nformat = "json"  # always\n\n[tool]\n# slow machine\ntimeout = 900\n'
        "output-limit = 2048\n"
    )

    unset(world, "tool.timeout")

    text = world.global_file.read_text()
    assert all(comment in text for comment in ("# mine", "# always", "# slow machine"))
    assert tomllib.loads(text) == {"format": "json", "tool": {"output-limit": 2048}}


@pytest.mark.parametrize(
    "text", ["tool.timeout = 5\n", "tool = {timeout = 5}\n", "[tool]\ntimeout = 5\n"]
)
def test_every_way_to_write_tables_can_be_edited(world: World, text: str) -> None:
    world.write_global(text)

    unset(world, "tool.timeout")

    assert world.load().origin("tool.timeout") == "default"


def test_of_the_project_only_the_project_s_own_is_taken_out(world: World) -> None:
    world.set(MAXIMUM, "9")
    world.write_project("[sandbox.checkpoint]\nmax-checkpoints-per-plan = 5\n")

    done = unset(world, MAXIMUM, project=True)

    assert done == Unset(file=str(world.project_file), removed=True)
    assert world.load().value(MAXIMUM) == 9


def test_what_is_not_there_is_said_and_nothing_is_written(world: World) -> None:
    done = unset(world, "tool.timeout")

    assert done == Unset(file=str(world.global_file), removed=False)
    assert not world.global_file.exists()


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("nonsense = 1\n", "nonsense"),
        ("[very.wrong]\nkey = 1\n", "very.wrong.key"),
        ("[very]\nwrong = {}\n", "very.wrong"),
        ('"tool.timeout" = 1\n', '"tool.timeout"'),
        ('[tool]\ntimeout = "long"\n', "tool.timeout"),
    ],
)
def test_what_keeps_every_command_from_working_can_be_taken_out(
    world: World, text: str, key: str
) -> None:
    world.write_global(text)
    assert world.refused().key == key

    unset(world, key)

    world.load()


def test_a_table_of_several_keys_is_no_key(world: World) -> None:
    world.set("tool.timeout", "7")

    with pytest.raises(ConfigProblem) as caught:
        unset(world, "tool")

    assert caught.value.kind == "unknown-key"
    assert world.load().value("tool.timeout") == 7


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("tool.timeuot", "tool.timeout"),
        ("Tool.Timeout", "tool.timeout"),
        ("data_dir", "data-dir"),
        ("max-checkpoints-per-plan", MAXIMUM),
        ("max_checkpoints", MAXIMUM),
        ("cleanup", "sandbox.cleanup"),
        ("nonsense", None),
        ("", None),
    ],
)
def test_what_was_meant_is_found(world: World, typed: str, meant: str | None) -> None:
    for refused in (
        lambda: unset(world, typed),
        lambda: world.set(typed, "1"),
        lambda: world.load().value(typed),
    ):
        with pytest.raises(ConfigProblem) as caught:
            refused()
        assert caught.value.suggestion == meant
