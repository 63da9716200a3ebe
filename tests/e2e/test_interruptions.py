"""Ctrl-C, a polite kill and a hard one: nothing half-done is kept, and nothing is done twice."""

import os
import signal
import sqlite3
import subprocess
import time
from contextlib import closing, suppress
from pathlib import Path

import pytest
from tests.support.interrupted import Slow, ended, slow
from tests.support.terminals import asking
from tests.support.trees import tree_of
from tests.support.world import World, shell, wait_for, write

__all__ = ["slow"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_plan_undoes_the_running_step_and_can_go_on(
    slow: Slow, number: signal.Signals
) -> None:
    process = slow.start()
    process.send_signal(number)
    answer = ended(process)
    assert answer.code == 130
    assert answer.error["code"] == "interrupted"
    assert f"agents plan resume {slow.plan.id}" in answer.error["hint"]
    assert "Traceback" not in answer.err
    assert slow.plan.tree() == slow.before
    status = slow.plan.status
    assert (status["state"], status["last_completed_step"]) == ("queued", 0)
    slow.finish()


def test_an_interrupted_plan_can_be_rolled_back_at_once_because_its_lock_is_free(
    slow: Slow,
) -> None:
    process = slow.start()
    process.send_signal(signal.SIGINT)
    assert ended(process).code == 130
    slow.plan.rollback("start").ok()
    assert slow.plan.tree() == slow.start_tree
    slow.tally.unlink()
    slow.finish()


def test_nothing_that_an_interrupted_step_started_goes_on(world: World) -> None:
    marker, reached = world.beside / "survivor", world.beside / "reached"
    plan = world.use(shell(f"(sleep 1; touch {marker}) & touch {reached}; sleep 20", "fork"))
    process = world.agents.start("plan", "execute", plan.id)
    wait_for(reached.exists)
    process.send_signal(signal.SIGINT)
    assert process.wait(10) == 130
    time.sleep(1.2)
    assert not marker.exists()


def test_a_second_ctrl_c_does_not_leave_the_step_half_done(slow: Slow) -> None:
    process = slow.start()
    for _ in range(3):
        process.send_signal(signal.SIGINT)
        time.sleep(0.03)
    answer = ended(process)
    assert answer.code in (130, -signal.SIGINT)
    assert "Traceback" not in answer.err
    slow.finish()


def test_a_killed_plan_says_so_and_goes_on_from_the_step_boundary(slow: Slow) -> None:
    process = slow.start()
    process.kill()
    ended(process)
    end_orphans(slow)
    answer = slow.plan("status").ok()
    assert answer.data["state"] == "processing"
    assert answer.envelope["status"] == "warn"
    told = [text for text in answer.envelope["messages"] if "process" in text]
    assert f"agents plan resume {slow.plan.id}" in told[0]
    assert (slow.plan.sandbox / "second.txt").exists()
    slow.finish()


def test_plan_execute_goes_on_with_a_killed_plan_as_resume_does(slow: Slow) -> None:
    process = slow.start()
    process.kill()
    ended(process)
    end_orphans(slow)
    slow.gate.touch()
    answer = slow.world.agents.fork("plan", "execute", slow.plan.id).answer().ok()
    assert answer.data["state"] == "complete"
    assert (slow.plan.sandbox / "second.txt").read_text() == "half\n"


def test_what_a_killed_step_left_is_kept_in_a_group_before_it_is_undone(slow: Slow) -> None:
    process = slow.start()
    process.kill()
    ended(process)
    end_orphans(slow)
    left = slow.plan.tree()
    slow.finish()
    kept = [group for group in slow.plan.groups if group.reason == "before_rollback"]
    assert len(kept) == 1
    slow.plan.rollback(kept[0].group_id).ok()
    assert slow.plan.tree() == left


def test_a_killed_plan_can_be_rolled_back_without_resuming_it(slow: Slow) -> None:
    process = slow.start()
    process.kill()
    ended(process)
    end_orphans(slow)
    slow.plan.rollback("decision 2: slow").ok()
    assert slow.plan.tree() == slow.before
    slow.finish()


def test_a_step_that_outlives_its_killed_process_is_not_done_twice(slow: Slow) -> None:
    process = slow.start()
    process.kill()
    ended(process)
    # Its supervisor ends it; until then it may go on, and the gate would let it through.
    wait_for(lambda: not steps_of(slow.plan.id))
    slow.finish()
    time.sleep(0.2)
    assert slow.tally.read_text() == "1\n2\n"


def steps_of(plan_id: str) -> list[Path]:
    """Processes that carry the plan's mark."""
    found: list[Path] = []
    for place in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):
            found += [place] if plan_id.encode() in place.read_bytes() else []
    return found


def test_a_closed_terminal_is_an_interruption_too(slow: Slow) -> None:
    process = slow.start()
    process.send_signal(signal.SIGHUP)
    code = ended(process).code
    state, tree = slow.plan.status["state"], slow.plan.tree()
    end_orphans(slow)
    assert code in (129, 130)
    assert (state, tree) == ("queued", slow.before)


