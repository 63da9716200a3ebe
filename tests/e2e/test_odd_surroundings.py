"""Arguments, variables and values that are odd: each is taken as it is meant, or refused with what
to do; none is a bug, shown to others, or silently nothing."""

import os
import pwd
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.support.agents import COMMAND, Answer
from tests.support.llm_world import llm_action
from tests.support.terminals import on_a_terminal
from tests.support.world import CODE, PlanHandle, World, shell, write

NO_UTF8 = os.fsdecode(b"caf\xe9")
SECRET = "hunter2-s3cret"


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory, template: World) -> PlanHandle:
    world = World(tmp_path_factory.mktemp("done") / "w", template)
    return world.run(write("g", "1", "one"), shell("true", "two"))


# --- what is no UTF-8 ---------------------------------------------------------------------------

WORDS: dict[str, Sequence[str]] = {
    "the value of a setting": ["config", "set", "actor.llm.api-key", NO_UTF8],
    "a folder in a setting": ["config", "set", "data-dir", NO_UTF8],
    "an address in a setting": ["config", "set", "actor.llm.base-url", f"https://{NO_UTF8}/"],
    "the name of a setting": ["config", "get", NO_UTF8],
    "a checkpoint": ["plan", "rollback", "--yes", "{}", NO_UTF8],
    "a checkpoint to look at": ["plan", "checkpoint", "show", "{}", NO_UTF8],
    "a checkpoint to compare": ["plan", "checkpoint", "diff", "{}", "start", NO_UTF8],
    "a label": ["plan", "checkpoint", "create", "--label", NO_UTF8, "{}"],
    "a plan": ["plan", "status", NO_UTF8],
    "a decision": ["plan", "explain", NO_UTF8],
    "guidance": ["plan", "prompt", "{}", NO_UTF8],
    "a message": ["plan", "apply", "--yes", "--message", NO_UTF8, "{}"],
    "a tool": ["tool", "show", NO_UTF8],
}


@pytest.mark.parametrize("what", WORDS)
def test_a_word_that_is_no_utf_8_is_refused_as_such(done: PlanHandle, what: str) -> None:
    words = [done.id if word == "{}" else word for word in WORDS[what]]
    answer = done.agents.json(*words)
    assert answer.code == 2, answer
    assert answer.error["code"] == "usage"
    assert "is not UTF-8 text" in answer.error["message"]
    assert answer.error["hint"]
    assert not (done.agents.data_dir / "config.toml").exists()


def test_a_folder_whose_name_is_no_utf_8_cannot_be_put_into_a_setting(world: World) -> None:
    folder = world.top / NO_UTF8
    folder.mkdir()
    answer = world.agents.at(folder).json("config", "set", "data-dir", "here")
    assert (answer.code, answer.error["code"]) == (2, "invalid-config-value")
    assert "UTF-8" in answer.error["message"]


ASKED: list[dict[str, str]] = [
    {"COMP_WORDS": f"agents plan status {NO_UTF8} x", "COMP_CWORD": "4"},
    {"COMP_WORDS": f"agents config set tool.timeout {NO_UTF8}", "COMP_CWORD": "4"},
    {"COMP_WORDS": "agents plan status x", "COMP_CWORD": "y"},
    {"COMP_WORDS": "agents plan status x", "COMP_CWORD": "²"},
    {"COMP_WORDS": "agents plan"},
    {},
]


@pytest.mark.parametrize("asked", ASKED)
@pytest.mark.parametrize("shell", ["bash", "zsh", "fish", "none"])
def test_a_shell_that_asks_oddly_is_told_nothing(
    world: World, shell: str, asked: dict[str, str]
) -> None:
    told = world.agents.having(_AGENTS_COMPLETE=f"{shell}_complete", **asked).process()
    assert told.err == ""
    assert told.code in (0, 1)


def test_paths_may_be_no_utf_8(world: World) -> None:
    file = world.top / f"{NO_UTF8}.yaml"
    file.write_bytes(Path(world.write_action({"name": "x"})).read_bytes())
    answer = world.agents.json("--data-dir", str(world.top / NO_UTF8), "plan", "use", str(file))
    assert answer.error["code"] == "action-invalid"
    assert r"caf\xe9.yaml" in answer.error["message"]


# --- a terminal without a width -----------------------------------------------------------------

WIDTHS = ["0", "1", "-3", "", "²", "٣", "1_0", "9" * 12, "x"]


@pytest.mark.parametrize("columns", WIDTHS)
@pytest.mark.parametrize("format", ["rich", "table"])
def test_whatever_columns_says_everything_is_shown(
    done: PlanHandle, columns: str, format: str
) -> None:
    odd = done.agents.having(COLUMNS=columns, LINES=columns)
    shown = odd.inside("--format", format, "plan", "list").ok().out
    assert "demo-1" in shown
    refused = odd.inside("--format", format, "plan", "list", "--no-such-option")
    assert "no-such-option" in re.sub(r"[\s│|]", "", refused.err)
    assert "Usage" in odd.inside("--help").ok().out


