"""Processes that try to outlive their step: chains, bombs, and machines that lack means."""

import shutil
import subprocess
import sys
import time
import uuid
from pathlib import Path
from typing import Any

import pytest
from tests.support import machines
from tests.support.agents import COMMAND
from tests.support.living import living_with
from tests.support.trees import tree_of
from tests.support.world import PlanHandle, World, shell, write

SUPPORT = Path(__file__).parents[1] / "support"
PERL = shutil.which("perl")
CHAINS = f"{PERL} {SUPPORT}/chains.pl" if PERL else f"{sys.executable} {SUPPORT}/chains.py"
LATE_AFTER = 1.0

# What a machine lacks, and what the action asks for.
PLACES: dict[str, tuple[tuple[str, ...], Any]] = {
    "all": ((), "required"),
    "off": ((), "off"),
    "no process table": (("pid",), "preferred"),
    "no view": (("pid", "mnt", "user"), "preferred"),
}


@pytest.fixture(params=PLACES)
def place(request: pytest.FixtureRequest) -> tuple[list[str], Any]:
    lacking, asked = PLACES[request.param]
    if lacking and not machines.can_be_made():
        pytest.skip("no user namespace can be made here")
    return machines.without(*lacking) if lacking else [], asked


def executed(plan: PlanHandle, before: list[str]) -> "subprocess.CompletedProcess[bytes]":
    return subprocess.run(
        [*before, str(COMMAND), "--format", "json", "plan", "execute", plan.id],
        cwd=plan.agents.cwd,
        env=plan.agents.environ,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=60,
        check=False,
    )


def test_no_chain_of_processes_outlives_its_step(
    world: World, place: tuple[list[str], Any]
) -> None:
    before, asked = place
    word = uuid.uuid4().hex
    command = f"{CHAINS} 40 {LATE_AFTER} late {word}; echo 1 > own"
    plan = world.use(shell(command, "chains"), confinement=asked)
    started = time.monotonic()
    done = executed(plan, before)
    took = time.monotonic() - started
    assert living_with(word) == []
    assert done.returncode == 0, done
    ended = tree_of(plan.sandbox)
    time.sleep(LATE_AFTER + 0.5)
    assert living_with(word) == []
    assert tree_of(plan.sandbox) == ended
    assert took < 15
    [call] = plan("artifacts").ok().data["artifacts"]
    assert call["values"]["ended_processes"] >= 40
    plan.rollback(plan.status["last_checkpoint_id"]).ok()
    assert tree_of(plan.sandbox) == ended


def test_the_limit_of_processes_holds(world: World, place: tuple[list[str], Any]) -> None:
    """For a crowd that grows by itself, each in a session of its own; at most 512 of them."""
    before, asked = place
    word = f"20.{uuid.uuid4().int % 10**12}"
    grow = (
        f"[ $1 -gt 8 ] && exec sleep {word}; setsid sh $0 $(($1+1)) & setsid sh $0 $(($1+1)); wait"
    )
    world.agents.environ["CLEVERAGENTS_TOOL_PROCESS_LIMIT"] = "60"
    plan = world.use(
        write("grow.sh", grow),
        shell("sh grow.sh 0; sleep 20", "grow", timeout=30),
        confinement=asked,
    )
    done = executed(plan, before)
    assert living_with(word) == []
    assert done.returncode == 1, done
    assert "more than 60 processes" in plan.status["error"]["message"]
