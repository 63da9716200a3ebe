"""Whatever is in an action file, a config or an id: an answer of the promised shape, no traceback,
and where it is refused, nothing has changed."""

import contextlib
import os
from collections.abc import Generator, Iterator, Sequence

import click
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.support import measuring
from tests.support.agents import Answer
from tests.support.fuzzing import FUZZ, JUNK, as_yaml, garbled, spoiled
from tests.support.promises import ENVELOPE, ERROR
from tests.support.trees import Tree, tree_of
from tests.support.world import PlanHandle, World, shell, write

from cleveragents.cli.main import root
from cleveragents.config.keys import KEYS
from cleveragents.domain.errors import PlanError

TRUE = {"tool": "shell", "with": {"resource": "code", "command": "true"}}
FILE = {"resource": "code", "path": "a", "content": "1"}
GOOD_ACTION = {
    "name": "demo",
    "description": "Change the project",
    "resources": {
        "code": {"type": "git-checkout", "path": ".", "include": [".env"], "exclude": ["target/"]},
        "assets": {"type": "fs-directory", "path": "./docs"},
    },
    "rollback_policy": {"enabled": True, "require_checkpoints": True, "max_checkpoints": 9},
    "tools": {
        "make": {
            "command": ["make", "{target}"],
            "resource": "code",
            "writes": True,
            "write_scope": ["code"],
            "idempotent": False,
            "timeout": 60,
        }
    },
    "confinement": {"write": ["/tmp"]},
    "steps": [
        {"name": "w", "tool": "file.write", "with": FILE},
        {"name": "s", "uses": ["w"], **TRUE},
        {"name": "m", "tool": "make", "with": {"target": "all"}},
        {
            "name": "both",
            "subplans": {
                "parallel": True,
                "merge_strategy": "git_three_way",
                "plans": [{"name": "en", "steps": [TRUE]}],
            },
        },
    ],
}
GOOD_CONFIG = {
    "format": "json",
    "sandbox.cleanup": "auto",
    "sandbox.checkpoint.auto-create-on": ["on_error", "before_apply"],
    "sandbox.checkpoint.max-checkpoints-per-plan": 12,
    "sandbox.checkpoint.max-age": "30d",
    "tool.timeout": 60,
    "store.max-size": "20GB",
    "actor.llm.max-retries": 3,
}


WORD = (
    JUNK.map(str)
    # No operating system passes a null byte on.
    .map(lambda text: text.replace("\0", "").encode("utf-8", "surrogatepass"))
    .map(os.fsdecode)
)
VARIABLES = [key.env for key in KEYS]


@pytest.fixture(scope="module", autouse=True)
def unmeasured() -> Generator[None]:
    with measuring.unmeasured(), contextlib.chdir("/"):
        yield


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory, template: World) -> World:
    made = World(tmp_path_factory.mktemp("fuzz") / "w", template)
    made.agents("plan", "list").ok()  # whoever opens the database first makes our folders
    return made


@pytest.fixture(scope="module")
def plan(world: World) -> PlanHandle:
    return world.run(write("a", "1", "one"), shell("echo 2 > b", "two"))


def is_proper(answer: Answer) -> None:
    """An answer of the promised shape, with a documented code if it is a refusal."""
    assert answer.code in (0, 1, 2), answer
    assert "Traceback" not in answer.err + answer.out
    assert set(answer.envelope) == ENVELOPE, answer
    assert answer.envelope["exit_code"] == answer.code
    if answer.code:
        assert set(answer.error) == ERROR, answer
        assert answer.error["code"] in CODES, answer
        assert answer.error["hint"].strip(), answer


def everything(world: World) -> tuple[list[str], Tree, list[str]]:
    """Records, the project, and the names of all that we keep."""
    data = world.agents.data_dir
    names = [str(p) for p in sorted(data.rglob("*")) if not p.name.endswith(("-wal", "-shm"))]
    return world.records(), tree_of(world.project.path), names


def _codes(kind: type[PlanError]) -> Iterator[str]:
    yield kind.code
    for below in kind.__subclasses__():
        yield from _codes(below)


# Without `internal-error`: that one is a bug.
CODES = set(_codes(PlanError)) - {"internal-error"}

# --- action files -------------------------------------------------------------------------------


@FUZZ
@given(garbled(spoiled(GOOD_ACTION).map(as_yaml)) | garbled(st.just(as_yaml(GOOD_ACTION))))
def test_an_action_file_is_taken_whole_or_refused_whole(world: World, content: bytes) -> None:
    file = world.top / "fuzz.yaml"
    file.write_bytes(content)
    before, plans = everything(world), world.plan_count()
    answer = world.agents("plan", "use", str(file))
    is_proper(answer)
    if answer.code:
        assert everything(world) == before
    else:
        assert world.plan_count() == plans + 1


# --- config -------------------------------------------------------------------------------------

TABLES = spoiled(GOOD_CONFIG).map(
    lambda data: "".join(f"{key} = {_toml(value)}\n" for key, value in data.items()).encode(
        "utf-8", "surrogatepass"
    )
)


def _toml(value: object) -> str:
    if isinstance(value, bool) or value is None:
        return str(value).lower()
    if isinstance(value, list):
        return f"[{', '.join(_toml(item) for item in value)}]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {_toml(item)}" for key, item in value.items()) + "}"
    return repr(value)


@FUZZ
@given(content=garbled(TABLES), project=st.booleans())
def test_a_config_file_is_obeyed_or_refused(world: World, content: bytes, *, project: bool) -> None:
    folder = world.project.path / ".cleveragents" if project else world.agents.data_dir
    folder.mkdir(exist_ok=True)
    file = folder / "config.toml"
    file.write_bytes(content)
    try:
        before = everything(world)
        for words in (("config", "list"), ("plan", "list"), ("config", "get", "tool.timeout")):
            is_proper(world.agents(*words))
        assert everything(world) == before
    finally:
        file.unlink()
        if project:
            folder.rmdir()


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
