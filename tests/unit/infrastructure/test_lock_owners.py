"""Plan locks: an owner that lives is never overtaken, and one that died leaves nothing behind."""

import fcntl
import json
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest
from lock_world import OTHER, PLAN, another_process, locks
from msgspec.structs import replace

from cleveragents.domain.errors import PlanLockedError
from cleveragents.infrastructure.clock import SystemClock
from cleveragents.infrastructure.database.fence import HeldLeases
from cleveragents.infrastructure.locks.lock_owners import ourselves
from cleveragents.infrastructure.locks.plan_locks import FilePlanLocks

__all__ = ["locks"]


def signed(folder: Path, **fields: object) -> Path:
    """A lock file with somebody's name in it, as a crash would leave it."""
    file = folder / "locks" / PLAN
    file.parent.mkdir(exist_ok=True)
    owner = replace(ourselves("execute", "2025-03-01T11:00:00+00:00"), **fields)  # type: ignore[arg-type]
    file.write_bytes(owner.to_bytes())
    return file


def heard_of(file: Path, seconds_ago: float) -> None:
    moment = time.time() - seconds_ago
    os.utime(file, (moment, moment))


def refusal(locks: FilePlanLocks) -> PlanLockedError:
    with pytest.raises(PlanLockedError) as caught, locks.hold(PLAN, "rollback"):
        pass
    return caught.value


def test_an_owner_gives_signs_of_life(tmp_path: Path) -> None:
    locks = FilePlanLocks(str(tmp_path / "locks"), SystemClock(), HeldLeases(), beat=0.02)
    with locks.hold(PLAN, "execute"), locks.hold(OTHER, "execute"):
        for plan in (PLAN, OTHER):
            file = tmp_path / "locks" / plan
            before = file.stat().st_mtime_ns
            deadline = time.monotonic() + 10
            while file.stat().st_mtime_ns == before:
                assert time.monotonic() < deadline
                time.sleep(0.01)
    assert [file.stat().st_size for file in (tmp_path / "locks").iterdir()] == [0, 0]


def test_an_owner_that_is_stopped_is_never_overtaken_and_the_way_out_is_told(
    tmp_path: Path,
) -> None:
    locks = FilePlanLocks(
        str(tmp_path / "locks"), SystemClock(), HeldLeases(), beat=0.01, expiry=0.05
    )
    with another_process(tmp_path) as process:
        os.kill(process.pid, signal.SIGSTOP)
        os.waitid(os.P_PID, process.pid, os.WSTOPPED)
        heard_of(tmp_path / "locks" / PLAN, 4000)

        error = refusal(locks)

        assert f"process {process.pid}, since" in error.message
        assert "last heard of 4000 s ago, and stopped" in error.message
        assert f"kill -CONT {process.pid}" in error.hint
        assert f"agents plan status {PLAN}" in error.hint
        os.kill(process.pid, signal.SIGCONT)
        assert process.stdin is not None
        process.stdin.write("go on\n")
        process.stdin.flush()
        assert process.wait(10) == 0
        with locks.hold(PLAN, "rollback"):
            pass


def test_an_owner_that_hangs_is_never_overtaken_either(tmp_path: Path) -> None:
    locks = FilePlanLocks(
        str(tmp_path / "locks"), SystemClock(), HeldLeases(), beat=0.01, expiry=0.05
    )
    with another_process(tmp_path) as process:
        heard_of(tmp_path / "locks" / PLAN, 4000)  # before its next sign of life

        error = refusal(locks)

        assert "last heard of 40" in error.message
        assert f"if it hangs, end it with `kill {process.pid}`" in error.hint


def test_what_a_dead_owner_has_forked_does_not_keep_the_lock(
    locks: FilePlanLocks, tmp_path: Path
) -> None:
    with another_process(tmp_path, "fork") as process:
        process.kill()
        process.wait()

        assert locks.owner(PLAN) is None
        assert list(locks.dead()) == [PLAN]
        with locks.hold(PLAN, "resume"):
            assert f"process {os.getpid()}" in (locks.owner(PLAN) or "")
            refusal(locks)
        assert locks.dead() == {}


def test_a_process_that_only_has_the_owners_number_is_not_the_owner(
    locks: FilePlanLocks, tmp_path: Path
) -> None:
    signed(tmp_path, started="1")

    assert locks.owner(PLAN) is None
    with locks.hold(PLAN, "resume"):
        pass


def test_an_owner_of_before_the_machine_was_started_anew_is_dead(
    locks: FilePlanLocks, tmp_path: Path
) -> None:
    signed(tmp_path, boot="an earlier one")

    with locks.hold(PLAN, "resume"):
        pass


def test_another_container_of_this_machine_lets_go_with_the_kernel(
    locks: FilePlanLocks, tmp_path: Path
) -> None:
    file = signed(tmp_path, space="pid:[1]", host="container")
    with locks.hold(PLAN, "resume"):
        pass

    signed(tmp_path, space="pid:[1]", host="container")
    with file.open("r+b") as theirs:
        fcntl.flock(theirs, fcntl.LOCK_EX)
        assert "on container" in refusal(locks).message
        heard_of(file, 61)
        with locks.hold(PLAN, "resume"):
            pass