@pytest.mark.parametrize("columns", WIDTHS)
def test_whatever_columns_says_a_plan_runs_on_a_terminal(world: World, columns: str) -> None:
    plan = world.use(write("g", "1"))
    code, drawn = on_a_terminal(world, "plan", "execute", plan.id, COLUMNS=columns, LINES=columns)
    assert code == 0, drawn
    assert "demo-1" in drawn
    assert plan.status["state"] == "complete"


# --- home ---------------------------------------------------------------------------------------


def test_a_relative_home_is_a_folder_of_where_one_is(world: World) -> None:
    answer = world.agents.having(HOME="rel").json("config", "get", "data-dir").ok()
    assert answer.data["value"] == str(world.project.path / "rel/.cleveragents")
    world.agents.having(HOME="rel").json("plan", "list").ok()
    assert (world.project.path / "rel/.cleveragents").is_dir()
    assert not (world.project.path / "rel/rel").exists()


def test_the_steps_of_a_plan_find_the_same_home(world: World) -> None:
    steps = [shell('echo "$HOME" > home')]
    plan = PlanHandle(
        world.agents.having(HOME="rel"),
        world.agents.having(HOME="rel")("plan", "use", world.write_action(_action(*steps)))
        .ok()
        .data["plan_id"],
    )
    plan.execute().ok()
    assert (plan.sandbox / "home").read_text().strip() == str(world.project.path / "rel")


def _action(*steps: object) -> dict[str, object]:
    return {"name": "demo", "description": "d", "resources": CODE, "steps": list(steps)}


def test_an_empty_home_is_none_at_all(world: World) -> None:
    answer = world.agents.having(HOME="").json("config", "get", "data-dir").ok()
    own = Path(pwd.getpwuid(os.geteuid()).pw_dir)
    assert answer.data["value"] == str(own / ".cleveragents")


NO_USER = ["setpriv", "--reuid", "54321", "--clear-groups"]


def started(world: World, script: str, *argv: str) -> Answer:
    done = subprocess.run(
        ["/bin/sh", "-c", script, "sh", COMMAND, *argv],
        # Not measured: coverage may write nothing as somebody whom nobody knows.
        env={k: v for k, v in world.agents.environ.items() if k[:5] not in ("HOME", "COVER")},
        cwd="/",
        capture_output=True,
        check=False,
    )
    return Answer(
        argv=argv, code=done.returncode, out=done.stdout.decode(), err=done.stderr.decode()
    )


@pytest.mark.parametrize("format", [[], ["--format", "rich"], ["--format", "json"]])
def test_a_user_without_a_home_is_told_what_to_do(world: World, format: list[str]) -> None:
    without = f'exec {" ".join(NO_USER)} "$@"'
    if started(world, without, "--version").code:
        pytest.skip("only root can be a user whom nobody knows")
    answer = started(world, without, *format, "plan", "list")
    assert answer.code == 1
    assert "home-unknown" in answer.out + answer.err
    assert "set HOME" in answer.out + answer.err
    assert "Traceback" not in answer.err


@pytest.mark.parametrize("format", [[], ["--format", "rich"], ["--format", "json"]])
def test_a_current_folder_that_is_gone_is_told_in_every_format(
    world: World, format: list[str]
) -> None:
    gone = world.top / "gone"
    gone.mkdir()
    script = f'cd "{gone}"; rmdir "{gone}"; HOME="{world.home}" exec "$@"'
    answer = started(world, script, *format, "plan", "list")
    assert answer.code == 1
    assert "current-folder-gone" in answer.out + answer.err
    assert "Traceback" not in answer.err


# --- secrets ------------------------------------------------------------------------------------

TROUBLES = ("model-unreachable", "actor-unavailable", "invalid-config-value")
ADDRESSES = [
    f"https://me:{SECRET}@models.example/v1",
    f"https://{SECRET}@models.example/v1",
    f"http://me:{SECRET}@[::1]:8080/v1?x=1#y",
    f"https://models.example/v1?key={SECRET}&b=1",
    f"https://me:{SECRET}%40@b@models.example",
]


@pytest.mark.parametrize("address", ADDRESSES)
@pytest.mark.parametrize("format", ["plain", "json", "yaml", "rich"])
def test_the_password_in_an_address_is_never_shown(world: World, address: str, format: str) -> None:
    told = world.agents.having(COLUMNS="400")
    for words in (
        ["config", "set", "actor.llm.base-url", address],
        ["config", "get", "actor.llm.base-url"],
        ["config", "list"],
    ):
        answer = told.inside("--format", format, *words).ok()
        assert SECRET not in answer.out + answer.err
    kept = (world.agents.data_dir / "config.toml").read_text()
    assert address in kept
    if "models.example/v1" in address:
        assert "models.example/v1" in told.inside("config", "list").out


