"""Files that are no action files: missing, broken, huge or hostile, each is read or refused."""

import pytest
import yaml
from action_world import FULL, HEAD, STEPS, World, world
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cleveragents.domain.errors import ActionFileError, ActionNotFoundError
from cleveragents.infrastructure.actionfile.yaml_nodes import YamlProblemError, parse_yaml

__all__ = ["world"]


# --- files that are none ------------------------------------------------------------------------


def test_a_missing_file_is_told(world: World) -> None:
    with pytest.raises(ActionNotFoundError, match="no such file"):
        world.reader().read(str(world.file), {})


def test_a_folder_is_told(world: World) -> None:
    with pytest.raises(ActionNotFoundError, match="folder"):
        world.reader().read(str(world.file.parent), {})


@pytest.mark.parametrize("name", ["a\0b", "x" * 5000, "action.yaml/x"])
def test_a_name_that_no_file_can_have_is_told(world: World, name: str) -> None:
    world.file.write_text("")

    with pytest.raises(ActionNotFoundError):
        world.reader().read(str(world.file.parent / name), {})


def test_a_relative_name_is_looked_up_where_the_command_runs(world: World) -> None:
    world.base_dir = str(world.file.parent)
    world.file.write_text(HEAD + STEPS)

    assert world.reader().read("action.yaml", {}).resources[0].location == world.base_dir


def test_a_huge_file_is_refused_without_being_read_to_its_end(world: World) -> None:
    assert world.problem(b"#" * (1024 * 1024 + 1)) == "the file is larger than 1 MiB"
    with pytest.raises(ActionFileError, match="larger"):
        world.reader().read("/dev/zero", {})


def test_a_file_that_is_not_utf8_is_refused_with_its_line(world: World) -> None:
    assert world.problem(b"name: a\n\xff\n") == "line 2: this is not UTF-8 text"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "line 1: the file is empty"),
        ("# only a comment\n", "line 1: the file is empty"),
        ("- a\n", "line 1: the top level: must be a mapping of keys to values, not a list"),
        ("a\n", "line 1: the top level: must be a mapping of keys to values, not text"),
        ("~\n", "line 1: the top level: has no value; it must be a mapping of keys to values"),
        (
            "a: 1\n---\nb: 2\n",
            "line 2: a second document starts here; a file holds one action",
        ),
        ("a: 1\n\tb: 2\n", "line 2, column 1: a tab cannot indent; use spaces"),
        ("a: x\x01\n", "line 1: the character U+0001 is not allowed"),
        ("a: *b\n", "line 1: `*b`: there is no `&b` before it"),
        ("a: &b [*b]\n", "line 1: `*b` contains itself"),
    ],
)
def test_text_that_is_no_action_is_refused_with_its_line(
    world: World, text: str, expected: str
) -> None:
    assert world.problem(text) == expected


@pytest.mark.parametrize("text", ["a: 'x\n", "a: [1\nb: 2\n", "a: b: c\n", "a: @x\n", "%YAML 9\n"])
def test_broken_yaml_is_refused_with_line_and_column(world: World, text: str) -> None:
    problem = world.problem(text)

    assert problem.startswith("line ")
    assert ", column " in problem
    assert "not valid YAML" in problem


def test_what_was_found_before_broken_yaml_is_told_too(world: World) -> None:
    problems = world.problems("a: 1\na: 2\nb: @x\n")

    assert len(problems) == 2


def test_a_bomb_of_lists_is_refused(world: World) -> None:
    levels = "".join(f"l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 9)}]\n" for n in range(1, 12))

    assert "too large once its aliases are written out" in world.problem("l0: &l0 [x]\n" + levels)


def test_a_bomb_of_text_is_refused(world: World) -> None:
    text = f"a: &a {'x' * 100_000}\nb: [{', '.join(['*a'] * 1000)}]\n"

    assert "too large once its aliases are written out" in world.problem(text)


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        "- " * 100_000,
        "{a: " * 10_000,
        "? " * 10_000,
        "l0: &l0 x\n" + "".join(f"l{n}: &l{n} [*l{n - 1}]\n" for n in range(1, 2000)),
    ],
)
def test_a_deep_file_is_refused(world: World, text: str) -> None:
    assert "nested more than 64 levels deep" in world.problem(text)


def test_a_file_with_too_many_values_is_refused(world: World) -> None:
    assert "more than 100000 values" in world.problem("[" + "a," * 200_000 + "]")


def test_the_slow_parser_gives_the_same_values_and_lines() -> None:
    assert parse_yaml(FULL) == parse_yaml(FULL, yaml.SafeLoader)


@pytest.mark.parametrize("text", ['a: "\\ud800"', 'a: "\\U99999999"'])
def test_the_slow_parser_lets_no_broken_text_through(text: str) -> None:
    try:
        problems = parse_yaml(text, yaml.SafeLoader).problems
    except YamlProblemError as error:
        problems = error.problems

    assert problems


# --- anything at all ----------------------------------------------------------------------------


ANYTHING = settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
WORDS = st.sampled_from(
    [
        *("name", "description", "resources", "tools", "steps", "tool", "with", "type", "path"),
        *("git-checkout", "command", "code", "rollback_policy", "true", "1", "null", ".nan"),
        *(": ", ":", "- ", "\n", "\n  ", "\n    ", "{", "}", "[", "]", ", ", "&a ", "*a", "!!x "),
        *("'", '"', "|", ">", "#", "%", "---", "...", "? ", "\t", "\\", "<<", "~", "\0", "é"),
    ]
)


@ANYTHING
@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(world: World, content: bytes) -> None:
    assert_read_or_refused(world, content)


@ANYTHING
@given(st.lists(WORDS, max_size=40).map("".join))
def test_any_text_like_yaml_is_read_or_refused(world: World, text: str) -> None:
    assert_read_or_refused(world, text.encode())


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | WORDS | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=4),
    max_leaves=10,
)


@ANYTHING
@given(
    st.fixed_dictionaries(
        {},
        optional={
            "name": VALUES,
            "description": VALUES,
            "resources": st.dictionaries(WORDS, VALUES, max_size=2) | VALUES,
            "tools": st.dictionaries(WORDS, VALUES, max_size=2) | VALUES,
            "rollback_policy": VALUES,
            "steps": st.lists(VALUES, max_size=3) | VALUES,
        },
    )
)
def test_any_values_under_the_right_keys_are_read_or_refused(world: World, data: object) -> None:
    assert_read_or_refused(world, yaml.safe_dump(data, allow_unicode=True).encode())


def assert_read_or_refused(world: World, content: bytes) -> None:
    world.file.write_bytes(content)
    try:
        world.reader().read(str(world.file), {})
    except ActionFileError as error:
        assert error.problems
        assert all("\n" not in problem for problem in error.problems)
