"""Restores by processes that may do less, that are killed, or that work across file systems."""

import os
import shutil
import signal
import stat
import tempfile
import traceback
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.runners import workbench

from cleveragents.infrastructure.confinement.syscalls import prctl
from cleveragents.infrastructure.sandbox.checkpoint_manager import CheckpointManager
from cleveragents.infrastructure.sandbox.registry import ResourceAdapters

NOBODY = 65534
PR_SET_DUMPABLE = 4
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")


def _in_child(task: Callable[[], None], kill_after: float = 0.0) -> int:
    """Run it in a process of its own; gives back the wait status."""
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            signal.signal(signal.SIGALRM, signal.SIG_DFL)  # ends the process on the spot
            signal.setitimer(signal.ITIMER_REAL, kill_after)
            task()
            status = 0
        finally:
            # Whatever happened, the child must not go on as a second test run.
            if status:
                traceback.print_exc()
            os._exit(status)
    return os.waitpid(pid, 0)[1]


@needs_root
def test_without_rights_what_is_closed_is_captured_and_restored(world_class) -> None:
    top = Path(tempfile.mkdtemp())
    os.chown(top, NOBODY, NOBODY)

    def task() -> None:
        os.setgroups([])
        os.setresgid(NOBODY, NOBODY, NOBODY)
        os.setresuid(NOBODY, NOBODY, NOBODY)
        # As it is for whoever was nobody from the start: such a process may look into itself.
        prctl(PR_SET_DUMPABLE, 1)
        os.environ["HOME"] = str(top)
        world = world_class(top / "w")
        world.work("mkdir ro; echo x > ro/x; chmod 0500 ro; mkdir -p open/in; echo y > open/in/y")
        first, before = world.capture(), world.state()
        world.work("chmod 700 ro; rm -r ro; echo x > secret; chmod 0 secret a.txt; rm -r open")
        world.work("mkdir d; echo x > d/x; chmod 0 d; mkdir open; chmod 0500 open; chmod 0500 src")
        second = world.capture()
        world.restore(first.ref)
        assert world.state() == before
        world.restore(second.ref)
        assert stat.S_IMODE(world.sandbox.joinpath("d").stat().st_mode) == 0
        world.new_process()
        assert world.capture().state_hash == second.state_hash
        world.restore(first.ref)
        assert world.state() == before
        world.work("chmod 0500 .")
        world.restore(first.ref)
        assert stat.S_IMODE(world.sandbox.stat().st_mode) == 0o500

    try:
        assert _in_child(task) == 0
    finally:
        shutil.rmtree(top, ignore_errors=True)


@needs_root
def test_owners_come_back_with_the_bits_that_lend_their_rights(world) -> None:
    path = world.sandbox / "tool"
    path.write_text("x")
    os.chown(path, NOBODY, NOBODY)
    path.chmod(0o4755)
    first = world.capture()
    path.unlink()
    world.restore(first.ref)
    found = path.stat()
    assert (found.st_uid, stat.S_IMODE(found.st_mode)) == (NOBODY, 0o4755)


def test_a_restore_killed_anywhere_can_be_done_again(world) -> None:
    world.work("for i in 1 2 3 4 5 6 7 8; do mkdir -p d$i/e; echo $i > d$i/e/f; done")
    first, before = world.capture(), world.state()
    world.work("rm -r d1 d2 src; echo x > src; for i in 3 4 5; do echo new > d$i/e/f; done")
    world.work("git switch -qc topic; git add -A; chmod 0500 d7; mkdir -p n/e/w; echo > n/e/w/f")
    second, after = world.capture(), world.state()
    killed = 0
    for attempt in range(40):
        wanted, state = ((first, before), (second, after))[attempt % 2]
        status = _in_child(
            lambda ref=wanted.ref: world.new_process().restore(world.resource, ref) and None,
            0.002 + 0.0015 * attempt,
        )
        killed += os.WIFSIGNALED(status)
        world.new_process()
        restored = world.restore(wanted.ref)
        assert world.state() == state
        assert restored.snapshot.state_hash == wanted.state_hash
        world.work("git status --porcelain")
    assert killed > 5
    world.verify(first.ref, first.state_hash)
    world.verify(second.ref, second.state_hash)


def test_scratch_on_another_file_system(world) -> None:
    shm = Path("/dev/shm")
    if not shm.is_dir() or shm.stat().st_dev == world.sandbox.stat().st_dev:
        pytest.skip("there is no second file system to write to")
    first, before = world.capture(), world.state()
    world.work("rm -r src a.txt link; mkdir link")
    scratch = tempfile.mkdtemp(dir=shm)
    try:
        bench = workbench(world.top)
        bench.scratch = scratch
        world.store = CheckpointManager(ResourceAdapters(bench))
        world.restore(first.ref)
    finally:
        shutil.rmtree(scratch)
    assert world.state() == before
