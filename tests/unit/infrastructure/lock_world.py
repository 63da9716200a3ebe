"""Plan locks, and another process that holds one."""

import os
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

import pytest

from cleveragents.domain.ids import PlanId
from cleveragents.infrastructure.clock import UlidSource
from cleveragents.infrastructure.database.fence import HeldLeases
from cleveragents.infrastructure.locks.plan_locks import FilePlanLocks

# Nobody else's: taking over a dead owner's lock ends whatever on this machine works for that plan.
ULIDS = UlidSource()
PLAN, OTHER = PlanId(ULIDS.new()), PlanId(ULIDS.new())


class Noon:
    def now(self) -> datetime:
        return datetime(2025, 3, 1, 12, 0, 0, 5, tzinfo=UTC)

    def pause(self, seconds: float) -> None:
        """It is always noon."""


@pytest.fixture
def locks(tmp_path: Path) -> FilePlanLocks:
    return FilePlanLocks(str(tmp_path / "locks"), Noon(), HeldLeases())


HOLD = """
import os, sys
from cleveragents.domain.ids import PlanId
from cleveragents.infrastructure.database.fence import HeldLeases
from cleveragents.infrastructure.clock import SystemClock
from cleveragents.infrastructure.locks.plan_locks import FilePlanLocks
with FilePlanLocks(sys.argv[1], SystemClock(), HeldLeases()).hold(PlanId(sys.argv[2]), "execute"):
    if sys.argv[3:] == ["fork"] and os.fork() == 0:
        os.close(0)
        import time
        time.sleep(600)
    print("held", flush=True)
    sys.stdin.readline()
"""


@contextmanager
def another_process(folder: Path, *more: str) -> Generator["subprocess.Popen[str]"]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(folder / "locks"), PLAN, *more],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
