"""`agents run` at a terminal: the program has one of its own; the user has theirs back after."""

import signal
import subprocess
import sys
import time

import pytest
from tests.support.agents import COMMAND
from tests.support.terminals import Terminal
from tests.support.world import PlanHandle, World

# It asks, reads single keys, redraws its screen, and hears of Ctrl-C and of another size.
FULL_SCREEN = """
import os, shutil, signal, sys, termios, tty

def draw(*_):
    size = os.get_terminal_size()
    os.write(1, b"\\x1b[2J\\x1b[1;1H\\x1b[31msize %dx%d\\x1b[0m\\r\\n" % (size.columns, size.lines))

os.write(1, b"\\x1b[?1049h\\x1b[?25l\\x1b[?2004h")
before = termios.tcgetattr(0)
tty.setraw(0)
signal.signal(signal.SIGWINCH, draw)
draw()
keys = b""
while not keys.endswith(b"q"):
    key = os.read(0, 1)
    keys += key
    os.write(1, b"key %r\\r\\n" % key)
    if key == b"w":
        open("typed.txt", "ab").write(keys)
    if key == b"x":
        os.kill(os.getpid(), signal.SIGKILL)
termios.tcsetattr(0, termios.TCSADRAIN, before)
os.write(1, b"\\x1b[?2004l\\x1b[?25h\\x1b[?1049l")
"""


@pytest.fixture
def screen(world: World) -> list[str]:
    path = world.top / "screen.py"
    path.write_text(FULL_SCREEN)
    return [sys.executable, str(path)]


def latest(world: World) -> PlanHandle:
    return PlanHandle(world.agents, world.agents("plan", "status").ok().data["plan_id"])


def test_an_interactive_program_gets_keys_colours_and_the_size(
    world: World, screen: list[str]
) -> None:
    at = Terminal.of(world, "run", "--keep", "--", *screen)

    at.wait_for("\x1b[31msize 100x30")
    at.type("a")
    at.wait_for("key b'a'")
    at.type("\x03")
    at.wait_for("key b'\\x03'")
    at.resize(20, 70)
    at.wait_for("size 70x20")
    at.type("wq")

    assert at.code() == 0
    assert at.is_as_before
    plan = latest(world)
    assert (plan.sandbox / "typed.txt").read_bytes() == b"a\x03w"
    assert "key b'a'" in summary(plan), "what it printed is kept, as text"
    assert "\x1b" not in summary(plan)


def summary(plan: PlanHandle) -> str:
    return plan("artifacts").ok().out.encode().decode("unicode_escape")


def test_ctrl_c_goes_to_the_program(world: World) -> None:
    script = "trap 'echo HEARD' INT; echo ready; read x; read y; echo got $y; echo 1 > after"
    at = Terminal.of(world, "run", "--keep", "--", "bash", "-c", script)

    at.wait_for("ready")
    at.type("\x03")
    at.wait_for("HEARD")
    at.type("one\n")
    time.sleep(0.3)
    at.type("two\n")
    at.wait_for("got")

    assert at.code() == 0
    assert (latest(world).sandbox / "after").exists()


def test_ctrl_z_stops_both_and_the_shell_goes_on(world: World) -> None:
    """In a shell that has jobs, as people have it."""
    line = f"{COMMAND} run --keep -- sh -c 'echo ready; read x; echo got $x > z; echo saw $x'"
    at = Terminal(world, "bash", "--norc", "-i", PS1="shell> ")
    at.wait_for("shell> ")
    at.type(line + "\n")
    at.wait_for("ready\r\n")
    at.type("\x1a")
    at.wait_for("Stopped")
    at.type("echo in the $((40 + 2))\n")
    at.wait_for("in the 42")
    at.type("fg\n")
    time.sleep(0.5)
    at.type("more\n")
    at.wait_for("saw more")
    at.wait_for("not applied")
    at.type("exit\n")

    at.code()
    assert (latest(world).sandbox / "z").read_text() == "got more\n"


def test_a_program_that_dies_in_the_middle_of_its_screen_leaves_none_of_it(
    world: World, screen: list[str]
) -> None:
    at = Terminal.of(world, "run", "--keep", "--", *screen)
    at.wait_for("size 100x30")
    at.type("x")

    assert at.code() == 1
    assert at.is_as_before
    for undone in ("\x1b[?1049l", "\x1b[?25h", "\x1b[?2004l"):
        assert at.drawn.count(undone) == 1


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_polite_kill_gives_the_terminal_back(
    world: World, screen: list[str], number: signal.Signals
) -> None:
    at = Terminal.of(world, "run", "--", *screen)
    at.wait_for("size 100x30")
    at.process.send_signal(number)

    assert at.code() == 130
    assert at.is_as_before
    assert "\x1b[?1049l" in at.drawn


