"""Whoever waits for more than a second is told for what: on a terminal, and sparsely in a pipe."""

import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.support.containers import Noted
from tests.support.terminals import on_a_terminal
from tests.support.world import PlanHandle, World, shell, write

from cleveragents.config import load_settings
from cleveragents.container import Container
from cleveragents.domain.apply import ApplyOptions
from cleveragents.domain.events import Working
from cleveragents.domain.ids import PlanId

ROW = {"name": "row", "tool": "sql.execute",
       "with": {"resource": "db", "sql": "insert into t values (1)"}}  # fmt: skip


@pytest.fixture
def database(world: World) -> Path:
    path = world.top / "app.db"
    with closing(sqlite3.connect(path)) as made:
        made.executescript("create table t (id integer)")
    return path


@contextmanager
def in_use_for(seconds: float, path: Path) -> Iterator[None]:
    """Somebody writes to the user's database, so that an apply has to wait for them."""
    user = sqlite3.connect(path, check_same_thread=False)
    user.execute("begin exclusive")
    letting_go = threading.Timer(seconds, user.close)
    letting_go.start()
    yield
    letting_go.join()


def test_an_apply_that_has_to_wait_says_so_on_a_terminal(world: World, database: Path) -> None:
    plan = world.run(ROW, resources={"db": {"type": "sqlite", "path": str(database)}})
    with in_use_for(2, database):
        code, drawn = on_a_terminal(world, "plan", "apply", "-y", plan.id)
    assert code == 0
    before, _, after = drawn.rpartition("\r\x1b[K")  # the line is gone before the answer comes
    assert "⠋ comparing `db` with the project … 1 s" in before
    assert "comparing" not in after
    assert "Apply complete" in after


def test_in_a_pipe_it_is_a_line_and_programs_hear_nothing(world: World, database: Path) -> None:
    said: dict[str, str] = {}
    for format in ("plain", "json"):
        plan = world.run(ROW, resources={"db": {"type": "sqlite", "path": str(database)}})
        with in_use_for(4, database):
            answer = world.agents.process("--format", format, "plan", "apply", "-y", plan.id).ok()
        said[format] = answer.err
    assert said == {"plain": "working: comparing `db` with the project, 3 s\n", "json": ""}


def container(world: World) -> tuple[Container, Noted]:
    environ = world.agents.environ
    at = str(world.project.path)
    loaded = load_settings(environ, home=str(world.home), cwd=at, flags={}, config_path=None)
    noted = Noted()
    return Container(loaded.settings, environ, at, noted), noted


def _apply(made: Container, plan: PlanId) -> object:
    return made.apply_service.apply(plan, ApplyOptions(message="all of it"), lambda _: True)


def _prune(made: Container, _: PlanId) -> object:
    service = made.prune_service
    return service.prune(service.look(timedelta(), unapplied=True), lambda _: True)


Work = Callable[[Container, PlanId], object]
LONG: dict[str, tuple[Work, list[str]]] = {
    "apply": (_apply, ["comparing `code` with the project", "bringing `code` into the project",
                       "writing to the disk", "removing the sandbox of `code`"]),
    "diff": (lambda made, plan: made.plan_diff_service.diff(plan), ["comparing `code`"]),
    "discard": (lambda made, plan: made.discarding.discard(plan, lambda _: True),
                ["comparing `code`", "removing the sandbox of `code`", "removing snapshots"]),
    "rollback": (lambda made, plan: made.rollback_service.rollback(plan, "0", lambda _: True),
                 ["restoring `code`"]),
    "rollback, preview": (lambda made, plan: made.rollback_service.preview(plan, "0"),
                          ["comparing `code`"]),
    "verify": (lambda made, plan: made.checkpoint_service.damages(
        made.checkpoint_service.list_checkpoints(plan)), ["verifying the checkpoints of `code`"]),
    "store status": (lambda made, _: made.store_service.status(),
                     ["measuring snapshots and sandboxes"]),
    "store verify": (lambda made, _: made.store_service.verify(), ["verifying demo-1"]),
    "prune": (_prune, ["looking at what plans hold", "removing demo-1"]),
    "checkpoint prune": (lambda made, plan: made.manual_checkpoints.prune(plan),
                         ["freeing what no checkpoint of `code` needs"]),
    "rollback, only": (
        lambda made, plan: made.rollback_service.rollback(plan, "0", lambda _: True, ["a.txt"]),
        ["restoring `code`"]),
    "doctor": (lambda made, _: made.doctor_service.examine({}), ["verifying demo-1"]),
}  # fmt: skip


@pytest.mark.parametrize("name", LONG)
def test_each_thing_that_can_take_long_says_what_it_is_at(world: World, name: str) -> None:
    world.project.git("config", "user.name", "You")  # whoever runs this test may have no name
    world.project.git("config", "user.email", "you@example.org")
    plan: PlanHandle = world.run(write("a.txt", "a\n"), shell("echo b > b.txt"))
    made, noted = container(world)
    work, told = LONG[name]
    work(made, PlanId(plan.id))
    made.close()
    said: list[Any] = [event.what for event in noted.events if isinstance(event, Working)]
    assert [what for what in told if what not in said] == []


def test_many_files_are_told_with_how_long_they_take(world: World) -> None:
    plan = world.use(write("a.txt", "a\n"))
    # Only its head is looked at: whatever is counted need not be there.
    index = world.project.git_dir / "index"
    index.write_bytes(b"DIRC" + (2).to_bytes(4, "big") + (1_000_000).to_bytes(4, "big"))
    made, noted = container(world)
    made.plan_resume_service.run(PlanId(plan.id))
    made.close()
    said = [event.what for event in noted.events if isinstance(event, Working)]
    assert "creating the sandbox of `code`: 1000000 files, which take 2 min or more" in said
