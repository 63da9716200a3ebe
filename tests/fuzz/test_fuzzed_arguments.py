"""Whatever is typed: an answer of the promised shape; what is refused has changed nothing."""

from collections.abc import Iterator, Sequence

import click
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.support.fuzzing import FUZZ, WORD
from tests.support.proper import everything, has_no_bug, is_proper
from tests.support.world import PlanHandle, World, write

from cleveragents.cli.main import root
from cleveragents.config.keys import KEYS

VARIABLES = [key.env for key in KEYS]

# --- settings -----------------------------------------------------------------------------------


@FUZZ
@given(key=st.sampled_from([key.name for key in KEYS]) | WORD, value=WORD)
def test_a_setting_that_is_taken_can_be_read_and_one_that_is_not_changes_nothing(
    world: World, key: str, value: str
) -> None:
    file = world.agents.data_dir / "config.toml"
    try:
        answer = world.agents("config", "set", "--", key, value)
        is_proper(answer)
        assert file.exists() == (answer.code == 0)
        if not answer.code:
            world.agents("config", "get", "--", key).ok()
    finally:
        file.unlink(missing_ok=True)


@FUZZ
@given(name=st.sampled_from(VARIABLES), value=WORD)
def test_a_variable_is_obeyed_or_refused(world: World, name: str, value: str) -> None:
    is_proper(world.agents.having(**{name: value})("config", "list"))


# --- ids ----------------------------------------------------------------------------------------

OPTIONS = {"--mode": "revert", "--guidance": "again", "--label": "mine", "--yes": None}
CONTEXT = click.Context(root)


def commands(group: click.Group, path: Sequence[str] = ()) -> Iterator[tuple[list[str], int]]:
    """Every command that takes ids, with what else it needs, and how many ids it takes."""
    for name in group.list_commands(CONTEXT):
        command = group.get_command(CONTEXT, name)
        if isinstance(command, click.Group):
            yield from commands(command, (*path, name))
        elif command is not None:
            ids = [p for p in command.params if p.name in IDS]
            said = [o for p in command.params for o in p.opts if o in OPTIONS]
            words = [w for o in said for w in (o, OPTIONS[o]) if w is not None]
            if ids:
                yield [*path, name, *words], len(ids)


IDS = ("plan_id", "decision_id", "checkpoint_id", "old", "new")
COMMANDS = list(commands(root))


@FUZZ
@given(st.data())
def test_no_id_is_taken_for_another(world: World, plan: PlanHandle, data: st.DataObject) -> None:
    command, needed = data.draw(st.sampled_from(COMMANDS))
    near = [f"{plan.id}0", plan.id[:-1] + "é", "0" * 26, "Z" * 26, f"{plan.id[:8]}%", "_" * 26]
    wrong = data.draw(WORD | st.sampled_from(near))
    assume(not any(known.startswith(wrong.strip().upper()) for known in known_of(plan)))
    before = everything(world)
    words = [plan.id] * data.draw(st.integers(0, needed - 1))
    answer = world.agents(*command, "--", *words, *[wrong] * (needed - len(words)))
    is_proper(answer)
    assert answer.code, answer
    assert everything(world) == before


def known_of(plan: PlanHandle) -> list[str]:
    """What may be said: of ids the beginning is enough."""
    rows = plan("checkpoint", "list").ok().data["checkpoints"]
    keys = ("checkpoint_id", "group_id", "label", "decision_id")
    return ["LATEST", plan.id, *(str(row[key]).upper() for row in rows for key in keys)]


@pytest.mark.parametrize("empty", ["", " ", "\t"])
def test_nothing_is_no_id(world: World, plan: PlanHandle, empty: str) -> None:
    before = everything(world)
    for command, needed in COMMANDS:
        answer = world.agents(*command, "--", *[empty] * needed)
        is_proper(answer)
        assert answer.code, answer
    assert everything(world) == before


# --- completion ---------------------------------------------------------------------------------


@FUZZ
@given(
    path=st.sampled_from([*COMMANDS, (["config", "set"], 1), (["tool", "show"], 1)]),
    words=st.lists(st.sampled_from(["latest", "--any", "--yes"]) | WORD, max_size=3),
    at=st.integers(1, 7).map(str) | st.sampled_from(["-1", "0", "99", "x", ""]),
    shell=st.sampled_from(["bash", "zsh", "fish"]),
)
def test_whatever_is_half_typed_a_shell_is_offered_something_or_nothing(
    world: World, path: tuple[list[str], int], words: list[str], at: str, shell: str
) -> None:
    typed = " ".join(["agents", *path[0], *words])
    told = {"COMP_WORDS": typed, "COMP_CWORD": at, "_AGENTS_COMPLETE": f"{shell}_complete"}
    answer = world.agents.having(**told).inside()
    assert answer.code in (0, 1)
    assert answer.err == ""


# --- command lines ------------------------------------------------------------------------------


def leaves(
    group: click.Group, path: Sequence[str] = ()
) -> Iterator[tuple[list[str], click.Command]]:
    for name in group.list_commands(CONTEXT):
        command = group.get_command(CONTEXT, name)
        if isinstance(command, click.Group):
            yield from leaves(command, (*path, name))
        elif command is not None and path != ("hook",):  # a hook answers its agent, not us
            yield [*path, name], command


LEAVES = list(leaves(root))


@st.composite
def lines(draw: st.DrawFn) -> list[str]:
    """A command with some of its options and arguments, most of them of the right kind."""
    path, command = draw(st.sampled_from(LEAVES))
    words: list[str] = []
    for param in command.params:
        if param.name == "format" or not draw(st.integers(0, 3)):
            continue
        value = draw(st.sampled_from(VALUES) | WORD)
        if isinstance(param, click.Option):
            words += [param.opts[0]] if param.is_flag else [param.opts[0], value]
        else:
            words.append(value)
    words += draw(
        st.lists(st.sampled_from([*VALUES, "--yes", "--dry-run", "--"]) | WORD, max_size=1)
    )
    return [*path, *words]


# What is there, what could be, and what never is.
VALUES = ["{plan}", "{plan}", "latest", "start", "{decision}", "0", "-1", "all", "code=.", "a", "b"]
VALUES += [
    "tool.timeout",
    "5",
    "shell",
    "file.read",
    "bash",
    "revert",
    "append",
    "repeat",
    "{file}",
]


@FUZZ
@given(line=lines())
def test_whatever_is_typed_has_a_proper_answer(world: World, line: list[str]) -> None:
    made = world.run(write("a", "1", "one"))
    file = world.write_action({"name": "x", "description": "y", "resources": {}})
    known = {"plan": made.id, "decision": made.groups[-1].decision_id, "file": file}
    words = [known.get(word.strip("{}"), word) if word.startswith("{") else word for word in line]
    try:
        answer = world.agents(*words)
        has_no_bug(answer)
        if "--help" not in words:
            is_proper(answer)
        made("status").ok()
    finally:
        (world.agents.data_dir / "config.toml").unlink(missing_ok=True)
