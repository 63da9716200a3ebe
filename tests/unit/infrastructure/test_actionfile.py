"""Action files: what they mean, and how each mistake is told."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cleveragents.application.ports import ActionReader
from cleveragents.domain.action import (
    Action,
    ActorSpec,
    Parameter,
    ResourceSpec,
    ResourceType,
    RollbackPolicy,
    Step,
    ToolSpec,
)
from cleveragents.domain.actioncodec import action_from_json, action_to_json
from cleveragents.domain.errors import ActionFileError, ActionNotFoundError
from cleveragents.infrastructure.actionactors import LlmShape
from cleveragents.infrastructure.actionfile import YamlActionReader
from cleveragents.infrastructure.actionschema import (
    ActionShape,
    PolicyShape,
    ResourceShape,
    StepShape,
    ToolShape,
)
from cleveragents.infrastructure.yamlnodes import YamlProblemError, parse_yaml, plain

BUILT_IN = ("file.write", "shell")
HEAD = "name: a\ndescription: d\nresources: {code: {type: git-checkout, path: .}}\n"
STEPS = "steps: [{tool: shell}]\n"


class World:
    def __init__(self, folder: Path) -> None:
        self.file = folder / "action.yaml"
        self.base_dir = "/base"
        self.check_step: Callable[[Action, Step], Sequence[str]] = lambda action, step: ()

    def reader(self) -> ActionReader:
        return YamlActionReader(
            base_dir=self.base_dir, builtin_names=BUILT_IN, check_step=self.check_step
        )

    def read(self, text: str | bytes, overrides: Mapping[str, str] | None = None) -> Action:
        self.file.write_bytes(text.encode() if isinstance(text, str) else text)
        return self.reader().read(str(self.file), overrides or {})

    def problems(
        self, text: str | bytes, overrides: Mapping[str, str] | None = None
    ) -> tuple[str, ...]:
        with pytest.raises(ActionFileError) as caught:
            self.read(text, overrides)
        return caught.value.problems

    def problem(self, text: str | bytes, overrides: Mapping[str, str] | None = None) -> str:
        (only,) = self.problems(text, overrides)
        return only


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def with_resource(text: str) -> str:
    return f"name: a\ndescription: d\nresources:\n  code: {text}\n{STEPS}"


def with_tool(text: str) -> str:
    return f"{HEAD}tools:\n  mine: {text}\n{STEPS}"


def with_step(text: str) -> str:
    return f"{HEAD}steps:\n  - {text}\n"


# --- what a file means --------------------------------------------------------------------------

FULL = """
name: add-login
description: Add the login table
resources:
  code: {type: git-checkout, path: ., include: [.env, node_modules], exclude: [target/]}
  assets: {type: fs-directory, path: ./assets, checkpointable: false}
  db: {type: sqlite, path: /abs/app.db}
  pg: {type: postgres, url: "postgresql://me@host/db"}
rollback_policy: {enabled: false, require_checkpoints: false, max_checkpoints: 5}
max_retries_per_step: 3
tools:
  migrate:
    description: Move the schema
    command: [python, migrate.py, "{target}", "--from={base}", "{target}", "{}", "{print $1}"]
    resource: code
    writes: true
    checkpointable: false
    write_scope: [db, gen/]
    side_effects: [sends a mail]
    idempotent: true
    compensate: look
    timeout: 3
  look:
    command: [cat, x]
    resource: db
    read_only: true
steps:
  - name: write the page
    tool: file.write
    with: {resource: code, path: src/login.py, content: "..."}
  - tool: migrate
