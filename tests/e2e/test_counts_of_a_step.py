"""What one step and one rollback cost: transactions, captures and git processes, counted.

Counted is what a command does from its first line to its last. A transaction of the records is one
unit of work, whether it writes or only reads; what opening the file asks, its schema and the
name of the installation, belongs to none. A capture is one look at a sandbox, whether it finds
a change or not. A git process is one that is started, by us or by the shell that we hold inside.
"""

import shutil
import sqlite3
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from tests.support.world import PlanHandle, World, write

from cleveragents.infrastructure.snapshots.tree.engine import TreeEngine

RECORDS = "cleveragents.db"


@dataclass
class Counts:
    """`git` are the commands that were given to git, in their order."""

    transactions: int = 0
    writing: int = 0
    captures: int = 0
    git: list[str] = field(default_factory=list[str])


class Counter:
    """Counts in a world whose `git` writes down what it is asked, where confined steps may write
    too."""

    def __init__(self, world: World, patch: pytest.MonkeyPatch) -> None:
        self._counts = Counts()
        self._commands = world.beside / "git-commands"
        self._commands.touch()
        world.agents.environ["PATH"] = f"{self._git(world)}:{world.agents.environ['PATH']}"
        patch.setattr(sqlite3, "connect", self._traced(sqlite3.connect))

    @contextmanager
    def counting(self) -> Generator[Counts]:
        counts = self._counts = Counts()
        before = len(self._asked())
        sys.setprofile(self._called)
        try:
            yield counts
        finally:
            sys.setprofile(None)
            self._counts = Counts()  # what comes after is not part of it
        counts.git += self._asked()[before:]

    def _git(self, world: World) -> Path:
        folder = world.top / "bin"
        folder.mkdir()
        git = folder / "git"
        real = shutil.which("git")
        git.write_text(f'#!/bin/sh\necho "$@" >> {self._commands}\nexec {real} "$@"\n')
        git.chmod(0o755)
        return folder

    def _asked(self) -> list[str]:
        return self._commands.read_text().splitlines()

    def _traced(self, connect: Callable[..., sqlite3.Connection]) -> Callable[..., Any]:
        def traced(path: str, *args: Any, **options: Any) -> sqlite3.Connection:
            connection = connect(path, *args, **options)
            if Path(path).name == RECORDS:
                connection.set_trace_callback(self._statements())
            return connection

        return traced

    def _statements(self) -> Callable[[str], None]:
        """For one connection."""
        is_begun = False

        def hear(statement: str) -> None:
            # After a commit another one is begun, for what may follow in the same block; it counts
            # only if something does.
            nonlocal is_begun
            if statement == "BEGIN IMMEDIATE":
                self._counts.transactions += 1
                self._counts.writing += 1
            elif is_begun and statement not in ("COMMIT", "ROLLBACK"):
                self._counts.transactions += 1
            is_begun = statement == "BEGIN"

        return hear

    def _called(self, frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code is TreeEngine.capture.__code__:
            self._counts.captures += 1


@pytest.fixture
def counter(world: World, monkeypatch: pytest.MonkeyPatch) -> Counter:
    return Counter(world, monkeypatch)


def test_one_step_of_a_new_plan_costs_what_is_promised(world: World, counter: Counter) -> None:
    plan = world.use(write("one.txt", "1"))
    with counter.counting() as cost:
        plan.execute().ok()
    assert plan.status["state"] == "complete"
    assert 0 < cost.writing <= cost.transactions <= 10
    assert 0 < cost.captures <= 3
    # Three make the sandbox, and one asks which folders are ignored and become layers (ADR 0084).
    assert 0 < len(cost.git) <= 4, cost.git


def test_each_further_step_costs_two_transactions_and_one_capture(
    world: World, counter: Counter
) -> None:
    one, five = _cost_of(world, counter, 1), _cost_of(world, counter, 5)
    assert five.transactions - one.transactions == 4 * 2
    assert five.captures - one.captures == 4
    assert len(five.git) == len(one.git)


def test_a_rollback_costs_what_is_promised(world: World, counter: Counter) -> None:
    plan = world.run(write("one.txt", "1"))
    first = plan.groups[0]
    with counter.counting() as cost:
        plan.rollback(first.group_id).ok()
    assert not (plan.sandbox / "one.txt").exists()
    assert 0 < cost.writing <= cost.transactions <= 8
    assert 0 < cost.captures <= 1
    assert cost.git == []


def _cost_of(world: World, counter: Counter, steps: int) -> Counts:
    plan: PlanHandle = world.use(*(write(f"{n}.txt", str(n), name=f"s{n}") for n in range(steps)))
    with counter.counting() as cost:
        plan.execute().ok()
    return cost
