"""The tool box: which tools there are, what is wrong with a call, and how own tools are run."""

import json
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.support.runners import database_workers, in_folder, runner_with

from cleveragents.application.ports.runtime import ToolContext
from cleveragents.domain.action import (
    Action,
    Parameter,
    ResourceSpec,
    Step,
    ToolSpec,
)
from cleveragents.domain.decision import ToolResult
from cleveragents.domain.errors import (
    PathOutsideSandboxError,
    ToolArgumentError,
    ToolError,
    ToolNotFoundError,
    ToolTimeoutError,
)
from cleveragents.domain.ids import PlanId
from cleveragents.domain.resource_kinds import GIT_CHECKOUT
from cleveragents.infrastructure.clock import UlidSource
from cleveragents.infrastructure.tools.toolbox import BUILT_IN, ToolBox

PLAN = PlanId(UlidSource().new())
PRINT_ARGV = [sys.executable, "-c", "import json, sys; print(json.dumps(sys.argv[1:]))"]


def own(*command: str, **fields: Any) -> ToolSpec:
    names = ("value", "other")
    used = tuple(Parameter(name=n) for n in names if any(f"{{{n}}}" in part for part in command))
    return ToolSpec(
        name="own", command=(*PRINT_ARGV, *command), parameters=used, resource="code", **fields
    )


def an_action(*resources: str, tools: tuple[ToolSpec, ...] = ()) -> Action:
    return Action(
        name="demo",
        description="",
        resources=tuple(
            ResourceSpec(name=name, type=GIT_CHECKOUT.type, location="/p")
            for name in resources or ("code",)
        ),
        steps=(),
        tools=tools,
    )


@pytest.fixture
def box() -> ToolBox:
    return ToolBox(runner_with({"PATH": os.environ["PATH"]}, 10_000), database_workers())


Run = Callable[..., ToolResult]


@pytest.fixture
def run(box: ToolBox, tmp_path: Path) -> Run:
    sandboxes = {name: in_folder(tmp_path / name) for name in ("code", "docs")}
    for address in sandboxes.values():
        Path(address.value).mkdir()

    def run_tool(tool: str | ToolSpec, **arguments: Any) -> ToolResult:
        spec = box.find(an_action(), tool) if isinstance(tool, str) else tool
        context = ToolContext(plan_id=PLAN, sandboxes=sandboxes, timeout=20)
        return box.run(spec, arguments, context)

    return run_tool


# --- which tools there are ----------------------------------------------------------------------


def test_the_built_in_tools_are_always_there_and_own_ones_beside_them(box: ToolBox) -> None:
    names = [spec.name for spec in box.specs(None)]

    assert [name for name in names if not name.startswith("sql.")] == [
        *(f"file.{name}" for name in ("read", "write", "edit", "delete", "move", "list", "search")),
        "shell",
        *("git.status", "git.diff", "git.commit", "http.request"),
    ]
    assert [spec.name for spec in box.specs(an_action(tools=(own(),)))] == [*names, "own"]
    assert box.find(an_action(tools=(own(),)), "own") == own()


def test_tools_say_whether_they_write() -> None:
    writing = {spec.name for spec in BUILT_IN if spec.writes}

    assert writing - {"sql.execute"} == {
        "file.write",
        "file.edit",
        "file.delete",
        "file.move",
        "shell",
        "git.commit",
    }
    assert all(spec.description for spec in BUILT_IN)
    assert all(parameter.description for spec in BUILT_IN for parameter in spec.parameters)


@pytest.mark.parametrize(
    ("name", "suggestion"),
    [("file.wirte", "file.write"), ("shel", "shell"), ("ovn", "own"), ("zzz", None)],
)
def test_an_unknown_tool_is_refused_with_a_suggestion(
    box: ToolBox, name: str, suggestion: str | None
) -> None:
    action = an_action(tools=(own(),))

    with pytest.raises(ToolNotFoundError) as caught:
        box.find(action, name)

    assert f"`{name}`" in caught.value.message
    assert (f"did you mean `{suggestion}`" in caught.value.message) == (suggestion is not None)
    assert told(box, action, Step(name="", tool=name)) == [caught.value.message]


