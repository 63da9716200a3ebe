"""What the commands print: one envelope for programs, text for people, progress beside it."""

import json
import re
import subprocess
from collections.abc import Callable, Sequence
from datetime import datetime

import pytest
from tests.support.agents import COMMAND, Answer
from tests.support.promises import ENVELOPE, ERROR, STATUSES, TIMING
from tests.support.terminals import on_a_terminal
from tests.support.world import PlanHandle, World, action, shell, write

NOBODY = "01ARZ3NDEKTSV4RRFFQ69G5FAV"
TRIGGERS = "sandbox.checkpoint.auto-create-on"
Words = Callable[[PlanHandle], Sequence[str]]

LOOKING: dict[str, Words] = {
    "plan list": lambda _: ["plan", "list"],
    "plan status": lambda plan: ["plan", "status", plan.id],
    "plan tree": lambda plan: ["plan", "tree", plan.id],
    "plan explain": lambda plan: ["plan", "explain", plan.groups[0].decision_id],
    "plan diff": lambda plan: ["plan", "diff", plan.id],
    "plan artifacts": lambda plan: ["plan", "artifacts", plan.id],
    "plan errors": lambda plan: ["plan", "errors", plan.id],
    "plan resume": lambda plan: ["plan", "resume", "--dry-run", plan.id],
    "plan execute": lambda plan: ["plan", "execute", plan.id],
    "plan checkpoint list": lambda plan: ["plan", "checkpoint", "list", plan.id],
    "plan checkpoint show": lambda plan: ["plan", "checkpoint", "show", plan.id, "start"],
    "plan checkpoint verify": lambda plan: ["plan", "checkpoint", "verify", plan.id],
    "plan checkpoint diff": lambda plan: [
        "plan", "checkpoint", "diff", plan.id, plan.groups[0].head, plan.groups[-1].head,
    ],
    "config list": lambda _: ["config", "list"],
    "config get": lambda _: ["config", "get", TRIGGERS],
    "tool list": lambda plan: ["tool", "list", "--plan", plan.id],
}  # fmt: skip
CHANGING: dict[str, Words] = {
    "plan checkpoint create": lambda p: ["plan", "checkpoint", "create", "--label", "mine", p.id],
    "plan checkpoint delete": lambda p: ["plan", "checkpoint", "delete", "-y", p.id, "start"],
    "plan rollback": lambda p: ["plan", "rollback", "--yes", p.id, "start"],
    "plan apply": lambda p: ["plan", "apply", "--yes", p.id],
    "plan cancel": lambda p: ["plan", "cancel", p.id],
    "config set": lambda _: ["config", "set", "tool.timeout", "5"],
}
FAILING: dict[str, tuple[Sequence[str], str]] = {
    "plan use": (["plan", "use", "nothing.yaml"], "action-not-found"),
    "plan execute": (["plan", "execute", NOBODY], "plan-not-found"),
    "plan resume": (["plan", "resume", NOBODY], "plan-not-found"),
    "plan status": (["plan", "status", NOBODY], "plan-not-found"),
    "plan cancel": (["plan", "cancel", NOBODY], "plan-not-found"),
    "plan rollback": (["plan", "rollback", "-y", NOBODY, "x"], "plan-not-found"),
    "plan diff": (["plan", "diff", NOBODY], "plan-not-found"),
    "plan apply": (["plan", "apply", "-y", NOBODY], "plan-not-found"),
    "plan tree": (["plan", "tree", NOBODY], "plan-not-found"),
    "plan explain": (["plan", "explain", NOBODY], "decision-not-found"),
    "plan artifacts": (["plan", "artifacts", NOBODY], "plan-not-found"),
    "plan errors": (["plan", "errors", NOBODY], "plan-not-found"),
    "plan checkpoint list": (["plan", "checkpoint", "list", NOBODY], "plan-not-found"),
    "plan checkpoint show": (["plan", "checkpoint", "show", NOBODY, "x"], "plan-not-found"),
    "plan checkpoint create": (
        ["plan", "checkpoint", "create", "--label", "x", NOBODY],
        "plan-not-found",
    ),
    "plan checkpoint delete": (
        ["plan", "checkpoint", "delete", "-y", NOBODY, "x"],
        "plan-not-found",
    ),
    "plan checkpoint verify": (["plan", "checkpoint", "verify", NOBODY, "1"], "plan-not-found"),
    "plan checkpoint diff": (["plan", "checkpoint", "diff", NOBODY, "x", "y"], "plan-not-found"),
    "tool list": (["tool", "list", "--plan", NOBODY], "plan-not-found"),
}
WRONG: dict[str, Sequence[str]] = {
    "plan": ["plan"],
    "plan checkpoint": ["plan", "checkpoint"],
    "plan statsu": ["plan", "statsu"],
    "plan status": ["plan", "status", "latest", "latest"],
    "plan list": ["plan", "list", "--no-such-option"],
    "plan rollback": ["plan", "rollback"],
    "plan execute": ["plan", "execute", "--effects", "undo"],
    "plan tree": ["plan", "tree", NOBODY, "one", "too", "many"],
    "plan use": ["plan", "use", "a.yaml", "--resource", "nonsense"],
    "plan apply": ["plan", "apply", NOBODY, "--no-commit", "--branch", "b"],
    "plan checkpoint create": ["plan", "checkpoint", "create", "--label", " ", "latest"],
    "config get": ["config", "get", "no.such.key"],
    "config set": ["config", "set", "tool.timeout", "soon"],
    "nonsense": ["nonsense"],
}


