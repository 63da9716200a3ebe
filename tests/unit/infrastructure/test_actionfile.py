"""Action files: what they mean, where their resources are, and that the reference says it all."""

import json
from pathlib import Path

import pytest
from action_world import FULL, HEAD, STEPS, World, with_resource, with_step, with_tool, world
from msgspec.structs import replace

from cleveragents.domain import resource_kinds
from cleveragents.domain.action import (
    Action,
    Parameter,
    ResourceSpec,
    RollbackPolicy,
    Step,
    ToolSpec,
)
from cleveragents.domain.errors import ActionFileError
from cleveragents.domain.resource_kinds import FS_DIRECTORY, GIT_CHECKOUT, POSTGRES, SQLITE
from cleveragents.infrastructure.actionfile.actors import LlmKeys
from cleveragents.infrastructure.actionfile.sections import SECTIONS, ActionKeys
from cleveragents.infrastructure.database.rows import to_json, typed

__all__ = ["world"]


# --- what a file means --------------------------------------------------------------------------


def test_a_full_file_is_read_with_every_key(world: World) -> None:
    assert world.read(FULL) == Action(
        name="add-login",
        description="Add the login table",
        resources=(
            ResourceSpec(
                name="code",
                type=GIT_CHECKOUT.type,
                location="/base",
                include=(".env", "node_modules"),
                exclude=("target/",),
            ),
            ResourceSpec(
                name="assets",
                type=FS_DIRECTORY.type,
                location="/base/assets",
                checkpointable=False,
            ),
            ResourceSpec(name="db", type=SQLITE.type, location="/abs/app.db"),
        ),
        rollback_policy=RollbackPolicy(enabled=False, require_checkpoints=False, max_checkpoints=5),
        max_retries_per_step=3,
        tools=(
            ToolSpec(
                name="migrate",
                description="Move the schema",
                parameters=(Parameter(name="target"), Parameter(name="base")),
                writes=True,
                checkpointable=False,
                write_scope=("db", "gen/"),
                reads=("db", "{target}", "."),
                side_effects=("sends a mail",),
                idempotent=True,
                compensate="look",
                timeout=3.0,
                command=(
                    *("python", "migrate.py", "{target}", "--from={base}", "{target}"),
                    *("{}", "{print $1}"),
                ),
                resource="code",
            ),
            ToolSpec(
                name="look",
                writes=False,
                checkpointable=False,
                command=("cat", "x"),
                resource="db",
            ),
        ),
        steps=(
            Step(
                name="write the page",
                tool="file.write",
                arguments={"resource": "code", "path": "src/login.py", "content": "..."},
            ),
            Step(name="migrate", tool="migrate"),
        ),
    )


def test_what_was_read_can_be_stored(world: World) -> None:
    action = world.read(FULL)

    assert typed(json.loads(to_json(action)), Action) == action


def test_a_policy_that_is_not_there_is_the_default_one(world: World) -> None:
    assert world.read(HEAD + STEPS).rollback_policy == RollbackPolicy()


@pytest.mark.parametrize(
    ("declared", "writes", "checkpointable"),
    [
        ("", True, True),
        ("writes: true", True, True),
        ("writes: false", False, False),
        ("read_only: true", False, False),
        ("read_only: false", True, True),
        ("writes: false, read_only: true", False, False),
        ("writes: true, checkpointable: false", True, False),
        ("read_only: true, checkpointable: true", False, True),
    ],
)
def test_a_tool_that_does_not_say_otherwise_writes_and_is_checkpointed_if_it_writes(
    world: World, *, declared: str, writes: bool, checkpointable: bool
) -> None:
    (tool,) = world.read(with_tool(f"{{command: [a], {declared}}}")).tools

    assert (tool.writes, tool.read_only, tool.checkpointable) == (
        writes,
        not writes,
        checkpointable,
    )


def test_a_tool_runs_in_the_only_resource_if_it_names_none(world: World) -> None:
    (tool,) = world.read(with_tool("{command: [a]}")).tools

    assert tool.resource == "code"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2020-01-01", "2020-01-01"),
        ("yes", "yes"),
        ("off", "off"),
        ("12:30:00", "12:30:00"),
        ("1_000", "1_000"),
        ("'1'", "1"),
        ("!!str 1", "1"),
        ("true", True),
        ("null", None),
        ("~", None),
        ("", None),
        ("-7", -7),
        ("0o17", 15),
        ("0xff", 255),
        ("1.5e3", 1500.0),
        ("[1, {a: b}]", [1, {"a": "b"}]),
    ],
)
def test_values_of_a_step_follow_the_core_schema(world: World, text: str, value: object) -> None:
    (step,) = world.read(with_step(f"{{tool: shell, with: {{v: {text}}}}}")).steps

    assert step.arguments == {"v": value}


