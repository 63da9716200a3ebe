"""The `subplans` of a step in an action file: what they mean, and how each mistake is told."""

from pathlib import Path

import pytest
from tests.support.runners import database_workers, runner_with

from cleveragents.domain.action import MergeStrategy, Step, Subplans
from cleveragents.domain.errors import ActionFileError
from cleveragents.infrastructure.actionfile.reader import YamlActionReader
from cleveragents.infrastructure.tools.toolbox import BUILT_IN, ToolBox

HEAD = """\
name: a
description: d
resources:
  code: {type: git-checkout, path: .}
  db: {type: sqlite, path: ./a.db}
tools:
  build: {command: [make], resource: code, write_scope: [db]}
steps:
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "a.yaml"


def read(file: Path, steps: str) -> tuple[Step, ...]:
    file.write_text(HEAD + steps)
    tools = ToolBox(runner_with({}, 1000), database_workers())
    names = {spec.name for spec in BUILT_IN}
    reader = YamlActionReader(base_dir="/base", builtin_names=names, check_step=tools.check)
    return reader.read(str(file), {}).steps


def problems(file: Path, steps: str) -> list[str]:
    with pytest.raises(ActionFileError) as caught:
        read(file, steps)
    return list(caught.value.problems)


def spawned(file: Path, steps: str) -> Subplans:
    found = read(file, steps)[0].subplans
    assert found is not None
    return found


LOOK = "{tool: file.list, with: {resource: code}}"


def test_what_is_not_said_has_its_default(file: Path) -> None:
    found = spawned(file, f"  - subplans: {{plans: [{{name: en, steps: [{LOOK}]}}]}}\n")
    assert (found.parallel, found.max_parallel, found.fail_fast) == (False, 5, False)
    assert (found.max_retries, found.merge_strategy) == (2, MergeStrategy.GIT_THREE_WAY)
    child = found.plans[0]
    assert (child.resources, child.depends_on) == (("code", "db"), ())
    assert child.description == "The part en"


def test_everything_can_be_said(file: Path) -> None:
    found = spawned(
        file,
        "  - name: both\n"
        "    subplans:\n"
        "      parallel: true\n"
        "      merge_strategy: last_wins\n"
        "      max_parallel: 50\n"
        "      fail_fast: true\n"
        "      max_retries: 0\n"
        "      plans:\n"
        f"        - {{name: en, description: English, resources: [code], steps: [{LOOK}]}}\n"
        f"        - {{name: de, depends_on: [en], steps: [{{subplans: {{plans: ["
        f"{{name: inner, steps: [{LOOK}]}}]}}}}]}}\n",
    )
    assert (found.parallel, found.max_parallel, found.fail_fast) == (True, 50, True)
    assert (found.max_retries, found.merge_strategy) == (0, MergeStrategy.LAST_WINS)
    english, german = found.plans
    assert (english.description, english.resources) == ("English", ("code",))
    assert german.depends_on == ("en",)
    inner = german.steps[0].subplans
    assert inner is not None
    assert inner.plans[0].name == "inner"


def one(name: str = "x", **keys: str) -> str:
    more = "".join(f", {key}: {value}" for key, value in keys.items())
    return f"{{name: {name}, steps: [{LOOK}]{more}}}"


MISTAKES = {
    f"{{max_parallel: 0, plans: [{one()}]}}": "subplans.max_parallel: must be at least 1",
    f"{{max_parallel: 51, plans: [{one()}]}}": "subplans.max_parallel: must be at most 50",
    f"{{max_retries: -1, plans: [{one()}]}}": "subplans.max_retries: must be at least 0",
    f"{{merge_strategy: last_win, plans: [{one()}]}}": "did you mean `last_wins`?",
    f"{{paralel: true, plans: [{one()}]}}": "paralel: unknown key; did you mean `parallel`?",
    "{plans: []}": "subplans.plans: must not be empty",
    "{parallel: true}": "subplans.plans: this key is required",
    "{plans: [{name: x}]}": "subplans.plans[0].steps: this key is required",
    "{plans: [{name: x, steps: []}]}": "subplans.plans[0].steps: must not be empty",
    f"{{plans: [{one('1x')}]}}": "subplans.plans[0].name: a child's name is a letter",
    f"{{plans: [{one()}, {one()}]}}": "subplans.plans[1].name: there is a child `x` already",
    f"{{plans: [{one(depends_on='[y]')}]}}": "plans[0].depends_on[0]: there is no child `y`",
    f"{{plans: [{one(depends_on='[x]')}]}}": "plans[0].depends_on: waits for itself",
    f"{{plans: [{one('a', depends_on='[b]')}, {one('b', depends_on='[a]')}]}}": (
        "plans[1].depends_on: waits for itself"
    ),
    f"{{plans: [{one(resources='[cod]')}]}}": (
        "resources[0]: the parent has no resource `cod`; did you mean `code`?"
    ),
    f"{{plans: [{one(resources='[]')}]}}": "plans[0].resources: must not be empty",
    f"{{plans: [{one(resource='[code]')}]}}": "plans[0].resource: unknown key",
    f"{{plans: [{one(resources='[db]')}]}}": (
        "plans[0].steps[0]: this child was not given `code`; name it in its `resources`"
    ),
    "{plans: [{name: x, resources: [db], steps: [{tool: build}]}]}": (
        "plans[0].steps[0]: this child was not given `code`"
    ),
    "{plans: [{name: x, resources: [code], steps: [{tool: build}]}]}": (
        "plans[0].steps[0]: this child was not given `db`"
    ),
    "{plans: [{name: x, steps: [{tool: shel}]}]}": "plans[0].steps[0]: unknown tool `shel`",
    "{plans: [{name: x, steps: [{tool: file.read, with: {resource: code}}]}]}": (
        "plans[0].steps[0]: `file.read` needs `path`"
    ),
}


@pytest.mark.parametrize("text", MISTAKES)
def test_a_mistake_is_told_with_its_line(file: Path, text: str) -> None:
    found = problems(file, f"  - subplans: {text}\n")
    assert any(item.startswith("line 9: ") and MISTAKES[text] in item for item in found), found


def test_a_tool_and_children_in_one_step_exclude_each_other(file: Path) -> None:
    found = problems(file, f"  - {{tool: shell, subplans: {{plans: [{one()}]}}}}\n")
    assert found == ["line 9: steps[0].tool: unknown key"]


def test_a_grandchild_is_given_no_more_than_its_parent(file: Path) -> None:
    inner = f"{{subplans: {{plans: [{one('inner', resources='[code]')}]}}}}"
    found = problems(
        file,
        "  - subplans:\n"
        "      plans:\n"
        "        - name: outer\n"
        "          resources: [db]\n"
        f"          steps: [{inner}]\n",
    )
    assert found == [
        "line 13: steps[0].subplans.plans[0].steps[0].subplans.plans[0].resources[0]: "
        "the parent has no resource `code`"
    ]


def test_children_may_be_nested_only_so_deep(file: Path) -> None:
    def nested(levels: int) -> str:
        step = LOOK
        for level in range(levels):
            step = f"{{subplans: {{plans: [{{name: l{level}, steps: [{step}]}}]}}}}"
        return f"  - {step}\n"

    read(file, nested(8))
    assert "child plans may be nested 8 levels deep, not more" in problems(file, nested(9))[0]