def check_envelope(envelope: dict[str, object], command: str, code: int) -> None:
    assert set(envelope) == ENVELOPE
    assert envelope["command"] == command
    assert envelope["exit_code"] == code
    assert envelope["status"] in STATUSES
    assert isinstance(envelope["data"], dict)
    timing = envelope["timing"]
    assert isinstance(timing, dict)
    assert set(timing) == TIMING
    assert datetime.fromisoformat(str(timing["started"])).tzinfo is not None
    assert str(timing["started"]).endswith("Z")
    assert isinstance(timing["duration_ms"], int)
    messages = envelope["messages"]
    assert isinstance(messages, list)
    assert all(isinstance(message, str) for message in messages)


def parsed(answer: Answer, format: str) -> dict[str, object]:
    return answer.envelope if format == "json" else answer.as_yaml


@pytest.fixture(scope="module")
def looked_at(template: World, tmp_path_factory: pytest.TempPathFactory) -> PlanHandle:
    """A finished plan for commands that only look."""
    made = World(tmp_path_factory.mktemp("output") / "w", template)
    return made.run(
        write("new.txt", "new\n", "write"), shell("echo hello; echo 2 > src/app.py", "say")
    )


# --- envelopes ----------------------------------------------------------------------------------


@pytest.mark.parametrize("format", ["json", "yaml"])
@pytest.mark.parametrize("command", LOOKING)
def test_a_command_that_looks_answers_with_an_envelope(
    looked_at: PlanHandle, command: str, format: str
) -> None:
    answer = looked_at.agents.inside(*LOOKING[command](looked_at), "--format", format).ok()
    check_envelope(parsed(answer, format), command, 0)
    assert answer.err == ""


@pytest.mark.parametrize("format", ["json", "yaml"])
@pytest.mark.parametrize("command", CHANGING)
def test_a_command_that_changes_answers_with_an_envelope(
    world: World, command: str, format: str
) -> None:
    plan = world.run(write("new.txt", "new\n"))
    answer = world.agents.inside("--format", format, *CHANGING[command](plan)).ok()
    check_envelope(parsed(answer, format), command, 0)


@pytest.mark.parametrize("format", ["json", "yaml"])
def test_use_answers_with_exactly_the_promised_keys(world: World, format: str) -> None:
    path = world.write_action(action(write("a", "1")))
    envelope = parsed(world.agents.inside("plan", "use", path, "--format", format).ok(), format)
    check_envelope(envelope, "plan use", 0)
    assert set(envelope["data"]) >= {  # type: ignore[arg-type]
        "plan_id", "phase", "state", "action", "resources", "next_steps",
    }  # fmt: skip


