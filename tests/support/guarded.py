"""Owns a plan to go back in, and the proof that a refusal changes nothing."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.support.trees import tree_of
from tests.support.world import PlanHandle, World, shell, write

BIG = "".join(f"line {number}\n" for number in range(4000))


@pytest.fixture
def plan(world: World) -> PlanHandle:
    return world.run(
        write("one.txt", "one\n", "one"),
        shell(f"cat > big.txt <<'E'\n{BIG}E", "two"),
        shell("rm README.md one.txt; chmod 700 run.sh; echo 3 > src/app.py", "three"),
    )


@contextmanager
def nothing_changes(world: World, sandbox: Path) -> Generator[None]:
    user, files, records = world.project.fingerprint(), tree_of(sandbox), world.records()
    yield
    assert tree_of(sandbox) == files
    assert world.records() == records
    assert world.project.fingerprint() == user
