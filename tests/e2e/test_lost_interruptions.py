"""Ctrl-C is never lost: not where Python drops exceptions, not while something hangs, not twice."""

import os
import signal
import sqlite3
import subprocess
import time
from contextlib import closing
from pathlib import Path

import pytest
from tests.support.interrupted import Slow, ended, slow
from tests.support.world import World, shell, wait_for

__all__ = ["slow"]

# In each of these Python, or a library, drops whatever exception comes up.
SWALLOWED = {
    "an object taken down": "class It:\n __del__ = lambda _: wait()\nIt()",
    "a process forked": (
        "import os\nos.register_at_fork(before=wait)\n"
        "child = os.fork()\nif not child: os._exit(0)\nos.waitpid(child, 0)"
    ),
    "a call from a C library": "import ctypes\nctypes.CFUNCTYPE(None)(wait)()",
    "a call from SQLite": (
        "import sqlite3\nc = sqlite3.connect(':memory:')\nc.create_function('f', 0, wait)\n"
        "try: c.execute('select f()').fetchone()\nexcept sqlite3.OperationalError: pass"
    ),
    "code that catches all": "try: wait()\nexcept BaseException: pass",
}
# Runs the trap in the main thread while the command works, as that module is imported then.
AT_IMPORT = """
import sys, time
class Trap:
    def find_spec(self, name, *_):
        if name == "cleveragents.application.services.execute.plan_executor" and not self.sprung:
            self.sprung = True
            exec(TRAP, dict(wait=self.wait))
    sprung = waited = False
    def wait(self):
        if not self.waited:
            self.waited = True
            open(REACHED, "w").close()
            time.sleep(5)
sys.meta_path.insert(0, Trap())
"""
NEVER_DONE = "import threading, time\nthreading.Thread(target=time.sleep, args=(30,)).start()\n"


def started(slow: Slow, program: str) -> "subprocess.Popen[bytes]":
    """The plan executes in an interpreter that has run this program first."""
    folder = slow.world.top / "customized"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(program)
    agents = slow.world.agents.having(PYTHONPATH=str(folder))
    return agents.start("--format", "json", "plan", "execute", slow.plan.id)


def trapped(slow: Slow, trap: str) -> "subprocess.Popen[bytes]":
    """Just when the main thread is where an exception gets lost."""
    reached = slow.world.top / "trapped"
    process = started(slow, f"TRAP = {trap!r}\nREACHED = {str(reached)!r}\n{AT_IMPORT}")
    wait_for(reached.exists)
    return process


@pytest.mark.parametrize("trap", SWALLOWED.values(), ids=SWALLOWED.keys())
def test_one_ctrl_c_is_felt_although_python_dropped_it(slow: Slow, trap: str) -> None:
    process = trapped(slow, trap)
    process.send_signal(signal.SIGINT)
    answer = ended(process)
    assert answer.code == 130, answer.out
    assert answer.error["code"] in ("interrupted", "command-interrupted")  # it had just begun
    # It is felt a moment later, when the first step may have begun: then that is undone.
    assert all(line.startswith("recovered: ") for line in answer.err.strip().splitlines())
    assert slow.plan.status["state"] == "queued"
    slow.finish()


def test_a_polite_kill_ends_a_plan_whose_ctrl_c_was_dropped(slow: Slow) -> None:
    process = trapped(slow, SWALLOWED["an object taken down"])
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGTERM)
    assert ended(process).code == 130
    slow.finish()


@pytest.mark.parametrize("second", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_second_one_ends_a_plan_that_cannot_undo_its_step(
    slow: Slow, second: signal.Signals
) -> None:
    """As another process keeps the database, and waiting for it is done by a library."""
    process = slow.start()
    path = slow.world.agents.data_dir / "cleveragents.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        process.send_signal(signal.SIGINT)
        time.sleep(1)
        assert process.poll() is None
        process.send_signal(second)
        begun = time.monotonic()
        answer = ended(process)
        assert time.monotonic() - begun < 15
        other.execute("ROLLBACK")
    assert answer.code == 130, answer.out
    assert "interrupted again" in answer.err
    assert "Traceback" not in answer.err
    slow.finish()


def test_a_second_one_leaves_the_undoing_a_moment_to_end_in_order(slow: Slow) -> None:
    process = slow.start()
    process.send_signal(signal.SIGINT)
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    answer = ended(process)
    assert (answer.code, answer.error["code"]) == (130, "interrupted")
    assert slow.plan.tree() == slow.before
    assert slow.plan.status["state"] == "queued"


def test_nothing_of_the_step_goes_on_after_a_second_one(world: World) -> None:
    """A step that cannot be ended politely is ended all the same."""
    alive, reached = world.beside / "alive", world.beside / "reached"
    deaf = "trap '' TERM INT HUP; while :; do touch {}; sleep 0.05; done"
    plan = world.use(shell(f"touch {reached}; {deaf.format(alive)}", "deaf"))
    process = world.agents.start("plan", "execute", plan.id)
    wait_for(reached.exists)
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGTERM)
    assert ended(process).code == 130
    wait_for(lambda: is_quiet(alive), 10)


def test_a_command_that_is_done_and_does_not_end_can_be_interrupted(slow: Slow) -> None:
    """All is said by then, so its exit code stands."""
    slow.gate.touch()
    process = started(slow, NEVER_DONE)
    assert process.stdout is not None
    said = b""
    while not said.endswith(b"}\n"):
        said += os.read(process.stdout.fileno(), 65536)
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    assert process.wait(10) == 0
    process.communicate()


def is_quiet(file: Path) -> bool:
    before = file.stat().st_mtime_ns
    time.sleep(0.5)
    return file.stat().st_mtime_ns == before