@pytest.mark.parametrize("format", ["json", "yaml"])
@pytest.mark.parametrize("command", FAILING)
def test_a_refusal_is_an_envelope_with_a_code_and_a_hint(
    looked_at: PlanHandle, command: str, format: str
) -> None:
    words, code = FAILING[command]
    answer = looked_at.agents.inside("--format", format, *words)
    assert answer.code == 1
    envelope = parsed(answer, format)
    check_envelope(envelope, command, 1)
    assert envelope["status"] == "error"
    error = envelope["data"]["error"]  # type: ignore[index]
    assert set(error) == ERROR
    assert error["code"] == code
    assert error["message"]
    assert error["hint"]
    assert envelope["messages"] == [error["message"]]
    assert answer.err == ""


@pytest.mark.parametrize("command", WRONG)
def test_a_usage_error_exits_with_2_and_is_an_envelope_too(
    looked_at: PlanHandle, command: str
) -> None:
    answer = looked_at.agents(*WRONG[command])
    assert answer.code == 2
    assert set(answer.envelope) == ENVELOPE
    assert answer.envelope["status"] == "error"
    assert answer.envelope["exit_code"] == 2
    assert set(answer.error) == ERROR
    assert answer.error["hint"]
    assert answer.err == ""


def test_a_mistyped_command_is_told_what_was_probably_meant(looked_at: PlanHandle) -> None:
    assert "did you mean `status`" in looked_at.agents("plan", "statsu").error["message"]


def test_a_wrong_format_is_a_usage_error(looked_at: PlanHandle) -> None:
    answer = looked_at.agents.inside("plan", "list", "--format", "xml")
    assert answer.code == 2
    assert "json" in answer.err
    assert answer.out == ""


def test_diff_and_tree_have_the_promised_keys(looked_at: PlanHandle) -> None:
    diff = looked_at("diff").data
    assert set(diff) >= {"plan_id", "diff_summary", "files", "patch"}
    assert set(diff["diff_summary"]) >= {"plan", "files_changed", "insertions", "deletions"}
    assert diff["files"] == [
        {"path": "new.txt", "change": "+1 -0", "status": "added"},
        {"path": "src/app.py", "change": "+1 -1", "status": "modified"},
    ]
    tree = looked_at("tree").data
    assert set(tree) >= {"plan_id", "tree", "summary"}
    assert set(tree["tree"]) >= {"id", "type", "description", "checkpoint", "children"}
    assert set(tree["summary"]) >= {"nodes", "depth", "child_plans", "superseded"}
    assert tree["tree"]["type"] == "prompt_definition"


def test_checkpoint_show_knows_everything_about_a_checkpoint(looked_at: PlanHandle) -> None:
    group = looked_at.group("after file.write new.txt")
    shown = looked_at.agents("plan", "checkpoint", "show", looked_at.id, group.group_id).ok().data
    row = next(row for row in shown["checkpoints"] if row["checkpoint_type"] == "git-checkout")
    assert {"plan_id", "resource_id", "sandbox_ref", "filesystem_path", "metadata"} <= set(row)
    head = looked_at.status["sandboxes"][0]["path"]
    assert row["filesystem_path"] == head
    assert re.fullmatch(r"[0-9a-f]{40}", row["sandbox_ref"])
    assert {"reason", "source", "phase"} <= set(row["metadata"])
    assert row["metadata"]["phase"] == "execute"
    assert re.fullmatch(r"sha256:[0-9a-f]{64}", shown["state_hash"])


# --- where the format comes from ----------------------------------------------------------------


@pytest.mark.parametrize(
    "argv",
    [
        ["--format", "json", "plan", "list"],
        ["plan", "--format", "json", "list"],
        ["plan", "list", "--format", "json"],
        ["plan", "list", "--format=json"],
        ["--format", "yaml", "plan", "list", "--format", "json"],
    ],
)
def test_format_works_before_and_after_the_command_and_the_last_one_wins(
    looked_at: PlanHandle, argv: list[str]
) -> None:
    assert looked_at.agents.inside(*argv).ok().envelope["command"] == "plan list"


def test_the_format_may_come_from_the_environment_and_a_flag_wins(looked_at: PlanHandle) -> None:
    agents = looked_at.agents.having(CLEVERAGENTS_FORMAT="json")
    assert agents.inside("plan", "list").envelope["status"] == "ok"
    assert agents.inside("plan", "status", NOBODY).error["code"] == "plan-not-found"
    assert agents.inside("plan", "list", "--format", "yaml").as_yaml["status"] == "ok"


