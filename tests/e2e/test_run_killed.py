"""`agents run` that is killed: what the program did is there, and the next command says so."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.agents import COMMAND
from tests.support.stand_ins.installed import install
from tests.support.terminals import Terminal
from tests.support.world import PlanHandle, World

# It shows that it is there, and goes on until it is ended.
WRITES = "echo 1 > a.txt; echo there > told; sleep 60; echo 2 > b.txt"
SCREEN = (
    "import os,time,tty; tty.setraw(0);"
    r"os.write(1, b'\x1b[?1049h\x1b[?25l\x1b[?2004hdrawn'); time.sleep(60)"
)


def wait_until(happened: Callable[[], bool], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def latest(world: World) -> PlanHandle:
    return PlanHandle(world.agents, world.agents("status").ok().data["plan_id"])


def started(world: World, *command: str, **environ: str) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        [COMMAND, "run", "--keep", "--", *command],
        cwd=world.project.path,
        env={**world.agents.environ, **environ},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )


def there(world: World) -> bool:
    return any(world.agents.data_dir.glob("sandboxes/*/*/told"))


def killed(world: World, number: signal.Signals) -> str:
    """What it said; the program has written one file by then."""
    running = started(world, "sh", "-c", WRITES)
    wait_until(lambda: there(world))
    running.send_signal(number)
    return running.communicate(timeout=60)[1].decode()


def typed(world: World, *words: str) -> str:
    done = world.agents.process(*words)
    return done.out + done.err


def test_what_a_killed_run_did_is_told_and_can_be_applied(world: World) -> None:
    killed(world, signal.SIGKILL)

    said = typed(world, "status")
    assert "the process that worked on this plan is gone" in said
    for word in ("agents apply --as-it-is", "agents undo", "agents plan resume", "agents discard"):
        assert said.count(word) == 1
    assert "a.txt" in typed(world, "diff")
    refused = world.agents("apply", "--yes")
    assert refused.error["code"] == "plan-state"
    assert "--as-it-is" in refused.error["hint"]
    assert not (world.project.path / "a.txt").exists()

    world.agents("apply", "--yes", "--as-it-is").ok()

    assert (world.project.path / "a.txt").read_text() == "1\n"


def test_a_killed_run_can_be_undone_and_redone(world: World) -> None:
    killed(world, signal.SIGKILL)
    sandbox = latest(world).sandbox

    world.agents("undo").ok()
    assert not (sandbox / "a.txt").exists()
    world.agents("redo").ok()
    assert (sandbox / "a.txt").exists()
    world.agents("apply", "--yes").ok()
    assert (world.project.path / "a.txt").exists()


def test_the_next_run_does_not_mind_and_resume_goes_on_with_what_is_there(world: World) -> None:
    killed(world, signal.SIGKILL)
    first = latest(world)

    again = world.agents.process("--format", "json", "run", "--", "sh", "-c", "test ! -e a.txt")
    assert again.ok().data["exit_code"] == 0

    running = subprocess.Popen(
        [COMMAND, "plan", "resume", first.id],
        cwd=world.project.path,
        env=world.agents.environ,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    wait_until(lambda: [step["step"] for step in first.status["progress"]] == ["a.txt, 1 more"])
    running.send_signal(signal.SIGTERM)
    assert b"is step 1" in running.communicate(timeout=60)[1]


def test_undo_is_refused_while_it_runs_and_stops_it_if_told_to(world: World) -> None:
    running = started(world, "sh", "-c", WRITES)
    wait_until(lambda: there(world))

    refused = world.agents("undo")
    assert refused.error["code"] == "plan-locked"
    assert "--now" in refused.error["hint"]
    assert running.poll() is None

    world.agents("undo", "--now").ok()
    assert running.wait(60) == 130
    plan = latest(world)
    assert not (plan.sandbox / "a.txt").exists()
    world.agents("redo").ok()
    assert (plan.sandbox / "a.txt").exists()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_polite_kill_keeps_what_the_program_did(world: World, number: signal.Signals) -> None:
    said = killed(world, number)

    assert "what it did until then is kept" in said
    for word in ("agents apply --as-it-is", "agents undo", "agents plan resume"):
        assert word in said
    plan = latest(world)
    assert [step["step"] for step in plan.status["progress"]] == ["a.txt, 1 more"]
    assert "was interrupted" in typed(world, "status")
    assert world.agents("apply", "--yes").error["code"] == "plan-state"
    world.agents("apply", "--yes", "--as-it-is").ok()
    assert (world.project.path / "a.txt").exists()


def test_a_call_that_was_cut_off_is_the_step_that_it_was_announced_as(world: World) -> None:
    folder = install(world.top / "bin", "claude")
    path = os.pathsep.join([str(folder), world.agents.environ["PATH"]])
    running = started(world, "claude", "-p", "hang", PATH=path)
    wait_until(lambda: there(world))
    running.kill()
    running.communicate(timeout=60)
    plan = latest(world)

    world.agents("undo").ok()
    assert not (plan.sandbox / "told").exists()
    world.agents("redo").ok()

    steps = [step["step"] for step in plan.status["progress"]]
    assert len(steps) == 1
    assert steps[0].startswith("Bash echo there > told")
    assert (plan.sandbox / "told").exists()


def test_the_terminal_of_a_killed_run_is_as_it_was(world: World) -> None:
    script = world.top / "screen.py"
    script.write_text(SCREEN)
    at = Terminal.of(world, "run", "--", sys.executable, str(script))
    at.wait_for("drawn")
    assert not at.is_as_before
    at.process.kill()
    at.process.wait()

    at.wait_for("\x1b[?1049l")
    assert "\x1b[?2004l" in at.drawn
    assert "\x1b[?25h" in at.drawn + at.wait_for("\x1b[?25h")
    assert at.is_as_before
    assert "is gone" in typed(world, "status")


def test_nobody_watches_a_terminal_any_more_when_the_run_is_over(world: World) -> None:
    at = Terminal.of(world, "run", "--keep", "--", "sh", "-c", "echo 1 > a")

    assert at.code() == 0
    found = [path for path in Path("/proc").glob("[0-9]*") if _is_guard_at(path, at)]
    assert found == []


def _is_guard_at(process: Path, at: Terminal) -> bool:
    try:
        shown = (process / "fd/1").readlink()
        return str(shown) == at.name and b"tcsetattr" in (process / "cmdline").read_bytes()
    except OSError:
        return False
