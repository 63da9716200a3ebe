"""Standard streams that are full, closed or slow: what was done is done and said so, and a message
never stops work."""

import fcntl
import json
import os
import subprocess
import sys
import termios
from collections.abc import Callable, Sequence

import pytest
from tests.support.agents import COMMAND, Answer
from tests.support.world import PlanHandle, World, action, shell, wait_for, write

CODE = "code: output-not-written"


def typed(world: World, redirection: str, *argv: str) -> Answer:
    """As a person types it; the answer has what was not sent elsewhere."""
    script = f'"$@" {redirection}; exit "${{PIPESTATUS[0]}}"'
    done = subprocess.run(
        ["bash", "-c", script, "sh", COMMAND, *argv],
        env=world.agents.environ,
        cwd=world.project.path,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    answer = Answer(
        argv=argv, code=done.returncode, out=done.stdout.decode(), err=done.stderr.decode()
    )
    said = answer.out + answer.err
    assert not any(word in said for word in ("Traceback", "Exception", "bug in agents")), said
    return answer


# --- an answer that cannot be written -----------------------------------------------------------

Words = Callable[[World, PlanHandle], Sequence[str]]
CHANGING: dict[str, Words] = {
    "plan use": lambda w, _: ["use", w.write_action(action(write("h", "1")))],
    "plan execute": lambda w, _: ["execute", w.use(write("h", "1")).id],
    "plan resume": lambda w, _: ["resume", w.use(write("h", "1")).id],
    "plan checkpoint create": lambda _, p: ["checkpoint", "create", "--label", "x", p.id],
    "plan checkpoint delete": lambda _, p: ["checkpoint", "delete", "-y", p.id, "decision 1: one"],
    "plan checkpoint prune": lambda _, p: ["checkpoint", "prune", "-y", p.id],
    "plan rollback": lambda _, p: ["rollback", "--yes", p.id, "start"],
    "plan apply": lambda _, p: ["apply", "--yes", p.id],
    "plan correct": lambda w, p: _corrected(w, p, "revert", "--yes"),
    "plan correct (append)": lambda w, p: _corrected(w, p, "append"),
    "plan prompt": lambda w, _: ["prompt", "--no-execute", _failed(w).id, "be quick"],
    "plan cancel": lambda w, _: ["cancel", w.use(write("h", "1")).id],
    "plan discard": lambda _, p: ["discard", "--yes", _cancelled(p)],
    "config set": lambda _w, _p: ["config", "set", "tool.timeout", "5"],
    "doctor": lambda w, p: _to_mend(w, p),
}


def _corrected(world: World, plan: PlanHandle, mode: str, *flags: str) -> Sequence[str]:
    file = world.top / "step.json"
    file.write_text(json.dumps({"tool": "file.write", "with": {"path": "g", "content": "2"}}))
    decision = plan.group("decision 1: one").decision_id
    advice = ("--mode", mode, "--guidance", "two", "--step-file", str(file))
    return ["correct", *advice, *flags, decision]


def _failed(world: World) -> PlanHandle:
    plan = world.use(shell("false"))
    assert plan.execute().code == 1
    return plan


def _to_mend(world: World, plan: PlanHandle) -> Sequence[str]:
    pin = world.project.git("for-each-ref", "--format=%(refname)", "refs/cleveragents")
    world.keep_nothing()
    plan("apply", "--yes").ok()
    world.project.git("update-ref", pin, "HEAD~1")
    return ["doctor", "--fix", "--yes"]


def _cancelled(plan: PlanHandle) -> str:
    plan("cancel").ok()
    return plan.id


def _words(world: World, plan: PlanHandle, name: str) -> Sequence[str]:
    words = CHANGING[name](world, plan)
    return ["plan", *words] if name.startswith("plan") else words


@pytest.mark.parametrize("name", CHANGING)
def test_what_was_done_is_told_as_done_though_its_answer_could_not_be_written(
    world: World, name: str
) -> None:
    plan = world.run(write("g", "1", "one"))
    answer = typed(world, "> /dev/full", *_words(world, plan, name))
    assert answer.code == 0, answer
    assert "is done" in answer.err
    assert "No space left on device" in answer.err
    assert "do not run it again" in answer.err
    assert CODE in answer.err


@pytest.mark.parametrize("name", ["plan apply", "config set"])
@pytest.mark.parametrize("format", ["plain", "json", "rich"])
def test_a_reader_that_has_gone_makes_no_failure_of_what_was_done(
    world: World, name: str, format: str
) -> None:
    plan = world.run(write("g", "1", "one"))
    answer = typed(world, "| true", "--format", format, *_words(world, plan, name))
    assert (answer.code, answer.err) == (0, "")


def test_an_apply_into_a_full_disk_has_committed_and_says_so(world: World) -> None:
    plan = world.run(write("g", "1"))
    before = int(world.project.git("rev-list", "--count", "HEAD"))
    answer = typed(world, "> /dev/full", "plan", "apply", "--yes", plan.id)
    assert int(world.project.git("rev-list", "--count", "HEAD")) == before + 1
    assert answer.code == 0
    assert "`plan apply` is done" in answer.err
    assert plan.status["state"] == "applied"


@pytest.mark.parametrize("redirection", ["> /dev/full", "1</dev/null"])
@pytest.mark.parametrize("format", ["plain", "json", "rich"])
def test_an_answer_that_was_all_that_was_asked_for_and_is_lost_is_an_error(
    world: World, redirection: str, format: str
) -> None:
    answer = typed(world, redirection, "--format", format, "config", "list")
    assert answer.code == 1
    assert "could not be written" in answer.err
    assert "hint: " in answer.err
    assert CODE in answer.err


@pytest.mark.parametrize("words", [["--help"], ["plan", "--help"], ["plan", "use", "--help"], []])
def test_help_that_cannot_be_written_is_an_error_like_any_other(
    world: World, words: list[str]
) -> None:
    answer = typed(world, "> /dev/full", *words)
    assert answer.code == 1
    assert "could not be written" in answer.err
    assert CODE in answer.err
    assert typed(world, "| true", *words).code == 0


def test_a_version_and_a_completion_that_cannot_be_written_are_no_tracebacks(world: World) -> None:
    assert CODE in typed(world, "> /dev/full", "--version").err
    asked = {"_AGENTS_COMPLETE": "bash_complete", "COMP_WORDS": "agents pl", "COMP_CWORD": "1"}
    world.agents.environ.update(asked)
    assert CODE in typed(world, "> /dev/full").err


@pytest.mark.parametrize("redirection", ["> /dev/full", "| true"])
def test_a_refusal_whose_envelope_is_lost_is_told_on_stderr(world: World, redirection: str) -> None:
    answer = typed(world, redirection, "--format", "json", "plan", "use", "nothing.yaml")
    assert answer.code == 1
    assert "code: action-not-found" in answer.err
    assert "hint: " in answer.err


def test_a_slow_reader_of_a_pipe_that_does_not_wait_gets_everything(world: World) -> None:
    """Programs on node share such pipes with what they start."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    room = fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, 4096)
    with subprocess.Popen(
        [COMMAND, "--format", "json", "action", "schema"],
        stdout=writing,
        stderr=subprocess.PIPE,
        env=world.agents.environ,
        cwd=world.project.path,
    ) as process:
        os.close(writing)
        wait_for(lambda: _waiting_in(reading) == room)
        with os.fdopen(reading) as told:
            envelope = json.load(told)
        assert process.stderr is not None
        assert (process.wait(120), process.stderr.read()) == (0, b"")
    assert envelope["command"] == "action schema"


def _waiting_in(pipe: int) -> int:
    told = bytearray(4)
    fcntl.ioctl(pipe, termios.FIONREAD, told)
    return int.from_bytes(told, sys.byteorder)


# --- messages -----------------------------------------------------------------------------------

UNHEARD = ["2>/dev/full", "2>&-", "2</dev/null", "2>&1 > /dev/null | true"]


@pytest.mark.parametrize("redirection", UNHEARD)
def test_messages_that_nobody_can_read_do_not_stop_a_plan(world: World, redirection: str) -> None:
    plan = world.use(write("g", "1"), shell("echo 2 > h"))
    assert typed(world, redirection, "-v", "plan", "execute", plan.id).code == 0
    assert plan.status["state"] == "complete"
    assert typed(world, redirection, "-v", "plan", "apply", "--yes", plan.id).code == 0
    assert world.project.git("show", "HEAD:h") == "2"


@pytest.mark.parametrize("redirection", UNHEARD)
@pytest.mark.parametrize(
    ("words", "code"), [(["plan", "use", "nothing.yaml"], 1), (["plan", "x"], 2), (["x"], 2)]
)
def test_an_error_that_nobody_can_read_has_its_exit_code(
    world: World, redirection: str, words: list[str], code: int
) -> None:
    assert typed(world, redirection, *words).code == code


def test_nothing_at_all_can_be_written_and_the_work_is_done(world: World) -> None:
    plan = world.use(write("g", "1"))
    everywhere = "> /dev/full 2>/dev/full <&-"
    assert typed(world, everywhere, "-v", "plan", "execute", plan.id).code == 0
    assert plan.status["state"] == "complete"
    assert typed(world, everywhere, "config", "list").code == 1


# --- standard input -----------------------------------------------------------------------------


@pytest.mark.parametrize("redirection", ["<&-", "<&- >&- 2>&-", "0>/dev/null"])
def test_without_standard_input_nobody_can_be_asked(world: World, redirection: str) -> None:
    plan = world.run(write("g", "1", "one"))
    words = ["--format", "json", "plan", "rollback", plan.id, "start"]
    answer = typed(world, redirection, *words)
    assert answer.code == 2
    if answer.out:
        assert answer.error["code"] == "confirmation-needed"
    assert typed(world, redirection, *words, "--yes").code == 0


def test_a_hook_without_standard_input_keeps_the_call_from_being_made(world: World) -> None:
    world.agents.environ["CLEVERAGENTS_HOOKS"] = str(world.top)
    for redirection in ("<&-", "0>/dev/null"):
        answer = typed(world, redirection, "hook", "pre-tool")
        assert answer.code == 2
        assert "agents hook: the message to the hook cannot be read" in answer.err


def test_files_never_take_the_place_of_streams_that_were_closed(world: World) -> None:
    plan = world.use(shell("ls -l /proc/self/fd/0 /proc/self/fd/1 /proc/self/fd/2 > fds; true"))
    typed(world, "<&- >&- 2>&-", "plan", "execute", plan.id)
    assert plan.status["state"] == "complete"
    assert ".db" not in (plan.sandbox / "fds").read_text()
    assert typed(world, "<&- >&- 2>&-", "store", "verify").code == 0
