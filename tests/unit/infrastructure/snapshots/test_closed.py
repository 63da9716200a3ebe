"""What its owner closed to himself: opened by a helper, or by a mode that is lent for a moment."""

import os
import signal
import stat
import sys
import time
from collections.abc import Callable, Generator
from pathlib import Path

import pytest

from cleveragents.domain.errors import SnapshotFailedError
from cleveragents.infrastructure.files import closed_opener as closed
from cleveragents.infrastructure.files import lent_modes
from cleveragents.infrastructure.files.closed_files import open_closed
from cleveragents.infrastructure.files.lent_modes import LENT, Lender, put_back
from cleveragents.infrastructure.files.rooted_folder import FILE_FLAGS, RootedFolder

NOBODY = 65534
FOLDER = os.O_RDONLY | os.O_DIRECTORY
ordinary = pytest.mark.skipif(os.geteuid() == 0, reason="no mode stops root")


@pytest.fixture
def top(tmp_path: Path) -> Generator[Path]:
    """`in/deep/f` below two closed folders, and a closed `x`."""
    top = tmp_path / "box"
    (top / "in" / "deep").mkdir(parents=True)
    (top / "in" / "deep" / "f").write_text("inside")
    (top / "in" / "deep" / "l").symlink_to("f")
    (top / "x").write_text("closed")
    close(top)
    yield top
    for name in ("", "in", "in/deep"):
        (top / name).chmod(0o700)


def close(top: Path) -> None:
    for name, mode in (("x", 0), ("in/deep", 0o100), ("in", 0)):
        (top / name).chmod(mode)


def modes(top: Path) -> dict[str, int]:
    found = {name: stat.S_IMODE((top / name).lstat().st_mode) for name in ("", "x", "in")}
    (top / "in").chmod(0o700)
    found["in/deep"] = stat.S_IMODE((top / "in/deep").lstat().st_mode)
    (top / "in").chmod(found["in"])
    return found


CLOSED = {"": 0o755, "x": 0, "in": 0, "in/deep": 0o100}