"""


def test_a_full_file_is_read_with_every_key(world: World) -> None:
    assert world.read(FULL) == Action(
        name="add-login",
        description="Add the login table",
        resources=(
            ResourceSpec(
                name="code",
                type=ResourceType.GIT_CHECKOUT,
                location="/base",
                include=(".env", "node_modules"),
                exclude=("target/",),
            ),
            ResourceSpec(
                name="assets",
                type=ResourceType.FS_DIRECTORY,
                location="/base/assets",
                checkpointable=False,
            ),
            ResourceSpec(name="db", type=ResourceType.SQLITE, location="/abs/app.db"),
            ResourceSpec(name="pg", type=ResourceType.POSTGRES, location="postgresql://me@host/db"),
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

    assert action_from_json(action_to_json(action)) == action


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


def test_an_override_replaces_a_url(world: World) -> None:
    text = with_resource("{type: postgres, url: postgresql://a/b}")

    (resource,) = world.read(text, {"code": "postgresql://c/d"}).resources

    assert resource.location == "postgresql://c/d"


def test_an_override_of_an_unknown_resource_is_refused_with_a_suggestion(world: World) -> None:
    problem = world.problem(HEAD + STEPS, {"cod": "x"})

    assert problem == "--resource cod: unknown resource; did you mean `code`?"


def test_an_override_without_a_path_is_refused(world: World) -> None:
    assert "--resource code" in world.problem(HEAD + STEPS, {"code": ""})


# --- how mistakes are told ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "{type: git-checkout, pth: ., path: .}",
            "line 4: resources.code.pth: unknown key; did you mean `path`?",
        ),
        (
            "{type: git, path: .}",
            "line 4: resources.code.type: `git` is not one of git-checkout, fs-directory, sqlite, "
            "postgres",
        ),
        (
            "{type: sqllite, path: .}",
            "line 4: resources.code.type: `sqllite` is not one of git-checkout, fs-directory, "
            "sqlite, postgres; did you mean `sqlite`?",
        ),
        ("{type: sqlite}", "line 4: resources.code.path: this key is required for sqlite"),
        ("{path: x}", "line 4: resources.code.type: this key is required"),
        ("{type: postgres}", "line 4: resources.code.url: this key is required for postgres"),
        (
            "{type: postgres, url: 'mysql://me:secret@h'}",
            "line 4: resources.code.url: must begin with postgresql://",
        ),
        (
            "{type: sqlite, path: x, url: y}",
            "line 4: resources.code.url: is not for sqlite; use `path`",
        ),
        ("{type: sqlite, path: ''}", "line 4: resources.code.path: must not be empty"),
        (
            '{type: sqlite, path: "a\\0b"}',
            "line 4: resources.code.path: must not contain a null character",
        ),
        (
            "{type: sqlite, path: 5}",
            "line 4: resources.code.path: must be text, not a number; put it in quotes",
        ),
        (
            "{type: sqlite, path: x, include: [y]}",
            "line 4: resources.code.include: is only for folders, not for sqlite",
        ),
        (
            "{type: fs-directory, path: x, exclude: [../y]}",
            "line 4: resources.code.exclude[0]: must be relative to the resource and stay inside "
            "it",
        ),
        (
            "{type: fs-directory, path: x, include: [ok, /etc]}",
            "line 4: resources.code.include[1]: must be relative to the resource and stay inside "
            "it",
        ),
        (
            "{type: fs-directory, path: x, include: y}",
            "line 4: resources.code.include: must be a list, not text",
        ),
        (
            "{type: sqlite, path: x, checkpointable: yes}",
            "line 4: resources.code.checkpointable: must be true or false, not text",
        ),
        ("x", "line 4: resources.code: must be a mapping of keys to values, not text"),
        ("", "line 4: resources.code: has no value; it must be a mapping of keys to values"),
    ],
)
def test_a_mistake_in_a_resource_is_told(world: World, text: str, expected: str) -> None:
    assert world.problem(with_resource(text)) == expected


@pytest.mark.parametrize("name", ["1st", "a b", "_x", "a.b", "ä", "a" * 65, "a/b"])
def test_a_resource_name_must_be_simple(world: World, name: str) -> None:
    text = f"name: a\ndescription: d\nresources:\n  {name}: {{type: sqlite, path: x}}\n{STEPS}"

    assert "a resource's name is a letter" in world.problem(text)


def test_two_resources_may_not_share_a_variable(world: World) -> None:
    text = (
        "name: a\ndescription: d\nresources:\n  my-db: {type: sqlite, path: x}\n"
        f"  MY_db: {{type: sqlite, path: y}}\n{STEPS}"
    )

    assert world.problem(text) == (
        "line 5: resources.MY_db: would share CLEVERAGENTS_SANDBOX_MY_DB with `my-db`"
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "{command: python x.py}",
            "line 5: tools.mine.command: must be a list of arguments, never a shell string: "
            "[python, migrate.py]",
        ),
        ("{command: []}", "line 5: tools.mine.command: must not be empty"),
        (
            "{}",
            "line 5: tools.mine: a tool has either `command`, or `python`, or `server` with `tool`",
        ),
        (
            "{command: [sleep, 5]}",
            "line 5: tools.mine.command[1]: must be text, not a number; put it in quotes",
        ),
        (
            "{command: [a], resource: cod}",
            "line 5: tools.mine.resource: unknown resource `cod`; did you mean `code`?",
        ),
        (
            "{command: [a], writes: true, read_only: true}",
            "line 5: tools.mine.read_only: `writes` and `read_only` contradict each other",
        ),
        (
            "{command: [a], writes: false, read_only: false}",
            "line 5: tools.mine.read_only: `writes` and `read_only` contradict each other",
        ),
        (
            "{command: [a], read_only: true, write_scope: [x]}",
            "line 5: tools.mine.write_scope: a tool that does not write has no write_scope",
        ),
        (
            "{command: [a], compensate: mine}",
            "line 5: tools.mine.compensate: a tool cannot undo itself; name another",
        ),
        (
            "{command: [a], compensate: shel}",
            "line 5: tools.mine.compensate: unknown tool `shel`",
        ),
        (
            "{command: [a], compensate: shell}",
            "line 5: tools.mine.compensate: a built-in tool undoes nothing outside; "
            "name one of the action's own",
        ),
        ("{command: [a], timeout: 0}", "line 5: tools.mine.timeout: must be more than 0"),
        (
            "{command: [a], timeout: 1000000}",
            "line 5: tools.mine.timeout: must be at most 604800",
        ),
        (
            "{command: [a], timeout: true}",
            "line 5: tools.mine.timeout: must be a number, not true or false",
        ),
        (
            "{command: [a], side_effects: mail}",
            "line 5: tools.mine.side_effects: must be a list, not text",
        ),
        (
            "{command: [a], write: true}",
            "line 5: tools.mine.write: unknown key; did you mean `writes`?",
        ),
    ],
)
def test_a_mistake_in_a_tool_is_told(world: World, text: str, expected: str) -> None:
    assert world.problem(with_tool(text)) == expected


COMPENSATED = """tools:
  post: {command: [post, "{to}"], compensate: recall}
  recall: {command: [recall, %s]}
