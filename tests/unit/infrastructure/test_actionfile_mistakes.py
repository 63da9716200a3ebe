"""Action files: how each mistake in a resource or a tool is told."""

import pytest
from action_world import HEAD, STEPS, World, with_resource, with_tool, world

__all__ = ["world"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "{type: git-checkout, pth: ., path: .}",
            "line 4: resources.code.pth: unknown key; did you mean `path`?",
        ),
        (
            "{type: git, path: .}",
            "line 4: resources.code.type: `git` is not one of git-checkout, fs-directory, sqlite",
        ),
        (
            "{type: sqllite, path: .}",
            "line 4: resources.code.type: `sqllite` is not one of git-checkout, fs-directory, "
            "sqlite; did you mean `sqlite`?",
        ),
        ("{type: sqlite}", "line 4: resources.code.path: this key is required for sqlite"),
        ("{path: x}", "line 4: resources.code.type: this key is required"),
        (
            "{type: postgres, url: 'postgresql://me:secret@h'}",
            "line 4: resources.code.type: postgres is not implemented yet; what works:"
            " git-checkout, fs-directory, sqlite",
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
