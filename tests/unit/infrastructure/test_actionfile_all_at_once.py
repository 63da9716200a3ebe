"""Action files: no mistake hides another, and none is told that only follows from another."""

from pathlib import Path

import pytest
from tests.support.runners import database_workers, runner_with

from cleveragents.domain.errors import ActionFileError
from cleveragents.infrastructure.actionfile.model import Mistakes
from cleveragents.infrastructure.actionfile.reader import YamlActionReader
from cleveragents.infrastructure.tools.toolbox import BUILT_IN, ToolBox

HEAD = "name: a\ndescription: d\nresources:\n  code: {type: git-checkout, path: .}\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "a.yaml"


def problems(file: Path, text: str) -> list[str]:
    file.write_text(text)
    tools = ToolBox(runner_with({}, 1000), database_workers())
    names = {spec.name for spec in BUILT_IN}
    reader = YamlActionReader(base_dir="/base", builtin_names=names, check_step=tools.check)
    with pytest.raises(ActionFileError) as caught:
        reader.read(str(file), {})
    return list(caught.value.problems)


def test_a_wrong_argument_is_told_with_its_own_line(file: Path) -> None:
    steps = (
        "steps:\n"
        "  - tool: file.write\n"
        "    with:\n"
        "      content: 5\n"
        "      pth: a.txt\n"
        "      path: a.txt\n"
    )

    assert problems(file, HEAD + steps) == [
        "line 8: steps[0].with.content: `content` of `file.write` must be a string",
        "line 9: steps[0].with.pth: `file.write` does not take `pth`; did you mean `path`?",
    ]


def test_arguments_are_checked_though_a_resource_and_another_tool_are_broken(file: Path) -> None:
    text = (
        "name: a\ndescription: d\n"
        "resources:\n  code: {type: git-checkout, pth: .}\n"
        "tools:\n  make: {command: make}\n  look: {command: [ls, '{where}'], read_only: true}\n"
        "steps:\n"
        "  - {tool: file.read, with: {resource: cod}}\n"
        "  - {tool: make, with: {anything: 1}}\n"
        "  - {tool: look, with: {were: x}}\n"
    )

    assert problems(file, text) == [
        "line 4: resources.code.pth: unknown key; did you mean `path`?",
        "line 6: tools.make.command: must be a list of arguments, never a shell string: "
        "[python, migrate.py]",
        "line 9: steps[0]: `file.read` needs `path` under `with`",
        "line 11: steps[2]: `look` needs `where` under `with`",
        "line 11: steps[2].with.were: `look` does not take `were`; did you mean `where`?",
    ]


def test_all_mistakes_of_one_tool_are_told(file: Path) -> None:
    tool = "tools:\n  t: {command: [a], server: x, timeout: 0, compensate: y, writs: true}\n"

    assert problems(file, HEAD + tool + "steps: [{tool: t}]\n") == [
        "line 6: tools.t.timeout: must be more than 0",
        "line 6: tools.t.writs: unknown key; did you mean `writes`?",
        "line 6: tools.t: a tool has either `command`, or `python`, or `server` with `tool`",
        "line 6: tools.t.server: unknown server `x`",
        "line 6: tools.t.compensate: unknown tool `y`",
    ]


def test_a_step_with_a_mistake_is_still_a_step_that_others_can_use(file: Path) -> None:
    steps = (
        "steps:\n"
        "  - {name: one, tool: shell, with: {command: 'true'}, colour: red}\n"
        "  - {name: two, tool: shell, with: {command: 'true'}, uses: [one]}\n"
    )

    assert problems(file, HEAD + steps) == ["line 6: steps[0].colour: unknown key"]


def test_a_good_child_is_checked_beside_a_broken_one(file: Path) -> None:
    steps = (
        "steps:\n"
        "  - subplans:\n"
        "      plans:\n"
        "        - {name: 1x, steps: [{tool: shel}]}\n"
        "        - {name: y, resources: [cod], steps: [{tool: file.read, with: {path: 5}}]}\n"
    )
    plans = "steps[0].subplans.plans"

    assert problems(file, HEAD + steps) == [
        f"line 8: {plans}[0].name: a child's name is a letter, then up to 63 letters, digits, "
        "`_` or `-`",
        f"line 8: {plans}[0].steps[0]: unknown tool `shel`; did you mean `shell`?",
        f"line 9: {plans}[1].resources[0]: the parent has no resource `cod`; did you mean `code`?",
        f"line 9: {plans}[1].steps[0].with.path: `path` of `file.read` must be a string",
    ]


def test_no_check_of_confinement_follows_from_a_mistake_in_it(file: Path) -> None:
    text = HEAD + (
        "confinement: {netwrk: true}\n"
        "steps: [{tool: http.request, with: {url: 'https://example.com/', metod: GET}}]\n"
    )

    assert problems(file, text) == [
        "line 5: confinement.netwrk: unknown key; did you mean `network`?",
        "line 6: steps[0].with.metod: `http.request` does not take `metod`; did you mean `method`?",
    ]


def test_an_actor_of_another_shape_is_told_in_words(file: Path) -> None:
    actor = "actor: {type: command, command: 5, steps: loud, timeout: -1}\n"

    assert problems(file, HEAD + actor) == [
        "line 5: actor.command: must be text or a list, not a number",
        "line 5: actor.steps: `loud` is not one of hooks, quiet",
        "line 5: actor.timeout: must be more than 0",
    ]


def test_nothing_is_said_of_arguments_that_cannot_be_read(file: Path) -> None:
    steps = "steps: [{tool: file.read, with: [a]}]\n"

    assert problems(file, HEAD + steps) == [
        "line 5: steps[0].with: must be a mapping of keys to values, not a list"
    ]


def test_a_list_with_a_mistake_in_it_is_not_judged_further(file: Path) -> None:
    steps = "steps: [{tool: shell, with: {command: x}, uses: [7, nobody]}]\n"

    assert problems(file, HEAD + steps) == [
        "line 5: steps[0].uses[0]: must be text, not a number; put it in quotes"
    ]


def test_a_mistake_is_on_the_line_of_its_key_wherever_its_value_begins(file: Path) -> None:
    text = HEAD.replace("description: d", "description:\n  [d]")

    assert problems(file, text + "steps: [{tool: shell, with: {command: x}}]\n") == [
        "line 2: description: must be text, not a list"
    ]


def test_a_name_does_not_end_with_a_line(file: Path) -> None:
    text = HEAD.replace("  code:", '  "code\\n":') + "steps: [{tool: shell, with: {command: x}}]\n"

    assert problems(file, text) == [
        'line 4: resources."code\\n": a resource\'s name is a letter, then up to 63 letters, '
        "digits, `_` or `-`"
    ]


def test_a_key_without_a_value_is_as_if_it_were_not_there_where_it_need_not_be(file: Path) -> None:
    text = (
        "max_retries_per_step:\n"
        "tools:\n  t: {command: [a], timeout: ~, resource: null}\n"
        "steps: [{name: ~, tool: t, with: {x: 1}}]\n"
    )

    assert problems(file, HEAD + text) == [
        "line 8: steps[0].with.x: `t` does not take `x`; it takes nothing"
    ]


def test_what_was_meant_is_not_looked_for_without_end() -> None:
    mistakes = Mistakes()
    words = [mistakes.meant(f"stepz{number}", ["steps"]) for number in range(200)]

    assert words[0] == words[99] == "; did you mean `steps`?"
    assert set(words[100:]) == {""}