"""


@pytest.mark.parametrize("names", ['"{to}"', '"{output}", "{exit_code}"', "all"])
def test_a_compensating_tool_gets_the_arguments_and_the_result(world: World, names: str) -> None:
    assert len(world.read(HEAD + COMPENSATED % names + STEPS).tools) == 2


def test_a_compensating_tool_cannot_ask_for_anything_else(world: World) -> None:
    assert world.problem(HEAD + COMPENSATED % '"{ticket}"' + STEPS) == (
        "line 5: tools.post.compensate: `recall` needs `ticket`, which post does not have; "
        "there are to, output, exit_code"
    )


@pytest.mark.parametrize("value", ["-1", "101", "yes", "1.5", "true"])
def test_the_number_of_new_tries_is_a_small_whole_number(world: World, value: str) -> None:
    assert "max_retries_per_step: must be" in world.problem(
        f"{HEAD}max_retries_per_step: {value}\n{STEPS}"
    )


def test_a_tool_must_say_where_it_runs_if_there_are_several_resources(world: World) -> None:
    text = (
        "name: a\ndescription: d\nresources: {a: {type: sqlite, path: x}, "
        "b: {type: sqlite, path: y}}\ntools: {mine: {command: [x]}}\n" + STEPS
    )

    assert world.problem(text) == (
        "line 4: tools.mine.resource: say in which resource the command runs"
    )


def test_a_tool_may_not_take_the_name_of_a_built_in(world: World) -> None:
    problem = world.problem(f"{HEAD}tools: {{shell: {{command: [a]}}}}\n{STEPS}")

    assert problem == "line 4: tools.shell: is the name of a built-in tool; choose another"


def test_a_tool_name_must_be_simple(world: World) -> None:
    problem = world.problem(f"{HEAD}tools: {{a b: {{command: [a]}}}}\n{STEPS}")

    assert problem.startswith('line 4: tools."a b": a tool\'s name is a letter')


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{name: x}", "line 5: steps[0].tool: this key is required"),
        ("{tol: shell, tool: x}", "line 5: steps[0].tol: unknown key; did you mean `tool`?"),
        (
            "{tool: shell, with: [a]}",
            "line 5: steps[0].with: must be a mapping of keys to values, not a list",
        ),
        ("{tool: shell, name: ' '}", "line 5: steps[0].name: must not be empty"),
        (
            '{tool: shell, name: "a\\nb"}',
            "line 5: steps[0].name: must be one line without control characters",
        ),
        ("{tool: shell, arguments: {}}", "line 5: steps[0].arguments: unknown key"),
        ("shell", "line 5: steps[0]: must be a mapping of keys to values, not text"),
        (
            "{name: both, subplans: {parallel: true}}",
            "line 5: steps[0].subplans.plans: this key is required",
        ),
        (
            "{tool: shell, with: {v: .inf}}",
            "line 5: steps[0].with.v: must be a finite number; put it in quotes if it is text",
        ),
        (
            f"{{tool: shell, with: {{v: {'9' * 30}}}}}",
            "line 5: steps[0].with.v: this number is too large; put it in quotes if it is text",
        ),
        (
            f"{{tool: shell, with: {{v: {'9' * 5000}}}}}",
            "line 5: steps[0].with.v: this number is too large; put it in quotes if it is text",
        ),
        (
            "{tool: shell, with: {v: 1e999}}",
            "line 5: steps[0].with.v: this number is too large; put it in quotes if it is text",
        ),
        (
            "{tool: shell, with: {1: a}}",
            "line 5: steps[0].with: a key must be text; put 1 in quotes",
        ),
        (
            "{tool: shell, with: {[a]: a}}",
            "line 5: steps[0].with: a key must be text; put this key in quotes",
        ),
        (
            "{tool: shell, with: {<<: {a: b}}}",
            'line 5: steps[0].with."<<": merge keys are not supported; write the keys out',
        ),
        (
            "{tool: shell, with: {v: !!python/object:os.system x}}",
            "line 5: steps[0].with.v: the tag '!!python/object:os.system' is not allowed",
        ),
        (
            "{tool: shell, with: {v: !mine [x]}}",
            "line 5: steps[0].with.v: the tag '!mine' is not allowed",
        ),
    ],
)
def test_a_mistake_in_a_step_is_told(world: World, text: str, expected: str) -> None:
    assert world.problem(with_step(text)) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("max_checkpoints: 0", "max_checkpoints: must be at least 1"),
        ("max_checkpoints: 1.5", "max_checkpoints: must be a whole number, not a number"),
        ("enabled: on", "enabled: must be true or false, not text"),
        ("enable: true", "enable: unknown key; did you mean `enabled`?"),
    ],
)
def test_a_mistake_in_the_policy_is_told(world: World, text: str, expected: str) -> None:
    problem = world.problem(f"{HEAD}rollback_policy: {{{text}}}\n{STEPS}")

    assert problem == f"line 4: rollback_policy.{expected}"


@pytest.mark.parametrize("name", ["a/b", "a\\b", "..", "' a'", '"a\\tb"', "''", "5", "a" * 101])
def test_an_action_name_must_be_short_and_plain(world: World, name: str) -> None:
    problem = world.problem(HEAD.replace("name: a", f"name: {name}") + STEPS)

    assert problem.startswith("line 1: name: must ")


@pytest.mark.parametrize("key", ["name", "description", "resources", "steps"])
def test_a_required_key_that_is_missing_is_told(world: World, key: str) -> None:
    lines = (HEAD + STEPS).splitlines()

    problem = world.problem("\n".join(line for line in lines if not line.startswith(key)))

    assert problem.startswith(f"line 1: {key}: this key is required")


@pytest.mark.parametrize(
    ("key", "value"),
    [("resources", "{}"), ("steps", "[]"), ("description", "' '")],
)
def test_a_required_key_may_not_be_empty(world: World, key: str, value: str) -> None:
    lines = [line for line in (HEAD + STEPS).splitlines() if not line.startswith(key)]

    problem = world.problem("\n".join([*lines, f"{key}: {value}"]))

    assert problem == f"line 4: {key}: must not be empty"


LLM = "actor: {type: llm, model: 'openai:gpt-5'"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("actor: x\n", "actor.type: `x` is not one of scripted, llm"),
        (
            "actor: lln\n",
            "actor.type: `lln` is not one of scripted, llm, command; did you mean `llm`?",
        ),
        ("actor: [llm]\n", "actor: must be a mapping of keys to values, not a list"),
        ("actor: {type: llm}\n", "actor.model: this key is required"),
        (LLM + ", max_steps: 0}\n", "actor.max_steps: must be at least 1"),
        (LLM + ", max_token: 3}\n", "actor.max_token: unknown key; did you mean `max_tokens`?"),
        (LLM + "}\nsteps: [{tool: shell}]\n", "steps: the actor `llm` decides its own steps"),
        ("actor: scripted\n", "steps: this key is required, or an `actor` that decides"),
        ("steps:\n", "steps: it must be a list, or an `actor` that decides the steps"),
        ("actor: {type: scripted, tools: [x]}\nsteps: [{tool: shell}]\n", "actor.tools: is not"),
    ],
)
def test_a_mistake_about_the_actor_is_told(world: World, text: str, expected: str) -> None:
    assert world.problem(HEAD + text).partition(": ")[2].startswith(expected)


def test_an_actor_that_decides_needs_no_steps(world: World) -> None:
    text = LLM + ", tools: [file.*], max_steps: 9, max_tokens: 8, max_cost: 0.5, strategize: true}"

    action = world.read(HEAD + text + "\ninvariants: [never touch the tests]\n")

    assert action.decides
    assert action.steps == ()
    assert action.invariants == ("never touch the tests",)
    assert action.actor == ActorSpec(
        type="llm",
        tools=("file.*",),
        max_steps=9,
        max_tokens=8,
        max_cost=0.5,
        options={"model": "openai:gpt-5", "strategize": True},
    )


def test_a_scripted_actor_may_be_named(world: World) -> None:
    assert not world.read(HEAD + STEPS + "actor: scripted\n").decides


def test_a_duplicate_key_is_told_with_both_lines(world: World) -> None:
    assert world.problem(HEAD + STEPS + "name: b\n") == (
        "line 5: name: duplicate key; it is already on line 1"
    )


def test_a_duplicate_key_deep_in_the_file_is_told(world: World) -> None:
    text = with_step("tool: shell\n    with:\n      a: 1\n      b: 2\n      a: 3")

    assert world.problem(text) == (
        "line 9: steps[0].with.a: duplicate key; it is already on line 7"
    )


def test_all_problems_are_told_at_once_in_the_order_of_the_file(world: World) -> None:
    problems = world.problems(
        "name: a/b\n"
        "resources:\n"
        "  code:\n"
        "    type: git-checkout\n"
        "    pth: .\n"
        "tools:\n"
        "  shell: {command: [a]}\n"
        "steps:\n"
        "  - tol: shell\n"
        "  - {subplans: {}}\n"
        "  - {tool: x, tool: y}\n"
        "extra: 1\n"
    )

    assert [problem.split(": ")[0] for problem in problems] == [
        "line 1",
        "line 1",
        "line 5",
        "line 7",
        "line 9",
        "line 9",
        "line 10",
        "line 11",
        "line 12",
    ]


def test_a_file_with_thousands_of_problems_tells_the_first_ones(world: World) -> None:
    problems = world.problems(HEAD + STEPS + "".join(f"x{n}: 1\n" for n in range(2000)))

    assert problems[0] == "line 5: x0: unknown key"
    assert len(problems) == 51
    assert problems[-1] == "... and more"


def test_nothing_that_a_terminal_obeys_comes_back_from_a_file(world: World) -> None:
    problems = world.problems(
        HEAD + STEPS + '"\\e[2J": 1\n' + 'tools: {mine: {command: [a], resource: "\\e[2J"}}\n'
    )

    assert all(problem.isprintable() for problem in problems)


def test_a_problem_with_a_url_does_not_tell_the_password(world: World) -> None:
    problem = world.problem(with_resource("{type: postgres, url: 'http://me:secret@h'}"))

    assert "secret" not in problem


# --- what others say about steps ----------------------------------------------------------------


def test_what_others_say_about_a_step_gets_its_line(world: World) -> None:
    world.check_step = lambda action, step: [f"unknown tool `{step.tool}`", "and more"]

    problems = world.problems(HEAD + "steps:\n  - tool: x\n    with: {}\n  - tool: y\n")

    assert problems == (
        "line 5: steps[0]: and more",
        "line 5: steps[0]: unknown tool `x`",
        "line 7: steps[1]: and more",
        "line 7: steps[1]: unknown tool `y`",
    )


def test_good_steps_are_checked_though_another_one_is_broken(world: World) -> None:
    world.check_step = lambda action, step: [f"seen {step.name}"]

    problems = world.problems(HEAD + "steps:\n  - {tol: x}\n  - {tool: y}\n")

    assert "line 6: steps[1]: seen y" in problems


def test_steps_are_not_checked_against_broken_tools(world: World) -> None:
    world.check_step = lambda action, step: ["unknown tool"]

    assert "unknown tool" not in "".join(world.problems(with_tool("{command: []}")))


def test_the_step_check_sees_the_whole_action(world: World) -> None:
    seen: list[Action] = []
    world.check_step = lambda action, step: seen.append(action) or ()

    assert world.read(FULL) == seen[0] == seen[1]


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
    fast, slow = parse_yaml(FULL), parse_yaml(FULL, yaml.SafeLoader)

    assert plain(fast.root) == plain(slow.root)
    assert fast.root == slow.root


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


# --- the reference ------------------------------------------------------------------------------


def test_every_key_is_in_the_reference() -> None:
    page = Path(__file__).parents[3] / "docs" / "reference" / "action-file.md"
    text = page.read_text()

    for shape in (ActionShape, ResourceShape, PolicyShape, ToolShape, StepShape, LlmShape):
        for name, field in shape.model_fields.items():
            assert f"`{field.alias or name}`" in text


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