def test_an_owner_far_away_keeps_its_lock_as_long_as_it_is_heard_of(tmp_path: Path) -> None:
    locks = FilePlanLocks(str(tmp_path / "locks"), SystemClock(), HeldLeases())
    file = signed(tmp_path, host="faraway", boot="theirs", pid=4_000_000)
    heard_of(file, 40)

    error = refusal(locks)

    assert "process 4000000 on faraway" in error.message
    assert "last heard of 40 s ago" in error.message
    assert "if faraway is gone, try again in 20 s" in error.hint
    assert "faraway" in (locks.owner(PLAN) or "")
    assert locks.dead() == {}


@pytest.mark.parametrize("kernel_knows_it", [True, False])
def test_an_owner_far_away_that_was_silent_too_long_is_taken_for_dead(
    tmp_path: Path, *, kernel_knows_it: bool
) -> None:
    locks = FilePlanLocks(str(tmp_path / "locks"), SystemClock(), HeldLeases())
    file = signed(tmp_path, host="faraway", boot="theirs")
    heard_of(file, 61)
    with file.open("r+b") as theirs:
        if kernel_knows_it:  # some network file systems pass locks on
            fcntl.flock(theirs, fcntl.LOCK_EX)
        assert list(locks.dead()) == [PLAN]

        with locks.hold(PLAN, "resume"):
            refusal(locks)


def test_a_clock_that_goes_back_takes_no_lock_away(tmp_path: Path) -> None:
    locks = FilePlanLocks(str(tmp_path / "locks"), SystemClock(), HeldLeases())
    file = signed(tmp_path, host="faraway", boot="theirs")
    heard_of(file, -10_000)

    assert "last heard of 0 s ago" in refusal(locks).message


OVERTAKEN = """
import sys, time
from cleveragents.domain.ids import PlanId
from cleveragents.infrastructure.database.fence import HeldLeases
from cleveragents.infrastructure.clock import SystemClock
from cleveragents.infrastructure.locks.plan_locks import FilePlanLocks
locks = FilePlanLocks(sys.argv[1], SystemClock(), HeldLeases(), beat=0.1)
try:
    with locks.hold(PlanId(sys.argv[2]), "execute"):
        print("held", flush=True)
        time.sleep(600)
finally:
    print("tidied up what is not mine", flush=True)
"""


def test_an_owner_that_was_taken_for_dead_stops_at_once_when_it_comes_back(tmp_path: Path) -> None:
    folder = tmp_path / "locks"
    process = subprocess.Popen(
        [sys.executable, "-c", OVERTAKEN, str(folder), PLAN],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    locks = FilePlanLocks(str(folder), SystemClock(), HeldLeases())
    os.kill(process.pid, signal.SIGSTOP)
    os.waitid(os.P_PID, process.pid, os.WSTOPPED)
    # It is somewhere else, as far as anybody can tell, and has been silent for long.
    theirs = (folder / PLAN).read_bytes().replace(os.uname().nodename.encode(), b"faraway")
    owner = json.loads(theirs)
    (folder / PLAN).write_bytes(json.dumps({**owner, "boot": "theirs"}).encode())
    heard_of(folder / PLAN, 61)

    with locks.hold(PLAN, "resume"):
        os.kill(process.pid, signal.SIGCONT)
        out, err = process.communicate(timeout=20)

        assert (process.returncode, out) == (1, "")
        assert f"process {os.getpid()}" in err
        assert "has taken over" in err
        assert f"process {os.getpid()}" in (locks.owner(PLAN) or "")


class Crowd:
    """Many who want the same lock at once; `most` is how many had it at the same time."""

    def __init__(self, folder: Path) -> None:
        self._folder = str(folder / "locks")
        self._counter = threading.Lock()
        self._inside = 0
        self.most = 0

    def rush(self, number: int) -> None:
        threads = [threading.Thread(target=self._take) for _ in range(number)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _take(self) -> None:
        locks = FilePlanLocks(self._folder, SystemClock(), HeldLeases())
        with suppress(PlanLockedError), locks.hold(PLAN, "resume"):
            self._enter(1)
            time.sleep(0.05)
            self._enter(-1)

    def _enter(self, change: int) -> None:
        with self._counter:
            self._inside += change
            self.most = max(self.most, self._inside)


@pytest.mark.parametrize("more", [("fork",), ()])
def test_of_many_that_find_a_dead_owner_one_at_a_time_gets_the_lock(
    tmp_path: Path, more: tuple[str, ...]
) -> None:
    for _ in range(5):
        with another_process(tmp_path, *more) as process:
            process.kill()
            process.wait()
            crowd = Crowd(tmp_path)

            crowd.rush(8)

            assert crowd.most == 1
