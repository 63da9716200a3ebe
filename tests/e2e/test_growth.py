"""What commands do for many steps and many plans: never more than n log n, counted and not timed.

Work is counted at three sizes, each three times the one before. What it grows by from the second to
the third is 3 times what it grew by before if it is linear, 3.7 times for n log n, and 9 times if
it is quadratic; what a command does whatever the size is in neither.
"""

import sqlite3
import subprocess
import sys
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

import pytest
from tests.support.agents import Answer
from tests.support.work import Work, counted, gits_of
from tests.support.world import PlanHandle, World, action, write

SIZES = (20, 60, 180)
ALLOWED = 4.5
NOISE = 2000
"""What counts as no growth: ids and times differ in their digits."""
OLD = "01ARZ3NDEKTSV4RRFFQ69G{:04d}"
"""Plans of long ago, that no database knows."""


class Long:
    """A plan of so many steps that keeps every checkpoint, in a world of its own."""

    def __init__(self, top: Path, template: World, steps: int) -> None:
        self.world = World(top, template)
        self.steps = steps
        self.plan = self.world.use(
            *(write(f"d{i // 10}/f{i}", str(i), f"s{i}") for i in range(steps)),
            rollback_policy={"max_checkpoints": 10 * steps},
        )
        with counted() as self.executed:
            self.plan.execute().ok()
        self.decision = _last(self.plan("tree").ok().data["tree"])

    def work(self, *words: str) -> Work:
        with counted() as work:
            self.typed(*words).ok()
        return work

    def typed(self, *words: str) -> Answer:
        names = {"PLAN": self.plan.id, "DECISION": self.decision, "LAST": f"decision {self.last}"}
        return self.world.agents(*(names.get(word, word) for word in words))

    @property
    def last(self) -> str:
        return f"{self.steps}: s{self.steps - 1}"


def _last(tree: Mapping[str, object]) -> str:
    children = tree["children"]
    assert isinstance(children, list)
    return _last(children[-1]) if children else str(tree["id"])


@pytest.fixture(scope="module")
def plans(tmp_path_factory: pytest.TempPathFactory, template: World) -> list[Long]:
    """Of each size one, and before them a short one: the first to do something imports what that
    needs."""
    sizes = (2, *SIZES)
    return [Long(tmp_path_factory.mktemp(f"s{n}") / "w", template, n) for n in sizes]


def growth(work: list[int]) -> float:
    _, small, middle, large = work
    return (large - middle) / max(middle - small, NOISE)


def test_executing_takes_no_more_for_a_step_the_longer_the_plan_is(plans: list[Long]) -> None:
    # Not the calls: each look at a sandbox asks every process of the machine what it has mapped.
    work = [plan.executed.instructions for plan in plans]
    assert growth(work) < ALLOWED, work


def test_what_a_step_writes_anew_is_no_longer_in_a_long_plan(plans: list[Long]) -> None:
    """SQLite goes over a whole row to change it, which no count of its instructions tells."""
    shortest, *_, longest = (_bytes_of_row(plan) for plan in plans)
    assert longest < shortest + 50


def _bytes_of_row(long: Long) -> int:
    with closing(sqlite3.connect(long.world.agents.data_dir / "cleveragents.db")) as database:
        (row,) = database.execute("SELECT * FROM plans WHERE plan_id = ?", (long.plan.id,))
    return sum(len(str(value)) for value in row)


COLLECTIONS = """
import atexit, gc, sys
from cleveragents.__main__ import main
# Not after it: a command ends its process without coming back.
atexit.register(lambda: print(gc.get_stats()[0]["collections"], file=sys.stderr, flush=True))
main()
"""


def test_python_does_not_look_for_garbage_in_what_is_read_of_a_long_plan(plans: list[Long]) -> None:
    """Each such look is no call; the more there is, the longer it takes."""
    shortest, *_, longest = (_collections(plan) for plan in plans)
    assert longest <= shortest + 1


def _collections(long: Long) -> int:
    agents = long.world.agents
    words = [sys.executable, "-c", COLLECTIONS, "plan", "tree", long.plan.id]
    done = subprocess.run(
        words, cwd=agents.cwd, env=agents.environ, capture_output=True, text=True, check=True
    )
    return int(done.stderr)


