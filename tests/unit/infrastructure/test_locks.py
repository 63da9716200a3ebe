"""Plan locks: one writer at a time, named to the others, and never left behind."""

import fcntl
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from cleveragents.domain.errors import DataDirError, PlanLockedError
from cleveragents.domain.ids import PlanId
from cleveragents.infrastructure.clock import SystemClock, UlidSource
from cleveragents.infrastructure.lock_owners import is_alive, ourselves, read_owner
from cleveragents.infrastructure.locks import FilePlanLocks

# Nobody else's: taking over a dead owner's lock ends whatever on this machine works for that plan.
ULIDS = UlidSource()
PLAN, OTHER = PlanId(ULIDS.new()), PlanId(ULIDS.new())


class Noon:
    def now(self) -> datetime:
        return datetime(2025, 3, 1, 12, 0, 0, 5, tzinfo=UTC)


@pytest.fixture
def locks(tmp_path: Path) -> FilePlanLocks:
    return FilePlanLocks(str(tmp_path / "locks"), Noon())


HOLD = """
import os, sys
from cleveragents.domain.ids import PlanId
from cleveragents.infrastructure.clock import SystemClock
from cleveragents.infrastructure.locks import FilePlanLocks
with FilePlanLocks(sys.argv[1], SystemClock()).hold(PlanId(sys.argv[2]), "execute"):
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


def test_a_second_writer_is_refused_and_told_who_the_first_one_is(
    locks: FilePlanLocks, tmp_path: Path
) -> None:
    with another_process(tmp_path) as process:
        with pytest.raises(PlanLockedError) as caught, locks.hold(PLAN, "rollback"):
            pass

        assert f"process {process.pid}" in caught.value.message
        assert "`plan execute`" in caught.value.message
        assert f"process {process.pid}" in (locks.owner(PLAN) or "")


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_process_that_dies_lets_go(locks: FilePlanLocks, tmp_path: Path, number: int) -> None:
    with another_process(tmp_path) as process:
        process.send_signal(number)
        process.wait()

        assert locks.owner(PLAN) is None
        with locks.hold(PLAN, "resume"):
            pass


def test_the_lock_is_free_again_afterwards_even_after_an_error(locks: FilePlanLocks) -> None:
    with pytest.raises(KeyboardInterrupt), locks.hold(PLAN, "execute"):
        raise KeyboardInterrupt

    assert locks.owner(PLAN) is None
    with locks.hold(PLAN, "execute"):
        pass


def test_the_owner_is_named_with_what_it_does_and_since_when(locks: FilePlanLocks) -> None:
    assert locks.owner(PLAN) is None

    with locks.hold(PLAN, "execute"):
        assert locks.owner(PLAN) == (
            f"`plan execute`, process {os.getpid()}, since 2025-03-01T12:00:00.000+00:00,"
            " last heard of 0 s ago"
        )


def test_a_shorter_signature_replaces_a_longer_one_whole(locks: FilePlanLocks) -> None:
    with locks.hold(PLAN, "a very long operation"):
        pass

    with locks.hold(PLAN, "x"):
        assert (locks.owner(PLAN) or "").startswith("`plan x`, process")


def test_asking_for_the_owner_leaves_no_trace(locks: FilePlanLocks, tmp_path: Path) -> None:
    locks.owner(PLAN)

    assert not (tmp_path / "locks").exists()


def test_each_plan_has_a_lock_of_its_own(locks: FilePlanLocks) -> None:
    with locks.hold(PLAN, "execute"), locks.hold(OTHER, "execute"):
        assert locks.owner(PLAN)
        assert locks.owner(OTHER)


def test_an_owner_that_has_not_signed_yet_is_somebody(locks: FilePlanLocks, tmp_path: Path) -> None:
    with locks.hold(PLAN, "execute"):
        (tmp_path / "locks" / PLAN).write_text("")

        assert locks.owner(PLAN) == "another process"


def test_a_command_started_meanwhile_does_not_keep_the_lock(locks: FilePlanLocks) -> None:
    with locks.hold(PLAN, "execute"):
        left_behind = subprocess.Popen(["sleep", "30"])
    try:
        assert locks.owner(PLAN) is None
        with locks.hold(PLAN, "resume"):
            pass
    finally:
        left_behind.kill()
        left_behind.wait()


def test_somebody_who_only_looks_does_not_keep_a_writer_out(
    locks: FilePlanLocks, tmp_path: Path
) -> None:
    with locks.hold(PLAN, "execute"):
        pass
    # What `plan status` holds for an instant, stretched so that a test can see it.
    looking = os.open(tmp_path / "locks" / PLAN, os.O_RDWR)
    fcntl.flock(looking, fcntl.LOCK_SH)
    done_looking = threading.Timer(0.05, os.close, (looking,))
    done_looking.start()

    with locks.hold(PLAN, "resume"):
        done_looking.join()


# --- owners that are silent, dead, or far away --------------------------------------------------


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
    locks = FilePlanLocks(str(tmp_path / "locks"), SystemClock(), beat=0.02)
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
    locks = FilePlanLocks(str(tmp_path / "locks"), SystemClock(), beat=0.01, expiry=0.05)
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
    locks = FilePlanLocks(str(tmp_path / "locks"), SystemClock(), beat=0.01, expiry=0.05)
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
    locks = FilePlanLocks(str(tmp_path / "locks"), SystemClock())
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
    locks = FilePlanLocks(str(tmp_path / "locks"), SystemClock())
    file = signed(tmp_path, host="faraway", boot="theirs")
    heard_of(file, 61)
    with file.open("r+b") as theirs:
        if kernel_knows_it:  # some network file systems pass locks on
            fcntl.flock(theirs, fcntl.LOCK_EX)
        assert list(locks.dead()) == [PLAN]

        with locks.hold(PLAN, "resume"):
            refusal(locks)


def test_a_clock_that_goes_back_takes_no_lock_away(tmp_path: Path) -> None:
    locks = FilePlanLocks(str(tmp_path / "locks"), SystemClock())
    file = signed(tmp_path, host="faraway", boot="theirs")
    heard_of(file, -10_000)

    assert "last heard of 0 s ago" in refusal(locks).message


OVERTAKEN = """
import sys, time
from cleveragents.domain.ids import PlanId
from cleveragents.infrastructure.clock import SystemClock
from cleveragents.infrastructure.locks import FilePlanLocks
locks = FilePlanLocks(sys.argv[1], SystemClock(), beat=0.1)
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
    locks = FilePlanLocks(str(folder), SystemClock())
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
        locks = FilePlanLocks(self._folder, SystemClock())
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


