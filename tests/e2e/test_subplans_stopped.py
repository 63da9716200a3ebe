"""Child plans that are cancelled, interrupted or run elsewhere: each is stopped first, or named."""

import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.support.agents import Answer
from tests.support.children import child, run, spawn, text
from tests.support.refusals import refused
from tests.support.world import PlanHandle, World, shell, wait_for

from cleveragents.domain.ids import PlanId
from cleveragents.infrastructure.clock import SystemClock
from cleveragents.infrastructure.database.fence import HeldLeases
from cleveragents.infrastructure.locks.plan_locks import FilePlanLocks


def test_cancelling_the_parent_cancels_the_children(world: World) -> None:
    plan = run(world, child("a", "echo a > a.txt"), child("b", "echo b > b.txt; false"))
    kept = plan("cancel").ok().data["sandboxes_kept"]
    assert {c["name"]: c["state"] for c in plan.status["children"]} == {
        "a": "complete",
        "b": "cancelled",
    }
    assert sorted(kept) == ["code", "demo/b code"]
    assert (Path(kept["demo/b code"]) / "b.txt").exists()
    child_id = next(c["plan_id"] for c in plan.status["children"] if c["name"] == "b")
    assert PlanHandle(world.agents, child_id)("execute").error["code"] == "plan-cancelled"


class Waiting:
    """Three children of which two stand until `gate` is there; each leaves a tally."""

    def __init__(self, world: World, top: Path) -> None:
        self.gate, self.tally = top / "gate", top / "tally"
        self.reached = [top / "reached-a", top / "reached-b"]
        self.world = world

        def slow(name: str, reached: Path) -> dict[str, Any]:
            wait = f"touch {reached}; while ! test -e {self.gate}; do sleep 0.05; done"
            done = f"echo {name} >> {self.tally}"
            return child(name, f"echo half > {name}.txt; {wait}; {done}; echo whole > {name}.txt")

        self.plan = world.use(
            shell("echo base > t.txt", "base"),
            spawn(
                child("quick", f"echo quick >> {self.tally}; echo q > q.txt"),
                slow("a", self.reached[0]),
                slow("b", self.reached[1]),
            ),
        )

    def start(self) -> "subprocess.Popen[bytes]":
        process = self.world.agents.start("--format", "json", "plan", "execute", self.plan.id)
        wait_for(lambda: all(path.exists() for path in self.reached))
        # Recorded, not only done: a step that is killed in between is rightly done again.
        wait_for(lambda: self.states().get("quick") == "complete")
        return process

    def states(self) -> dict[str, str]:
        return {c["name"]: c["state"] for c in self.plan.status["children"]}

    def finish(self) -> None:
        self.gate.touch()
        self.plan("resume").ok()
        assert sorted(self.tally.read_text().split()) == ["a", "b", "quick"]
        assert [text(self.plan, f"{name}.txt") for name in "qab"] == ["q\n", "whole\n", "whole\n"]
        assert {c["outcome"] for c in self.plan.status["children"]} == {"merged"}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_an_interrupted_parent_goes_on_with_its_children(
    world: World, number: signal.Signals
) -> None:
    waiting = Waiting(world, world.beside)
    process = waiting.start()
    process.send_signal(number)
    process.communicate(timeout=60)
    if number is not signal.SIGKILL:
        assert process.returncode == 130
        assert waiting.states() == {"quick": "complete", "a": "queued", "b": "queued"}
    waiting.finish()


def test_cancelling_a_plan_that_runs_elsewhere_stops_it_there(world: World) -> None:
    waiting = Waiting(world, world.beside)
    process = waiting.start()
    waiting.plan("cancel").ok()
    process.communicate(timeout=60)
    assert process.returncode == 130
    assert waiting.plan.status["state"] == "cancelled"
    states = {c["name"]: c["state"] for c in waiting.plan.status["children"]}
    assert states == {"quick": "cancelled", "a": "cancelled", "b": "cancelled"}
    assert waiting.tally.read_text() == "quick\n"


class Loose:
    """A child that another process goes on with, while nobody works on its parent."""

    def __init__(self, world: World, top: Path) -> None:
        self.waiting = Waiting(world, top)
        parent = self.waiting.start()
        parent.send_signal(signal.SIGINT)
        parent.communicate(timeout=60)
        self.plan = self.waiting.plan
        children = self.plan.status["children"]
        self.child = PlanHandle(
            world.agents, next(c["plan_id"] for c in children if c["name"] == "a")
        )
        self.waiting.reached[0].unlink()

    def start(self) -> "subprocess.Popen[bytes]":
        world = self.waiting.world
        process = world.agents.start("--format", "json", "plan", "execute", self.child.id)
        wait_for(self.waiting.reached[0].exists)
        return process

    def revert(self, how: str) -> Answer:
        if how == "rollback":
            return self.plan.rollback("start")
        if how == "cancel":
            return self.plan("cancel")
        spawned = next(c["decision_id"] for c in self.plan.status["children"])
        mode = ("--mode", "revert", "--guidance", "other", "--yes", "--no-execute")
        return self.plan.agents("plan", "correct", *mode, spawned)


@pytest.mark.parametrize("how", ["rollback", "correct", "cancel"])
def test_a_child_that_runs_by_itself_elsewhere_is_stopped_first(world: World, how: str) -> None:
    loose = Loose(world, world.beside)
    process = loose.start()
    loose.revert(how).ok()
    process.communicate(timeout=60)
    assert process.returncode == 130
    loose.waiting.gate.touch()
    assert loose.child("execute").error["code"] in ("child-settled", "plan-cancelled")
    assert loose.waiting.tally.read_text() == "quick\n"


@pytest.mark.parametrize("how", ["rollback", "correct", "cancel"])
def test_a_child_that_cannot_be_stopped_is_named_with_its_owner_and_nothing_changes(
    world: World, how: str
) -> None:
    loose = Loose(world, world.beside)
    locks = FilePlanLocks(str(world.agents.data_dir / "locks"), SystemClock(), HeldLeases())
    before = world.records()
    with locks.hold(PlanId(loose.child.id), "checkpoint create"):
        told = refused(loose.revert(how), "plan-locked", 1)
    assert loose.child.id in told
    assert "`plan checkpoint create`" in told
    assert world.records() == before