def test_anchors_and_aliases_may_be_used(world: World) -> None:
    action = world.read(
        HEAD + "steps:\n  - {tool: shell, with: &w {a: 1}}\n  - {tool: shell, with: *w}\n"
    )

    assert action.steps[0].arguments == action.steps[1].arguments == {"a": 1}


def test_a_byte_order_mark_is_not_part_of_the_file(world: World) -> None:
    assert world.read(b"\xef\xbb\xbf" + (HEAD + STEPS).encode()).name == "a"


# --- where resources are ------------------------------------------------------------------------


def test_paths_are_relative_to_where_the_command_runs(world: World) -> None:
    (resource,) = world.read(with_resource("{type: sqlite, path: ../x/./y.db}")).resources

    assert resource.location == "/x/y.db"


def test_a_tilde_is_the_home_folder(world: World) -> None:
    (resource,) = world.read(with_resource("{type: sqlite, path: ~/y.db}")).resources

    assert resource.location == str(Path.home() / "y.db")


def test_a_tilde_with_the_name_of_nobody_is_an_ordinary_name(world: World) -> None:
    (resource,) = world.read(with_resource("{type: sqlite, path: ~no-such-user/y}")).resources

    assert resource.location == "/base/~no-such-user/y"


def test_an_override_replaces_the_path(world: World) -> None:
    (resource,) = world.read(HEAD + STEPS, {"code": "other"}).resources

    assert resource.location == "/base/other"


@pytest.fixture
def servers(monkeypatch: pytest.MonkeyPatch) -> None:
    """As it will be once a type works that is on a server."""
    ready = replace(POSTGRES, planned=False)
    monkeypatch.setitem(resource_kinds._KINDS, ready.type, ready)  # pyright: ignore[reportPrivateUsage]


@pytest.mark.usefixtures("servers")
def test_an_override_replaces_a_url(world: World) -> None:
    text = with_resource("{type: postgres, url: postgresql://a/b}")

    (resource,) = world.read(text, {"code": "postgresql://c/d"}).resources

    assert resource.location == "postgresql://c/d"


@pytest.mark.usefixtures("servers")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{type: postgres}", "line 4: resources.code.url: this key is required for postgres"),
        (
            "{type: postgres, url: 'mysql://me:secret@h'}",
            "line 4: resources.code.url: must begin with postgresql://",
        ),
    ],
)
def test_a_resource_on_a_server_needs_a_url(world: World, text: str, expected: str) -> None:
    assert world.problem(with_resource(text)) == expected


def test_an_override_of_an_unknown_resource_is_refused_with_a_suggestion(world: World) -> None:
    problem = world.problem(HEAD + STEPS, {"cod": "x"})

    assert problem == "--resource cod: unknown resource; did you mean `code`?"


def test_an_override_without_a_path_is_refused(world: World) -> None:
    assert "--resource code" in world.problem(HEAD + STEPS, {"code": ""})


# --- the reference ------------------------------------------------------------------------------


def test_every_key_is_in_the_reference() -> None:
    page = Path(__file__).parents[3] / "docs" / "reference" / "action-file.md"
    text = page.read_text()

    for section in (ActionKeys, LlmKeys, *SECTIONS):
        for name in section.keys:
            assert f"`{name}`" in text, name


def test_the_example_of_the_reference_can_be_used(world: World) -> None:
    page = Path(__file__).parents[3] / "docs" / "reference" / "action-file.md"
    example = page.read_text().split("```yaml\n")[1].split("```")[0]

    assert world.read(example).steps


# --- uses ---------------------------------------------------------------------------------------


TWO_STEPS = "steps:\n- {name: one, tool: shell}\n- {name: two, tool: shell, uses: [%s]}\n"


def test_a_step_names_the_earlier_steps_that_it_uses(world: World) -> None:
    steps = world.read(HEAD + TWO_STEPS % "one").steps

    assert [step.uses for step in steps] == [(), ("one",)]


@pytest.mark.parametrize(
    ("used", "told"),
    [
        ("two", "`two` is no earlier step; a step can only use what ran before it"),
        ("onne", "there is no step `onne`; did you mean `one`?"),
        ("7", "must be text, not a number; put it in quotes"),
        ("''", "must not be empty"),
    ],
)
def test_only_an_earlier_step_can_be_used(world: World, used: str, told: str) -> None:
    with pytest.raises(ActionFileError) as raised:
        world.read(HEAD + TWO_STEPS % used)

    (problem,) = raised.value.problems
    assert told in problem
    assert "line 6" in problem and "steps[1].uses[0]" in problem


def test_a_name_that_several_steps_have_cannot_be_used(world: World) -> None:
    steps = "steps:\n- {name: one, tool: shell}\n- {name: one, tool: shell}\n"

    with pytest.raises(ActionFileError, match="several earlier steps are called `one`"):
        world.read(HEAD + steps + "- {tool: shell, uses: [one]}\n")