def test_a_record_is_written_whole_and_garbage_is_nobody(tmp_path: Path) -> None:
    owner = ourselves("execute", "now")
    assert len(owner.to_bytes()) == len(replace(owner, beat=10**9).to_bytes()) == 512
    file = tmp_path / "garbage"
    for content in (b"", b"{", b"[]", b'{"pid": 1}', b"\xff" * 600):
        file.write_bytes(content)
        with file.open("rb") as opened:
            assert read_owner(opened.fileno()) is None


def test_without_proc_a_number_that_lives_is_taken_for_the_owner(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    owner = ourselves("execute", "now")
    gone = subprocess.Popen(["true"])
    gone.wait()
    monkeypatch.setattr(os.path, "isdir", lambda _: False)

    assert is_alive(owner)
    assert is_alive(replace(owner, pid=1))
    assert not is_alive(replace(owner, pid=gone.pid))


def test_a_folder_that_cannot_be_made_is_told_as_such(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    locks = FilePlanLocks(str(tmp_path / "file" / "locks"), Noon())

    with pytest.raises(DataDirError), locks.hold(PLAN, "execute"):
        pass


def test_the_locks_are_for_their_owner_only(locks: FilePlanLocks, tmp_path: Path) -> None:
    with locks.hold(PLAN, "execute"):
        pass

    assert (tmp_path / "locks").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "locks" / PLAN).stat().st_mode & 0o777 == 0o600