@pytest.fixture
def no_helper(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a machine that gives nobody a user namespace."""
    monkeypatch.setattr(sys, "executable", "/bin/false")
    monkeypatch.setattr(closed, "HELPERS", closed._Helpers())


def read(anchor: RootedFolder, path: bytes) -> bytes:
    fd = anchor.open(path)
    try:
        return os.read(fd, 100)
    finally:
        os.close(fd)


# --- by the helper --------------------------------------------------------------------------------


def test_nothing_of_a_closed_path_is_changed_when_it_is_read(top: Path) -> None:
    (top / "in").chmod(0o700)
    before = [(top / name).lstat().st_ctime_ns for name in ("x", "in/deep")]
    with RootedFolder(str(top)) as anchor:
        assert read(anchor, b"x") == b"closed"
        assert read(anchor, b"in/deep/f") == b"inside"
        assert anchor.link_target(b"in/deep/l") == b"f"
        assert stat.S_ISLNK(anchor.status(b"in/deep/l").st_mode)
        assert set(os.listdir(anchor.folder(b"in/deep"))) == {"f", "l"}  # noqa: PTH208
    assert [(top / name).lstat().st_ctime_ns for name in ("x", "in/deep")] == before


def test_a_closed_root_is_read(top: Path) -> None:
    top.chmod(0)
    with RootedFolder(str(top)) as anchor:
        assert read(anchor, b"in/deep/f") == b"inside"
    assert stat.S_IMODE(top.stat().st_mode) == 0


def test_a_link_is_not_followed_and_nothing_is_nothing(top: Path) -> None:
    with RootedFolder(str(top)) as anchor:
        folder = anchor.folder(b"in/deep")
        with pytest.raises(OSError, match="Too many levels"):
            open_closed(folder, b"l", FILE_FLAGS)
        with pytest.raises(FileNotFoundError):
            anchor.open(b"in/deep/none")
        with pytest.raises(FileNotFoundError):
            anchor.status(b"in/deep/none")


@ordinary
def test_what_is_somebody_elses_stays_closed() -> None:
    with RootedFolder("/etc") as anchor, pytest.raises(PermissionError):
        anchor.open(b"shadow")


def test_a_helper_that_was_killed_is_replaced(top: Path) -> None:
    folder = os.open(top, FOLDER)
    try:
        os.close(open_closed(folder, b"x", FILE_FLAGS))
        helper = closed.HELPERS._helper
        assert helper is not None
        os.kill(helper._process.pid, signal.SIGKILL)
        helper._process.wait()
        fd = open_closed(folder, b"x", FILE_FLAGS)
        assert os.read(fd, 100) == b"closed"
        os.close(fd)
    finally:
        os.close(folder)


def test_an_answer_that_nobody_waited_for_is_not_taken_for_another(top: Path) -> None:
    """As after Ctrl-C between question and answer."""
    folder = os.open(top, FOLDER)
    try:
        os.close(open_closed(folder, b"x", FILE_FLAGS))
        helper = closed.HELPERS._helper
        assert helper is not None
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(helper, "_answer", _interrupted)
            with pytest.raises(KeyboardInterrupt):
                open_closed(folder, b"in", FOLDER)
        fd = open_closed(folder, b"x", FILE_FLAGS)
        assert os.read(fd, 100) == b"closed"
        os.close(fd)
    finally:
        os.close(folder)


def _interrupted(number: int) -> tuple[int, list[int]]:
    raise KeyboardInterrupt(number)


def test_a_fork_has_a_helper_of_its_own(top: Path) -> None:
    folder = os.open(top, FOLDER)
    os.close(open_closed(folder, b"x", FILE_FLAGS))
    ours = closed.HELPERS._helper

    def task() -> None:
        os.close(open_closed(folder, b"x", FILE_FLAGS))
        assert closed.HELPERS._helper is not ours

    try:
        assert in_child(task) == 0
        os.close(open_closed(folder, b"x", FILE_FLAGS))
        assert closed.HELPERS._helper is ours
    finally:
        os.close(folder)


def in_child(task: Callable[[], None], kill_after: float = 0.0) -> int:
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
            os._exit(status)
    return os.waitpid(pid, 0)[1]


# --- by modes that are lent -----------------------------------------------------------------------


@ordinary
@pytest.mark.usefixtures("no_helper")
def test_without_a_helper_only_a_sandbox_lends_modes(top: Path) -> None:
    with RootedFolder(str(top)) as anchor, pytest.raises(PermissionError):
        anchor.open(b"x")
    assert modes(top) == CLOSED
    with RootedFolder(str(top), sandbox=True) as anchor:
        assert read(anchor, b"x") == b"closed"
        assert read(anchor, b"in/deep/f") == b"inside"
        assert anchor.link_target(b"in/deep/l") == b"f"
        with pytest.raises(FileNotFoundError):
            anchor.open(b"in/deep/none")
        with pytest.raises(OSError, match="Too many levels"):
            anchor.open(b"in/deep/l")
    assert modes(top) == CLOSED
    top.chmod(0)
    with RootedFolder(str(top), sandbox=True) as anchor:
        assert read(anchor, b"x") == b"closed"
    assert stat.S_IMODE(top.stat().st_mode) == 0
    assert Path(f"{top}{LENT}").stat().st_size == 0


def test_what_a_killed_process_had_lent_is_put_back_by_the_next(top: Path) -> None:
    def task() -> None:
        lender = Lender(os.fsencode(top))
        for path in (b"x", b"in", b"in/deep"):
            fd = os.open(top / os.fsdecode(path), os.O_PATH)
            lender.lend(fd, path, 0o700)
        os.kill(os.getpid(), signal.SIGKILL)

    assert os.WIFSIGNALED(in_child(task))
    assert modes(top) == {"": 0o755, "x": 0o700, "in": 0o700, "in/deep": 0o700}
    with RootedFolder(str(top), sandbox=True):
        pass
    assert modes(top) == CLOSED
    assert Path(f"{top}{LENT}").stat().st_size == 0


def test_what_a_killed_process_had_lent_and_others_changed_stays_changed(top: Path) -> None:
    def task() -> None:
        lender = Lender(os.fsencode(top))
        lender.lend(os.open(top / "x", os.O_PATH), b"x", 0o400)
        lender.lend(os.open(top / "in", os.O_PATH), b"in", 0o500)
        os.kill(os.getpid(), signal.SIGKILL)

    in_child(task)
    (top / "x").unlink()
    (top / "in").chmod(0o755)
    put_back(os.fsencode(top))
    assert stat.S_IMODE((top / "in").stat().st_mode) == 0o755
    assert not (top / "x").exists()


def test_a_line_that_was_cut_off_is_of_nothing_that_was_lent(top: Path) -> None:
    note = Path(os.fsdecode(lent_modes.note_beside(os.fsencode(top))))
    note.write_text("0 78\n0 6")
    (top / "x").chmod(0o400)
    put_back(os.fsencode(top))
    assert modes(top) == CLOSED


def test_nobody_takes_back_what_a_living_process_has_lent(top: Path) -> None:
    lender = Lender(os.fsencode(top))
    fd = os.open(top / "x", os.O_PATH)
    lender.lend(fd, b"x", 0o400)
    with RootedFolder(str(top), sandbox=True):
        pass
    assert modes(top)["x"] == 0o400
    Path(f"/proc/self/fd/{fd}").chmod(0)
    os.close(fd)
    lender.forget()
    lender.close()


@ordinary
@pytest.mark.usefixtures("no_helper")
def test_killed_anywhere_a_capture_leaves_the_modes_as_they_were(world) -> None:
    world.work("mkdir -p in/deep; echo f > in/deep/f; echo x > x; chmod 0 x in/deep in")
    first = world.capture()
    killed = 0
    for attempt in range(30):
        killed += os.WIFSIGNALED(
            in_child(
                lambda: world.new_process().capture(world.resource) and None,
                0.004 + 0.0007 * attempt,
            )
        )
        time.sleep(0.002)
        assert world.new_process().capture(world.resource).state_hash == first.state_hash
    assert killed > 5
    assert stat.S_IMODE((world.sandbox / "x").lstat().st_mode) == 0
    world.work("chmod -R u+rwX .")


@ordinary
@pytest.mark.usefixtures("no_helper")
def test_what_cannot_be_lent_is_named(world, monkeypatch: pytest.MonkeyPatch) -> None:
    world.work("echo x > x; chmod 0 x")
    monkeypatch.setattr(lent_modes, "note_beside", lambda _: b"/proc/no/such/place")
    with pytest.raises(SnapshotFailedError, match="'x'"):
        world.capture()