def test_the_password_in_an_address_is_in_no_error_of_a_model(world: World) -> None:
    path = world.write_action(llm_action())
    plan = world.agents("plan", "use", path).ok().data["plan_id"]
    for name in ("CLEVERAGENTS_ACTOR_LLM_BASE_URL", "OPENAI_BASE_URL"):
        for address in (
            f"http://me:{SECRET}@127.0.0.1:9/v1",
            f"http://me:{SECRET}@127.0.0.1:x/v1",
            f"http://me:{SECRET}@[::1/v1",
        ):
            environ = {name: address, "CLEVERAGENTS_ACTOR_LLM_MAX_RETRIES": "0"}
            agents = world.agents.having(**environ, OPENAI_API_KEY="k")
            answer = agents.inside("-v", "--format", "json", "plan", "execute", plan)
            assert answer.error["code"] in TROUBLES, answer
            assert SECRET not in answer.out + answer.err
    for command in ("status", "errors", "tree"):
        assert SECRET not in world.agents("plan", command, plan).ok().out


# --- numbers ------------------------------------------------------------------------------------

NO_NUMBERS = ["1_000", "١٠٠", "１００", "1٠", "1_0.5", "0x10", "nan", "inf", "1e", "", "١d", "1__0"]


@pytest.mark.parametrize("text", NO_NUMBERS)
@pytest.mark.parametrize(
    ("key", "variable"),
    [
        ("sandbox.checkpoint.max-checkpoints-per-plan", "CLEVERAGENTS_CHECKPOINT_MAX_PER_PLAN"),
        ("sandbox.checkpoint.max-age", "CLEVERAGENTS_CHECKPOINT_MAX_AGE"),
        ("store.max-size", "CLEVERAGENTS_STORE_MAX_SIZE"),
        ("tool.timeout", "CLEVERAGENTS_TOOL_TIMEOUT"),
        ("actor.max-cost", "CLEVERAGENTS_ACTOR_MAX_COST"),
    ],
)
def test_only_the_digits_of_everybody_make_a_number(
    world: World, text: str, key: str, variable: str
) -> None:
    answer = world.agents("config", "set", "--", key, text)
    assert (answer.code, answer.error["code"]) == (2, "invalid-config-value")
    if text:  # an empty variable is one that is not set
        answer = world.agents.having(**{variable: text})("config", "list")
        assert (answer.code, answer.error["code"]) == (2, "invalid-config-value")


@pytest.mark.parametrize(("text", "value"), [("7", 7), ("+7", 7), ("7.5", 7.5), ("1e2", 100)])
def test_a_number_may_be_written_as_people_do(world: World, text: str, value: float) -> None:
    world.agents("config", "set", "tool.timeout", text).ok()
    assert world.agents("config", "get", "tool.timeout").ok().data["value"] == value


def test_a_step_to_keep_is_not_named_by_other_digits(done: PlanHandle) -> None:
    decision = done.group("decision 1: one").decision_id
    advice = ("--mode", "revert", "--guidance", "x", "--dry-run", "--keep", "١")
    answer = done.agents("plan", "correct", *advice, decision)
    assert (answer.code, answer.error["code"]) == (2, "usage")
    assert "no step" in answer.error["message"]


# --- nothing, in YAML ---------------------------------------------------------------------------

NOTHING = ["~", "null", ""]


def used(world: World, text: str) -> Answer:
    file = world.top / "nothing.yaml"
    file.write_text(text)
    answer = world.agents("plan", "use", str(file))
    assert answer.error["code"] == "action-invalid"
    return answer


@pytest.mark.parametrize("nothing", NOTHING)
def test_a_key_that_is_there_without_a_value_is_told_as_such(world: World, nothing: str) -> None:
    top = "name: demo\ndescription: d\nresources:\n  code:\n    type: git-checkout\n"
    steps = "steps:\n  - {tool: shell, with: {command: 'true'}}\n"
    message = used(world, f"{top}    path: {nothing}\n{steps}").error["message"]
    assert "resources.code.path: has no value" in message
    assert "required" not in message
    assert '"~"' in message
    message = used(world, f"{top}    path: .\nsteps: {nothing}\n").error["message"]
    assert "steps: has no value" in message
    tool = f"tools:\n  t:\n    command: {nothing}\n"
    message = used(world, f"{top}    path: .\n{tool}{steps}").error["message"]
    assert "tools.t.command: has no value" in message
    message = used(world, f"name: {nothing}\ndescription: d\n{steps}").error["message"]
    assert "name: has no value" in message
    assert "resources: this key is required" in message
    message = used(world, f"{top}    path: .\nsteps:\n  - tool: {nothing}\n").error["message"]
    assert "steps[0].tool: has no value" in message


def test_a_home_in_quotes_is_a_path(world: World) -> None:
    text = "name: demo\ndescription: d\nresources: {code: {type: git-checkout, path: '~'}}\n"
    file = world.top / "home.yaml"
    file.write_text(f"{text}steps:\n  - {{tool: shell, with: {{command: 'true'}}}}\n")
    assert str(world.home) in world.agents("plan", "use", str(file)).error["message"]