def test_it_is_asked_once_what_is_to_become_of_it(world: World) -> None:
    at = Terminal.of(world, "run", "--", "sh", "-c", "echo 1 > a.txt")
    at.wait_for("apply it (a)")
    at.type("a\n")

    assert at.code() == 0
    assert (world.project.path / "a.txt").exists()


def test_one_can_go_back_at_the_end_and_apply_what_is_left(world: World) -> None:
    script = "echo 1 > good; sleep 5; echo 1 > bad"
    at = Terminal.of(world, "run", "--", "sh", "-c", script)
    at.wait_for("apply it (a)")
    at.type("g\n")
    at.wait_for("go back to which")
    at.type("no such\n")
    at.wait_for("apply it (a)")
    at.type("g\n")
    at.wait_for("go back to which")
    at.type("1\n")
    at.wait_for("apply it (a)")
    at.type("a\n")

    assert at.code() == 0
    assert (world.project.path / "good").exists()
    assert not (world.project.path / "bad").exists()


def test_an_answer_that_is_none_is_asked_again(world: World) -> None:
    at = Terminal.of(world, "run", "--", "sh", "-c", "echo 1 > a.txt")
    at.wait_for("apply it (a)")
    at.type("x\n")
    at.wait_for("one of a, k, p, g, d")
    at.type("g\n")
    at.wait_for("go back to which")
    at.type("\n")
    at.type("k\n")

    assert at.code() == 0
    assert not (world.project.path / "a.txt").exists()
    assert [file["path"] for file in world.agents("diff").ok().data["files"]] == ["a.txt"]


def test_it_can_be_discarded_or_kept(world: World) -> None:
    at = Terminal.of(world, "run", "--", "sh", "-c", "echo 1 > a.txt")
    at.wait_for("apply it (a)")
    at.type("d\n")
    assert at.code() == 0
    assert latest(world).status["state"] == "cancelled"

    at = Terminal.of(world, "run", "--", "sh", "-c", "echo 1 > a.txt")
    at.wait_for("apply it (a)")
    at.type("p\n")
    at.wait_for("a.txt")
    at.wait_for("apply it (a)")
    at.type("\x04")
    assert at.code() == 0
    assert latest(world).status["state"] == "complete"
    assert not (world.project.path / "a.txt").exists()


def test_ctrl_c_at_the_question_keeps_it(world: World) -> None:
    at = Terminal.of(world, "run", "--", "sh", "-c", "echo 1 > a.txt")
    at.wait_for("apply it (a)")
    at.type("\x03")

    assert at.code() == 130
    assert latest(world).status["state"] == "complete"


def test_nothing_is_asked_where_nothing_changed(world: World) -> None:
    at = Terminal.of(world, "run", "--", "true")

    assert at.code() == 0
    assert "apply it" not in at.drawn


def test_nothing_of_ours_is_drawn_while_the_program_runs(world: World) -> None:
    script = "echo begin; echo 1 > a; sleep 5; echo 2 > b; echo end"
    at = Terminal.of(world, "run", "--keep", "--", "sh", "-c", script)

    assert at.code() == 0
    between = at.drawn.partition("begin")[2].partition("end")[0]
    assert between.strip() == ""


def test_a_rollback_is_refused_while_it_runs_and_stops_it_if_told_to(world: World) -> None:
    running = subprocess.Popen(
        [COMMAND, "run", "--", "sh", "-c", "echo 1 > a; sleep 4; echo 2 > b; sleep 60"],
        cwd=world.project.path,
        env=world.agents.environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    deadline = time.monotonic() + 30
    while not (found := world.agents("plan", "list").data["plans"]) or (
        len(PlanHandle(world.agents, found[0]["plan_id"]).groups) < 2
    ):
        assert time.monotonic() < deadline
        time.sleep(0.2)
    plan = PlanHandle(world.agents, found[0]["plan_id"])

    refused = plan.rollback("0")
    assert refused.error["code"] == "plan-locked"
    assert "--now" in refused.error["hint"]
    assert running.poll() is None

    world.agents("plan", "rollback", "--yes", "--now", plan.id, "0").ok()

    assert running.wait(30) == 130
    assert not (plan.sandbox / "a").exists()