def told(box: ToolBox, action: Action, step: Step) -> list[str]:
    return [problem.text for problem in box.check(action, step)]


# --- what is wrong with a call ------------------------------------------------------------------

WRITE = {"path": "a", "content": "x"}
PROBLEMS: dict[str, tuple[str, Mapping[str, Any], list[str]]] = {
    "nothing": ("file.write", WRITE, []),
    "nothing either": ("shell", {"command": "x", "timeout": 1.5}, []),
    "an integer is a number": ("shell", {"command": "x", "timeout": 2}, []),
    "missing": ("file.write", {"path": "a"}, ["`file.write` needs `content` under `with`"]),
    "two missing": (
        "file.write",
        {},
        [
            "`file.write` needs `path` under `with`",
            "`file.write` needs `content` under `with`",
        ],
    ),
    "misspelled": (
        "file.write",
        {**WRITE, "pth": "x"},
        ["`file.write` does not take `pth`; did you mean `path`?"],
    ),
    "unknown": (
        "file.read",
        {"path": "a", "zzzz": 1},
        ["`file.read` does not take `zzzz`; it takes resource, path"],
    ),
    "a number for text": (
        "file.write",
        {**WRITE, "content": 5},
        ["`content` of `file.write` must be a string"],
    ),
    "null for text": (
        "file.read",
        {"path": None},
        ["`path` of `file.read` must be a string"],
    ),
    "text for a flag": (
        "file.delete",
        {"path": "a", "recursive": "yes"},
        ["`recursive` of `file.delete` must be a boolean"],
    ),
    "a number for a flag": (
        "file.delete",
        {"path": "a", "recursive": 1},
        ["`recursive` of `file.delete` must be a boolean"],
    ),
    "a flag for a number": (
        "shell",
        {"command": "x", "timeout": True},
        ["`timeout` of `shell` must be a number"],
    ),
    "text for a number": (
        "shell",
        {"command": "x", "timeout": "5"},
        ["`timeout` of `shell` must be a number"],
    ),
}


@pytest.mark.parametrize("case", PROBLEMS)
def test_the_arguments_of_a_call_are_judged_without_running_it(box: ToolBox, case: str) -> None:
    tool, arguments, expected = PROBLEMS[case]

    assert told(box, an_action(), Step(name="", tool=tool, arguments=arguments)) == expected


def test_what_is_wrong_with_a_call_says_in_which_argument_it_is(box: ToolBox) -> None:
    arguments = {"pth": "a", "content": 5}
    problems = box.check(an_action(), Step(name="", tool="file.write", arguments=arguments))

    assert [problem.argument for problem in problems] == [None, "pth", "content"]


@pytest.mark.parametrize("case", [case for case, (_, _, wrong) in PROBLEMS.items() if wrong])
def test_running_such_a_call_is_refused_with_the_same_words(run: Run, case: str) -> None:
    tool, arguments, expected = PROBLEMS[case]

    with pytest.raises(ToolArgumentError) as caught:
        run(tool, **{"resource": "code", **arguments})
    for problem in expected:
        assert problem in caught.value.message


@pytest.mark.parametrize(
    ("resources", "given", "expected"),
    [
        (["code"], {}, []),
        (["code"], {"resource": "code"}, []),
        (["code", "docs"], {"resource": "docs"}, []),
        (["code", "docs"], {}, ["say which `resource`: code, docs"]),
        (["code"], {"resource": "cod"}, ["unknown resource `cod`; did you mean `code`?"]),
        (["code", "docs"], {"resource": "x"}, ["unknown resource `x`; there are code, docs"]),
    ],
)
def test_the_resource_of_a_call_must_be_clear(
    box: ToolBox, resources: list[str], given: dict[str, Any], expected: list[str]
) -> None:
    step = Step(name="", tool="file.write", arguments={**WRITE, **given})

    assert told(box, an_action(*resources), step) == expected


def test_a_tool_bound_to_a_resource_needs_none(box: ToolBox) -> None:
    action = an_action("code", "docs", tools=(own(),))

    assert told(box, action, Step(name="", tool="own")) == []


# --- running ------------------------------------------------------------------------------------


