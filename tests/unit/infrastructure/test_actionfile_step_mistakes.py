"""Action files: how mistakes in steps, policy, actor and names are told, all at once, in order."""

import pytest
from action_world import FULL, HEAD, STEPS, World, with_resource, with_step, world

from cleveragents.domain.action import Action, ActorSpec
from cleveragents.domain.tool_schema import CallProblem

__all__ = ["world"]


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
        ("steps:\n", "steps: has no value"),
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
    world.check_step = lambda action, step: [
        CallProblem(text=f"unknown tool `{step.tool}`"),
        CallProblem(text="and more"),
    ]

    problems = world.problems(HEAD + "steps:\n  - tool: x\n    with: {}\n  - tool: y\n")

    assert problems == (
        "line 5: steps[0]: unknown tool `x`",
        "line 5: steps[0]: and more",
        "line 7: steps[1]: unknown tool `y`",
        "line 7: steps[1]: and more",
    )


def test_good_steps_are_checked_though_another_one_is_broken(world: World) -> None:
    world.check_step = lambda action, step: [CallProblem(text=f"seen {step.name}")]

    problems = world.problems(HEAD + "steps:\n  - {tol: x}\n  - {tool: y}\n")

    assert "line 6: steps[1]: seen y" in problems


def test_steps_are_not_checked_against_broken_tools(world: World) -> None:
    world.check_step = lambda action, step: [CallProblem(text=f"seen {step.tool}")]
    steps = "steps: [{tool: mine}, {tool: shell}]\n"

    assert world.problems(HEAD + "tools: {mine: {command: []}}\n" + steps) == (
        "line 4: tools.mine.command: must not be empty",
        "line 5: steps[1]: seen shell",
    )


def test_the_step_check_sees_the_whole_action(world: World) -> None:
    seen: list[Action] = []
    world.check_step = lambda action, step: seen.append(action) or ()

    assert world.read(FULL) == seen[0] == seen[1]