def test_a_killed_plan_can_be_cancelled(slow: Slow) -> None:
    process = slow.start()
    process.kill()
    ended(process)
    end_orphans(slow)
    assert slow.plan("cancel").ok().data["state"] == "cancelled"


def test_resume_says_where_it_would_go_on_and_changes_nothing(slow: Slow) -> None:
    process = slow.start()
    process.kill()
    ended(process)
    end_orphans(slow)
    before, records = slow.plan.tree(), slow.world.records()
    answer = slow.plan("resume", "--dry-run").ok()
    assert answer.data["next_step"] == 1
    assert slow.plan.tree() == before
    assert slow.world.records() == records


def test_ctrl_c_at_the_question_answers_with_an_envelope_too(world: World) -> None:
    plan = world.run(write("a", "1"))
    with asking(world, "plan", "rollback", plan.id, "start") as (process, terminal):
        shown = b""
        while b"?" not in shown:
            shown += os.read(terminal, 1024)
        time.sleep(0.5)  # between the question and the read, Python itself can miss a signal
        process.send_signal(signal.SIGINT)
        answer = ended(process)
    assert answer.code == 130
    assert (plan.sandbox / "a").exists()
    assert answer.envelope["exit_code"] == 130


def test_a_plan_killed_many_times_still_gives_the_right_tree(world: World) -> None:
    commands = [f"echo {index} >> f{index}; echo {index} >> all; sleep 0.05" for index in range(6)]
    trees = world.replay(commands)
    plan = world.use(*(shell(command, f"s{i}") for i, command in enumerate(commands)))
    for delay in (0.3, 0.35, 0.4, 0.45):
        process = world.agents.start("plan", "execute", plan.id)
        time.sleep(delay)
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        time.sleep(0.1)  # a step's own session is not ours to kill; it ends by itself
    world.agents.fork("plan", "execute", plan.id).answer().ok()
    assert plan.tree() == trees[-1]
    plan.rollback("start").ok()
    assert plan.tree() == trees[0]
    assert plan.status["last_completed_step"] == -1


def test_a_killed_rollback_is_finished_or_undone_by_the_next_command(world: World) -> None:
    command = "for i in $(seq 1 400); do echo $i > f$i; done"
    trees = world.replay([command])
    plan = world.run(shell(command, "many"))
    lock = world.agents.data_dir / "locks" / plan.id
    for pause in (0.0, 0.02, 0.05, 0.1):
        process = world.agents.start("plan", "rollback", "--yes", plan.id, "start")
        wait_until_it_works(process, lock)
        time.sleep(pause)
        process.kill()
        process.communicate()
        plan.execute().ok()
        assert tree_of(plan.sandbox) == trees[1]
        assert plan.status["state"] == "complete"


def wait_until_it_works(process: "subprocess.Popen[bytes]", lock: Path) -> None:
    wait_for(lambda: process.poll() is not None or bool(lock.read_bytes()))


def end_orphans(slow: Slow) -> None:
    """A hard kill leaves the step's shell running; end it, as a reboot would."""
    wanted = str(slow.reached).encode()
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if wanted in entry.read_bytes():
                os.kill(int(entry.parent.name), signal.SIGKILL)
        except (OSError, ValueError):
            continue


def test_resume_says_where_it_goes_on_and_does_not_repeat_what_is_done(world: World) -> None:
    cure, tally = world.top / "cure", world.beside / "tally"
    plan = world.use(
        shell(f"echo one >> {tally}", "one"), shell(f"test -e {cure}", "two"), write("c", "3")
    )
    assert plan.execute().code == 1
    shown = plan("resume", "--dry-run").ok()
    assert shown.data["next_step"] == 1
    assert "it would go on with step 2 of 3, two" in shown.envelope["messages"][0]
    cure.touch()
    answer = plan("resume").ok()
    assert "resumed: going on with step 2 of 3 (two); what came before is kept" in answer.err
    assert tally.read_text() == "one\n"
    assert "resumed" not in plan("resume").ok().err


def test_a_step_whose_result_stands_is_not_the_one_to_go_on_with(world: World) -> None:
    """As after a kill between a corrected step and the untouched ones that follow it."""
    plan = world.use(write("a", "1", "one"), write("b", "2", "two"), shell("test -e go", "three"))
    plan("execute")
    with closing(sqlite3.connect(world.agents.data_dir / "cleveragents.db")) as database:
        sql = "UPDATE plans SET last_completed_step = 0 WHERE plan_id = ?"
        database.execute(sql, (plan.id,))
        database.commit()
    assert plan("resume", "--dry-run").ok().data["next_step"] == 2
    (plan.sandbox / "go").touch()
    told = world.agents.inside("--format", "plain", "plan", "resume", plan.id)
    assert "three" in told.err
    assert "step 1" not in told.err