@pytest.mark.parametrize(
    "words",
    [
        ("plan", "status", "PLAN"),
        ("plan", "tree", "PLAN"),
        ("plan", "explain", "DECISION"),
        ("plan", "artifacts", "PLAN"),
        ("plan", "diff", "PLAN"),
        ("plan", "resume", "--dry-run", "PLAN"),
        ("plan", "correct", "--mode", "revert", "--guidance", "x", "--dry-run", "DECISION"),
        ("plan", "rollback", "--dry-run", "PLAN", "start"),
        ("plan", "checkpoint", "list", "PLAN"),
        ("plan", "checkpoint", "show", "PLAN", "start"),
        ("plan", "checkpoint", "diff", "PLAN", "start", "LAST"),
        ("plan", "checkpoint", "verify", "PLAN"),
        ("plan", "checkpoint", "prune", "--dry-run", "PLAN"),
        ("plan", "checkpoint", "create", "--label", "by hand", "PLAN"),
        ("plan", "rollback", "--yes", "PLAN", "LAST"),
        ("plan", "resume", "PLAN"),
        ("store", "status"),
        ("store", "verify"),
        ("doctor",),
    ],
    ids=" ".join,
)
def test_a_command_does_no_more_than_n_log_n_for_the_steps_of_a_plan(
    plans: list[Long], words: tuple[str, ...]
) -> None:
    work = [plan.work(*words).all for plan in plans]
    assert growth(work) < ALLOWED, work


@pytest.mark.parametrize(
    "words",
    [
        ("checkpoint", "show", "PLAN", "start"),
        ("checkpoint", "create", "--label", "x", "PLAN"),
        ("rollback", "--dry-run", "PLAN", "start"),
    ],
    ids=" ".join,
)
def test_finding_one_checkpoint_does_not_load_the_others(
    plans: list[Long], words: tuple[str, ...]
) -> None:
    loaded = [plan.work("plan", *words).calls["checkpoint_repository.py"] for plan in plans]
    assert loaded[3] < loaded[1] + 10, loaded


def test_explaining_one_decision_does_not_load_the_others(plans: list[Long]) -> None:
    work = [plan.work("plan", "explain", "DECISION") for plan in plans]
    for file in ("decision_repository.py", "checkpoint_repository.py"):
        assert work[3].calls[file] == work[1].calls[file] > 0


@pytest.mark.parametrize(("named", "code"), [("write file {}", 0), ("wrote fiel {}", 1)])
def test_a_long_action_file_is_read_or_refused_without_comparing_all_with_all(
    world: World, named: str, code: int
) -> None:
    work = [_work_of_use(world, steps, named, code) for steps in (2, 50, 150, 450)]
    assert growth(work) < ALLOWED, work


def _work_of_use(world: World, steps: int, named: str, code: int) -> int:
    """Of a plan in which each step uses the one before it, by the right name or by a wrong one."""
    made = [write(f"f{i}", "x", f"write file {i}") for i in range(steps)]
    used = [{**step, "uses": [named.format(i)]} for i, step in enumerate(made[1:])]
    path = world.write_action(action(made[0], *used))
    with counted() as work:
        answer = world.agents("plan", "use", path)
    assert answer.code == code, answer
    return work.all


def test_the_doctor_asks_git_as_often_for_thirty_plans_as_for_three(world: World) -> None:
    few = _gits_of_doctor(world, 3)
    assert _gits_of_doctor(world, 30) == few


def _gits_of_doctor(world: World, plans: int) -> int:
    """With so many plans that wait, and as many refs that plans of nobody have left."""
    made = [world.use(write("a", "1")) for _ in range(plans)]
    pin = _pin(world, made[0])
    for number in range(plans):
        old = pin.replace(made[0].id, OLD.format(number))
        world.project.git("update-ref", old, world.project.commit(f"work {number}"))
    world.project.git("reset", "-q", "--hard", "HEAD~1")
    return gits_of(world, "doctor")


def _pin(world: World, plan: PlanHandle) -> str:
    listed = world.project.git("for-each-ref", "--format=%(refname)", "refs/cleveragents")
    return next(ref for ref in listed.splitlines() if plan.id in ref)
