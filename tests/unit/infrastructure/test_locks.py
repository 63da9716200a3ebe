"""Plan locks: one writer at a time, named to the others."""

import fcntl
import os
import signal
import subprocess
import threading
from pathlib import Path

import pytest
from lock_world import OTHER, PLAN, Noon, another_process, locks
from msgspec.structs import replace

from cleveragents.domain.errors import DataDirError, PlanLockedError
from cleveragents.infrastructure.database.fence import HeldLeases
from cleveragents.infrastructure.locks.lock_owners import is_alive, ourselves, read_owner
from cleveragents.infrastructure.locks.plan_locks import FilePlanLocks

__all__ = ["locks"]


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
    locks = FilePlanLocks(str(tmp_path / "file" / "locks"), Noon(), HeldLeases())

    with pytest.raises(DataDirError), locks.hold(PLAN, "execute"):
        pass


def test_the_locks_are_for_their_owner_only(locks: FilePlanLocks, tmp_path: Path) -> None:
    with locks.hold(PLAN, "execute"):
        pass

    assert (tmp_path / "locks").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "locks" / PLAN).stat().st_mode & 0o777 == 0o600


def test_a_lock_is_forgotten_unless_somebody_has_it(locks: FilePlanLocks, tmp_path: Path) -> None:
    file = tmp_path / "locks" / PLAN
    locks.forget(PLAN)  # there is none
    with another_process(tmp_path) as process:
        locks.forget(PLAN)
        assert (file.exists(), list(locks.known())) == (True, [PLAN])
        process.kill()  # its name stays in the file
        process.wait()
        locks.forget(PLAN)
    assert (file.exists(), list(locks.known())) == (False, [])
    with locks.hold(PLAN, "execute"):
        pass