def test_a_tool_works_in_the_sandbox_of_its_resource(run: Run, tmp_path: Path) -> None:
    run("file.write", resource="docs", path="a.txt", content="x")

    assert (tmp_path / "docs/a.txt").read_text() == "x"
    assert run("shell", resource="code", command="pwd").output == f"{tmp_path / 'code'}\n"


def test_the_only_resource_need_not_be_named(box: ToolBox, tmp_path: Path) -> None:
    context = ToolContext(plan_id=PLAN, sandboxes={"code": in_folder(tmp_path)}, timeout=5)

    box.run(box.find(an_action(), "file.write"), WRITE, context)

    assert (tmp_path / "a").read_text() == "x"


@pytest.mark.parametrize("given", [{}, {"resource": "nowhere"}])
def test_a_resource_that_is_not_clear_is_refused(run: Run, given: dict[str, Any]) -> None:
    with pytest.raises(ToolArgumentError, match="there is no resource"):
        run("file.write", **WRITE, **given)


def test_a_file_tool_stays_in_its_sandbox(run: Run) -> None:
    with pytest.raises(PathOutsideSandboxError):
        run("file.read", resource="code", path="../docs/a.txt")


def test_the_shell_sees_all_sandboxes(run: Run, tmp_path: Path) -> None:
    output = run("shell", resource="code", command="echo $CLEVERAGENTS_SANDBOX_DOCS").output

    assert output == f"{tmp_path / 'docs'}\n"


def test_a_step_may_take_its_own_time(run: Run) -> None:
    with pytest.raises(ToolTimeoutError, match=r"shell was stopped after 0\.2 seconds"):
        run("shell", resource="code", command="sleep 30", timeout=0.2)


def test_without_a_time_of_its_own_the_plans_time_counts(box: ToolBox, tmp_path: Path) -> None:
    context = ToolContext(plan_id=PLAN, sandboxes={"code": in_folder(tmp_path)}, timeout=0.2)

    with pytest.raises(ToolTimeoutError):
        box.run(box.find(an_action(), "shell"), {"command": "sleep 30"}, context)


# --- own tools ----------------------------------------------------------------------------------

NASTY = [
    "",
    " ",
    "two words",
    "--force",
    "-rf",
    "; echo pwned",
    "$(echo pwned) `id` $HOME",
    "a | b > c && d",
    "*",
    "'\"",
    "new\nline",
    "{other}",
    "{value}",
    "{{value}}",
    "ünïcödé",
    "\\1 \\g<0>",
]


def argv(result: ToolResult) -> list[str]:
    return json.loads(result.output)


@pytest.mark.parametrize("value", NASTY)
def test_a_value_is_always_exactly_one_argument(run: Run, value: str) -> None:
    tool = own("first", "{value}", "x={value}", "last")

    assert argv(run(tool, value=value)) == ["first", value, f"x={value}", "last"]


def test_a_value_that_looks_like_a_placeholder_is_not_filled_again(run: Run) -> None:
    tool = own("{value}", "{other}", "{value}{other}")

    assert argv(run(tool, value="{other}", other="{value}")) == [
        "{other}",
        "{value}",
        "{other}{value}",
    ]


def test_braces_that_are_no_placeholder_stay(run: Run) -> None:
    parts = ["{", "{}", "{0}", "${HOME}", '{"json": 1}', "{unknown}"]

    assert argv(run(own(*parts))) == parts


def test_an_own_tool_runs_in_its_own_resource_and_tells_its_exit_code(
    run: Run, tmp_path: Path
) -> None:
    spec = ToolSpec(name="where", command=("pwd",), resource="docs")
    failing = ToolSpec(name="failing", command=("sh", "-c", "echo why; exit 4"), resource="docs")

    assert run(spec).output == f"{tmp_path / 'docs'}\n"
    with pytest.raises(ToolError, match="failing ended with exit code 4: why"):
        run(failing)


def test_an_own_tool_is_held_to_its_parameters(run: Run) -> None:
    with pytest.raises(ToolArgumentError, match="needs `value`"):
        run(own("{value}"))
    with pytest.raises(ToolArgumentError, match="does not take `extra`"):
        run(own(), extra="x")
