"""Owners that were taken for dead and come back: they write nothing, say so, and stop."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import pytest
from tests.support.agents import Answer
from tests.support.children import child, spawn
from tests.support.refusals import refused
from tests.support.terminals import asking
from tests.support.world import World, shell, wait_for, write


class Locks:
    """The lock files of a world, while their owner is suspended."""

    def __init__(self, world: World) -> None:
        self._folder = world.agents.data_dir / "locks"
        self._kept = world.top / "kept locks"
        self._kept.mkdir(exist_ok=True)

    def make_far(self) -> None:
        """As if their owner were on another machine, and had not been heard of for long."""
        for file in self._held():
            record = json.loads(file.read_text())
            record |= {"host": "elsewhere", "boot": "another", "space": "another"}
            file.write_text(json.dumps(record).ljust(511) + "\n")
            long_ago = time.time() - 3600
            os.utime(file, (long_ago, long_ago))

    def keep(self) -> None:
        for file in self._held():
            os.link(file, self._kept / file.name)
            (self._kept / f"{file.name}.text").write_bytes(file.read_bytes())

    def put_back(self) -> None:
        """What a machine sees that has not heard yet what another one did to a shared folder."""
        for text in self._kept.glob("*.text"):
            kept = text.with_suffix("")
            kept.write_bytes(text.read_bytes())
            Path(kept).replace(self._folder / kept.name)

    def _held(self) -> list[Path]:
        found = [file for file in self._folder.iterdir() if not file.name.startswith(".")]
        return [file for file in found if file.stat().st_size]


@contextmanager
def suspended(pid: int) -> Generator[None]:
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def finished(process: "subprocess.Popen[bytes]") -> Answer:
    out, err = process.communicate(timeout=60)
    return Answer(argv=(), code=process.returncode, out=out.decode(), err=(err or b"").decode())


def quiet(answer: Answer) -> Answer:
    """Without the lines of progress that came before the end."""
    return Answer(argv=answer.argv, code=answer.code, out=answer.out, err="")


class Busy:
    """A plan, and the process that is in the middle of its second step."""

    def __init__(self, world: World, **keys: Any) -> None:
        self.tally, self.gate = world.beside / "tally", world.beside / "gate"
        slow = f"echo x >> {self.tally}; touch half; until test -e {self.gate}; do sleep 0.05; done"
        steps = write("a", "1", "one"), shell(f"{slow}; rm half; touch done", "slow")
        self.plan = world.use(*steps, **keys)
        self._world = world
        self.process = self.execute(1)

    def execute(self, times: int) -> "subprocess.Popen[bytes]":
        """The step has begun for so many times when this returns."""
        process = self._world.agents.start("--format", "json", "plan", "execute", self.plan.id)
        wait_for(lambda: self.tally.exists() and len(self.tally.read_text()) == 2 * times)
        wait_for(lambda: (self.plan.sandbox / "half").exists())
        return process

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.process.kill()
        self.process.communicate()


@pytest.fixture
def busy(world: World) -> Generator[Busy]:
    with Busy(world) as busy:
        yield busy


def test_an_owner_that_does_not_know_that_it_was_overtaken_is_refused_at_its_next_write(
    world: World, busy: Busy
) -> None:
    plan, locks = busy.plan, Locks(world)
    with suspended(busy.process.pid):
        locks.keep()
        locks.make_far()
        plan.rollback("start").ok()
        user, files, records = world.project.fingerprint(), plan.tree(), world.records()
        locks.put_back()
    told = finished(busy.process)

    assert "was taken over by another process" in refused(quiet(told), "plan-overtaken")
    assert f"agents plan status {plan.id}" in told.error["hint"]
    assert (world.records(), plan.tree()) == (records, files)
    assert world.project.fingerprint() == user
    busy.gate.touch()
    plan.execute().ok()
    assert (plan.sandbox / "done").exists()


def test_an_owner_that_finds_another_name_in_its_lock_writes_nothing_either(
    world: World, busy: Busy
) -> None:
    """Its next sign of life and its next write race for telling it; both end it."""
    plan, locks = busy.plan, Locks(world)
    with suspended(busy.process.pid):
        locks.make_far()
        plan.rollback("start").ok()
        files, records = plan.tree(), world.records()
    told = finished(busy.process)

    assert told.code == 1
    assert "taken over" in told.out + told.err
    assert (world.records(), plan.tree()) == (records, files)


@pytest.mark.parametrize("enabled", [True, False])
def test_an_owner_that_was_overtaken_undoes_nothing_on_ctrl_c(
    world: World, *, enabled: bool
) -> None:
    """It would undo the work of whoever goes on with the plan; without checkpoints no record of
    what it finds comes before that."""
    with Busy(world, rollback_policy={"enabled": enabled}) as busy:
        plan, locks = busy.plan, Locks(world)
        with suspended(busy.process.pid):
            locks.keep()
            locks.make_far()
            following = busy.execute(2)
            locks.put_back()
            busy.process.send_signal(signal.SIGINT)
        refused(quiet(finished(busy.process)), "plan-overtaken")

        assert (plan.sandbox / "half").exists()
        busy.gate.touch()
        assert finished(following).code == 0
        assert (plan.sandbox / "done").exists()


@pytest.mark.parametrize("command", ["apply", "rollback"])
def test_an_answer_that_comes_too_late_changes_nothing(world: World, command: str) -> None:
    plan = world.use(write("a", "1", "one"), write("b", "1", "two"))
    plan.execute().ok()
    locks = Locks(world)
    words = ("plan", command, plan.id, *(["start"] if command == "rollback" else []))
    with asking(world, *words) as (process, terminal):
        question = b""
        while b"[y/N]" not in question:
            question += os.read(terminal, 65536)
        with suspended(process.pid):
            locks.keep()
            locks.make_far()
            plan("checkpoint", "create", "--label", "theirs").ok()
            user, files, records = world.project.fingerprint(), plan.tree(), world.records()
            locks.put_back()
        os.write(terminal, b"y\n")
        told = finished(process)

    refused(quiet(told), "plan-overtaken")
    assert (world.records(), plan.tree()) == (records, files)
    assert world.project.fingerprint() == user


def test_the_children_of_a_plan_that_was_overtaken_write_nothing_either(world: World) -> None:
    gate = world.beside / "gate"
    wait = f"touch half; until test -e {gate}; do sleep 0.05; done"
    plan = world.use(write("a", "1"), spawn(child("one", wait), child("two", wait)))
    running = world.agents.start("--format", "json", "plan", "execute", plan.id)
    locks = Locks(world)

    def both_work() -> bool:
        sandboxes = (world.agents.data_dir / "sandboxes").glob("*/code/half")
        return len(list(sandboxes)) == 2

    wait_for(both_work)
    with suspended(running.pid):
        locks.keep()
        locks.make_far()
        plan.rollback("start").ok()
        files, records = plan.tree(), world.metadata()
        locks.put_back()
        gate.touch()
    told = finished(running)

    refused(quiet(told), "plan-overtaken")
    assert (world.metadata(), plan.tree()) == (records, files)
