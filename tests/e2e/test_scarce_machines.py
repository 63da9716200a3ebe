"""Where there are too few files, processes or too little memory, that is what is said; nothing is
taken for a bug or for missing, no lock is kept, and with more of it the plan goes on."""

import os
from collections.abc import Mapping

import pytest
from tests.support import machines
from tests.support.agents import Answer
from tests.support.machines import limited
from tests.support.world import PlanHandle, World, shell, write

MIB = 1 << 20
WORDS = ("no more files", "no more processes", "not enough memory")
STEPS = (
    write("a.txt", "a\n"),
    shell("echo b > b.txt"),
    {"name": "look", "tool": "git.status", "with": {"resource": "code"}},
)


def is_told(answer: Answer) -> bool:
    """Whether it was refused, and then as what it is."""
    said = answer.out + answer.err
    assert "bug in agents" not in said
    assert "Traceback" not in said
    assert "install git" not in said
    if answer.code == 0:
        return False
    assert answer.envelope["status"] == "error", said
    assert any(words in answer.error["message"] for words in WORDS), said
    assert "ulimit" in answer.error["hint"] or answer.error["code"] == "step-failed", said
    return True


def commands(plan: PlanHandle) -> list[tuple[str, ...]]:
    return [("plan", "execute", plan.id), ("plan", "list"), ("plan", "diff", plan.id), ("doctor",)]


def refused_at(world: World, limits: Mapping[str, int], *, alone: bool = False) -> set[str]:
    """What is refused with these limits; afterwards the plan is whole and goes on without them."""
    plan = world.use(*STEPS)
    found: set[str] = set()
    for argv in commands(plan):
        if argv[1:2] == ("diff",) and plan.status["state"] != "complete":
            continue
        answer = limited(world.agents, dict(limits), *argv, alone=alone)
        if argv == ("doctor",) and answer.code == 1 and "error" not in answer.data:
            continue  # it has found something, and that was its work
        if is_told(answer):
            found.add(" ".join(argv[:2]))
        lock = world.agents.data_dir / "locks" / plan.id
        assert not lock.exists() or not lock.read_bytes(), argv
    plan("resume" if plan.status["state"] == "errored" else "execute").ok()
    assert plan.status["state"] == "complete"
    return found


@pytest.mark.parametrize("files", [6, 8, 10, 14, 18, 22, 26])
def test_too_few_files(world: World, files: int) -> None:
    assert "plan execute" in refused_at(world, {"NOFILE": files})


def test_with_enough_files_nothing_is_refused(world: World) -> None:
    assert refused_at(world, {"NOFILE": 64}) == set()


def test_too_little_memory(world: World) -> None:
    # Read, changed and written back: more than there is, once the command itself has its part.
    edit = {"resource": "code", "path": "large", "old": "needle", "new": "thread"}
    plan = world.use(
        shell("printf needle > large; truncate -s 100M large", "make it"),
        {"name": "edit it", "tool": "file.edit", "with": edit},
    )

    # A thread's stack and its own heap count, used or not: the command by itself has up to 200 MiB.
    answer = limited(world.agents, {"AS": 280 * MIB}, "plan", "execute", plan.id)

    assert is_told(answer)
    assert plan.status["state"] == "errored"
    assert plan.status["last_completed_step"] == 0
    plan("resume").ok()
    with (plan.sandbox / "large").open("rb") as file:
        assert file.read(6) == b"thread"


@pytest.mark.skipif(os.geteuid() == 0, reason="root has no limit to its processes")
@pytest.mark.skipif(not machines.can_be_made(), reason="there are no user namespaces here")
@pytest.mark.parametrize("processes", [1, 2, 3, 4, 5, 6])
def test_too_few_processes(world: World, processes: int) -> None:
    assert "plan execute" in refused_at(world, {"NPROC": processes}, alone=True)
