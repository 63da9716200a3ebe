"""An interruption at any stage, and a database in use: whole steps only, and nothing is lost."""

import os
import signal
import sqlite3
import time
from contextlib import closing

import pytest
from tests.support.interrupted import Slow, ended, slow
from tests.support.world import World, shell, write

from cleveragents.infrastructure.database import engine

__all__ = ["slow"]


# --- at each stage of a step --------------------------------------------------------------------


STAGES = {
    "making the sandbox": "sandbox: creating",
    "the start": "(start)",
    "the decision": "(decision 1:",
    "the step begins": "step 1:",
    "before the call": "(before shell second)",
    "after the call": "(after shell second)",
    "the step is done": "step 1: done",
    "the last step is done": "step 2: done",
}


@pytest.mark.parametrize("stage", STAGES.values(), ids=STAGES.keys())
def test_an_interruption_at_any_stage_leaves_whole_steps_only(world: World, stage: str) -> None:
    """By Ctrl-C; that other signals are heeded in the same way is shown above."""
    commands = ["echo 1 >> a", "echo 2 >> a; echo 2 > b", "rm b; echo 3 >> a"]
    trees = world.replay(commands)
    names = ["first", "second", "third"]
    plan = world.use(*(shell(c, n) for c, n in zip(commands, names, strict=True)))
    process = world.agents.start("-v", "--format", "json", "plan", "execute", plan.id)
    assert process.stderr is not None
    for line in process.stderr:
        if stage in line.decode():
            break
    # As a terminal does: everything in the foreground gets it.
    os.killpg(process.pid, signal.SIGINT)
    answer = ended(process)
    assert "Traceback" not in answer.err
    status = plan.status
    if answer.code == 130:
        # After the last step there is no plan to interrupt any more, only the command.
        after_all = status["last_completed_step"] == 2
        codes = {"interrupted", "command-interrupted"} if after_all else {"interrupted"}
        assert answer.error["code"] in codes
        assert status["state"] == "queued" or after_all
    else:
        assert (answer.code, status["state"]) == (0, "complete"), answer
    if status["sandboxes"][0]["status"] == "ready":
        assert plan.tree() == trees[status["last_completed_step"] + 1]
    world.agents("plan", "checkpoint", "list", plan.id).ok()
    plan("resume").ok()
    assert plan.tree() == trees[-1]
    assert plan.status["execution"]["tool_calls"] == 3
    plan("checkpoint", "verify").ok()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["ctrl-c", "sigterm"])
def test_an_interrupted_rollback_is_finished_or_has_never_happened(
    world: World, number: signal.Signals
) -> None:
    command = "for i in $(seq 1 400); do echo $i > f$i; done"
    trees = world.replay([command])
    plan = world.run(shell(command, "many"))
    process = world.agents.start(
        "-v", "--format", "json", "plan", "rollback", "-y", plan.id, "start"
    )
    assert process.stderr is not None
    process.stderr.readline()  # the safety group is stored, so the intent is, too
    process.send_signal(number)
    answer = ended(process)
    assert answer.code in (0, 130)
    assert "Traceback" not in answer.err
    world.agents("plan", "checkpoint", "create", "--label", "x", plan.id).ok()
    assert plan.tree() == trees[0]


# --- a database that somebody else keeps locked -------------------------------------------------


def locked(world: World) -> "sqlite3.Connection":
    other = sqlite3.connect(world.agents.data_dir / "cleveragents.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    return other


def test_a_database_locked_for_ten_seconds_is_waited_for(slow: Slow) -> None:
    process = slow.start()
    with closing(locked(slow.world)) as other:
        slow.gate.touch()
        time.sleep(10)
        assert process.poll() is None
        other.execute("ROLLBACK")
    answer = ended(process)
    assert (answer.code, answer.data["state"]) == (0, "complete")
    assert slow.tally.read_text() == "1\n2\n"


def test_a_database_locked_for_too_long_is_a_clear_error_and_nothing_is_lost(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "BUSY_SECONDS", 0.2)
    plan = world.use(write("a", "1"), write("b", "2"))
    with closing(locked(world)):
        answer = plan.execute()
        assert (answer.code, answer.error["code"]) == (1, "database-busy")
        assert "nothing was lost" in answer.error["hint"]
        assert plan.status["last_completed_step"] == -1
        assert plan.rollback("start").error["code"] in ("database-busy", "checkpoint-not-found")
    plan.execute().ok()
    with closing(locked(world)):
        assert plan.rollback("start").error["code"] == "database-busy"
        assert (plan.sandbox / "b").read_text() == "2"
    plan.rollback("start").ok()
    assert not (plan.sandbox / "a").exists()