def test_the_format_may_come_from_the_config(world: World) -> None:
    world.agents("config", "set", "format", "yaml").ok()
    assert world.agents.inside("plan", "list").as_yaml["command"] == "plan list"
    world.agents("config", "set", "--project", "format", "json").ok()
    assert world.agents.inside("plan", "list").envelope["command"] == "plan list"


def test_output_that_goes_to_no_terminal_is_plain(looked_at: PlanHandle) -> None:
    answer = looked_at.agents.process("plan", "status", looked_at.id).ok()
    assert answer.out.startswith("demo-1; ")
    assert "\x1b" not in answer.out
    assert not set("│┃╭─━") & set(answer.out)
    assert answer.err == ""


def test_an_error_in_plain_goes_to_stderr_with_its_hint(looked_at: PlanHandle) -> None:
    answer = looked_at.agents.process("plan", "status", NOBODY)
    assert (answer.code, answer.out) == (1, "")
    assert "agents plan list" in answer.err
    assert "Traceback" not in answer.err


@pytest.mark.parametrize("format", ["rich", "color", "table", "plain"])
@pytest.mark.parametrize("command", LOOKING)
def test_every_command_can_be_shown_to_people(
    looked_at: PlanHandle, command: str, format: str
) -> None:
    answer = looked_at.agents.inside(*LOOKING[command](looked_at), "--format", format).ok()
    assert answer.out.strip()
    assert "Traceback" not in answer.err


@pytest.mark.parametrize("format", ["rich", "color", "table", "plain"])
def test_a_rollback_shows_its_four_panels_to_people(world: World, format: str) -> None:
    plan = world.run(write("new.txt", "new\n"))
    argv = ["plan", "rollback", "--yes", plan.id, "start", "--format", format]
    shown = world.agents.inside(*argv).ok().out
    for title in ("Rollback Summary", "Changes Reverted", "Impact", "Post-Rollback State"):
        assert title in shown


# --- progress -----------------------------------------------------------------------------------


def test_nothing_but_the_envelope_is_printed_while_a_plan_runs(world: World) -> None:
    plan = world.use(shell("echo to stdout; echo to stderr >&2; echo x > f", "noisy"))
    answer = world.agents.json("plan", "execute", plan.id).ok()
    assert answer.envelope["command"] == "plan execute"
    assert answer.err == ""
    assert "to stdout" in plan("artifacts").data["artifacts"][0]["output"]


def test_verbose_tells_on_stderr_what_happens_and_stdout_stays_clean(world: World) -> None:
    plan = world.use(write("f", "1", "first"))
    answer = world.agents.process("-v", "--format", "json", "plan", "execute", plan.id).ok()
    json.loads(answer.out)
    assert "first (file.write)" in answer.err
    assert "checkpoint" in answer.err


def test_a_terminal_shows_moving_progress_and_then_the_panels(world: World) -> None:
    plan = world.use(shell("sleep 0.3; echo x > f", "slow one"), write("g", "1", "second one"))
    code, drawn = on_a_terminal(world, "plan", "execute", plan.id)
    assert code == 0
    assert "\x1b[" in drawn
    assert "slow one" in drawn
    assert "finished" in drawn
    assert plan.status["state"] == "complete"


def test_a_terminal_shows_an_error_with_what_to_do(world: World) -> None:
    code, drawn = on_a_terminal(world, "plan", "status", NOBODY)
    assert code == 1
    assert "agents plan list" in drawn
    assert "Traceback" not in drawn


def test_a_reader_that_goes_away_is_no_error(looked_at: PlanHandle) -> None:
    argv = f"{COMMAND} plan checkpoint list {looked_at.id} --format json | head -c 1"
    done = subprocess.run(
        ["/bin/sh", "-c", argv],
        env=looked_at.agents.environ,
        cwd=looked_at.agents.cwd,
        capture_output=True,
        check=False,
    )
    assert (done.stdout, done.stderr) == (b"{", b"")


def test_help_and_version_answer_for_every_command(looked_at: PlanHandle) -> None:
    for words in ([], ["--help"], ["plan", "--help"], ["--version"]):
        assert looked_at.agents.inside(*words).code == 0
    for command in {*LOOKING, *CHANGING, "plan use"}:
        answer = looked_at.agents.inside(*command.split(), "--help")
        assert answer.code == 0
        assert "Usage: agents" in answer.out
