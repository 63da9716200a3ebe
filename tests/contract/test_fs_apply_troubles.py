"""Applying to a folder: races, full disks, damage, kills and errors end in all or nothing."""

import os
import shutil
import signal
import sqlite3
import subprocess
import tempfile
from collections.abc import Callable, Generator, Mapping
from contextlib import closing
from pathlib import Path

import pytest
from fs_apply_world import BEGIN, WORK, begun, quick
from fs_world import FolderWorld, Tree, inodes, tree, world
from tests.support.kill_points import THOROUGH

from cleveragents.domain.apply import PreparedApply
from cleveragents.domain.errors import ApplyConflictError, ApplyEditsKeptError, ApplyRefusedError
from cleveragents.infrastructure.files.entry import Entry
from cleveragents.infrastructure.sandbox.folder.apply.journal import ApplyJournal
from cleveragents.infrastructure.sandbox.folder.apply.staging import FolderStage
from cleveragents.infrastructure.snapshots.tree.reader import TreeReader

__all__ = ["world"]


@pytest.fixture
def quick_path() -> Generator[Path]:
    """In memory if possible: what is shown here is order, and waiting for disks shows nothing."""
    with tempfile.TemporaryDirectory(dir=quick()) as top:
        yield Path(top)
        subprocess.run(["chmod", "-R", "u+rwx", top], check=True)


# --- the project moves while it is changed ------------------------------------------------------


def _carried_out_against(world: FolderWorld, work: str, user: Callable[[], object]) -> None:
    """Prepared in peace; then the user does something, and the apply must give up whole."""
    begun(world)
    world.work(work)
    prepared = world.prepare()
    user()
    before, names = inodes(world.project), tree(world.project)
    with pytest.raises(ApplyConflictError):
        world.carry_out(prepared)
    assert (inodes(world.project), tree(world.project)) == (before, names)


def test_a_change_after_the_check_gives_up_and_changes_nothing(world: FolderWorld) -> None:
    _carried_out_against(world, WORK, lambda: world.in_project("echo mine > a"))


def test_a_link_planted_for_a_folder_is_never_followed(world: FolderWorld) -> None:
    outside = world.root / "outside"
    outside.mkdir()
    (outside / "b").write_text("b\n")
    (outside / "sub").mkdir()

    def plant() -> None:
        shutil.rmtree(world.project / "d")
        (world.project / "d").symlink_to(outside)

    _carried_out_against(world, WORK, plant)
    assert sorted(p.name for p in outside.iterdir()) == ["b", "sub"]


def test_a_link_planted_for_a_file_is_never_written_through(world: FolderWorld) -> None:
    outside = world.root / "victim"
    outside.write_text("one\n")

    def plant() -> None:
        (world.project / "a").unlink()
        (world.project / "a").symlink_to(outside)

    _carried_out_against(world, WORK, plant)
    assert outside.read_text() == "one\n"


def test_a_link_in_the_place_of_our_own_folder_is_refused(world: FolderWorld) -> None:
    begun(world)
    world.work(WORK)
    prepared = world.prepare()
    outside = world.root / "outside"
    outside.mkdir()
    stage = world.project / f".cleveragents-apply-{world.resource.resource_id}"
    stage.symlink_to(outside)
    before = tree(world.project)
    with pytest.raises(ApplyRefusedError, match="in the way"):
        world.carry_out(prepared)
    assert tree(world.project) == before
    assert list(outside.iterdir()) == []


def test_a_disk_that_fills_up_changes_nothing(tmp_path: Path) -> None:
    world = FolderWorld(tmp_path / "w")
    command = ["mount", "-t", "tmpfs", "-o", "size=2m", "none", str(world.project)]
    if subprocess.run(command, check=False, capture_output=True).returncode:
        pytest.skip("no tmpfs can be mounted here")
    try:
        begun(world)
        world.work(WORK)
        world.work("head -c 3000000 /dev/urandom > zz-big")
        prepared = world.prepare()
        before, names = inodes(world.project), tree(world.project)
        with pytest.raises(ApplyRefusedError, match="is as it was.*No space left"):
            world.carry_out(prepared)
        assert (inodes(world.project), tree(world.project)) == (before, names)
    finally:
        subprocess.run(["umount", str(world.project)], check=True)


def test_a_damaged_snapshot_changes_nothing(world: FolderWorld) -> None:
    begun(world)
    world.work("head -c 70000 /dev/urandom > big; rm a")
    prepared = world.prepare()
    world.snapshots.close()
    with closing(sqlite3.connect(next((world.root / "data/snapshots").glob("*.db")))) as store:
        store.execute("UPDATE contents SET data = zeroblob(70000) WHERE length(data) > 60000")
        store.commit()
    before = tree(world.project)
    with pytest.raises(ApplyRefusedError):
        world.carry_out(prepared)
    assert tree(world.project) == before


# --- killed -------------------------------------------------------------------------------------


def _template(root: Path) -> tuple[FolderWorld, PreparedApply]:
    made = FolderWorld(root)
    made.in_project(BEGIN + "mkdir shut; echo x > shut/x; chmod 555 shut")
    made.begin()
    made.work(WORK + "chmod 755 shut; echo y > shut/x; chmod 555 shut; mkdir -m 555 ro")
    return made, made.prepare()


class Killed:
    """An apply in a child process that is killed before its n-th change to the file system."""

    def __init__(self, root: Path) -> None:
        self.world, self.prepared = _template(root)
        self.before = tree(self.world.project)
        self.after = tree(self.world.sandbox)
        self.backup = root / "backup"
        shutil.copytree(self.world.project, self.backup, symlinks=True)

    def reset(self) -> None:
        """As if nothing had been applied yet."""
        self.world.sandbox.with_name("assets.apply").unlink(missing_ok=True)
        subprocess.run(["chmod", "-R", "u+rwx", str(self.world.project)], check=True)
        subprocess.run(["rm", "-rf", str(self.world.project)], check=True)
        subprocess.run(["cp", "-a", str(self.backup), str(self.world.project)], check=True)

    def run(self, changes: int) -> bool:
        """True if it was killed. A fork: what it patches is its own."""
        child = os.fork()
        if not child:
            _child(self.world, self.prepared, changes)
        _, status = os.waitpid(child, 0)
        assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0
        return os.WIFSIGNALED(status)


def _child(world: FolderWorld, prepared: PreparedApply, changes: int) -> None:
    left = [changes]

    def counted(real: Callable[..., object]) -> Callable[..., object]:
        def call(*args: object, **keys: object) -> object:
            left[0] -= 1
            if left[0] < 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return real(*args, **keys)

        return call

    for name in ("rename", "unlink", "rmdir", "mkdir", "link", "symlink", "fchmod"):
        setattr(os, name, counted(getattr(os, name)))
    code = 1
    try:
        world.carry_out(prepared)
        code = 0
    finally:
        os._exit(code)


def test_an_apply_killed_anywhere_is_finished_by_its_repetition(quick_path: Path) -> None:
    killed = Killed(quick_path / "w")
    points = 0
    while killed.run(points):
        killed.world.carry_out(killed.prepared)
        assert tree(killed.world.project) == killed.after, points
        killed.reset()
        points += min(THOROUGH, 4)
    assert points > 60


def test_an_apply_killed_anywhere_is_undone_if_the_user_has_moved_on(quick_path: Path) -> None:
    killed = Killed(quick_path / "w")
    mine: Tree = {b"mode": ("file", 0o644, b"mine\n")}
    points, undone = 0, 0
    while killed.run(points):
        (killed.world.project / "mode").chmod(0o644)
        (killed.world.project / "mode").write_text("mine\n")
        try:
            killed.world.carry_out(killed.prepared)
        except ApplyConflictError as error:
            assert error.files == ("mode",)
            assert tree(killed.world.project) == {**killed.before, **mine}, points
            undone += 1
        else:  # it was over when it was killed, and the user has worked on what was applied
            assert tree(killed.world.project) == {**killed.after, **mine}, points
        killed.reset()
        points += min(3 * THOROUGH, 8)
    assert undone > 5


def test_an_apply_killed_twice_is_still_finished(quick_path: Path) -> None:
    killed = Killed(quick_path / "w")
    for first in range(40, 90, 10):
        for second in range(first % 4 * 6, 60, 12 * min(THOROUGH, 2)):
            assert killed.run(first)
            killed.run(second)
            killed.world.carry_out(killed.prepared)
            assert tree(killed.world.project) == killed.after
            killed.reset()


@pytest.mark.parametrize("number", range(0, 60, 4))
def test_an_error_anywhere_puts_everything_back(
    quick_path: Path, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, prepared = _template(quick_path / "w")
    before, kept = tree(made.project), inodes(made.project)
    left = [number]
    for name in ("rename", "unlink", "rmdir", "mkdir"):
        monkeypatch.setattr(os, name, _failing_once(getattr(os, name), left))
    try:
        made.carry_out(prepared)
        return  # more points than there are changes
    except ApplyRefusedError as error:
        assert "is as it was" in error.message
    finally:
        monkeypatch.undo()
    assert tree(made.project) == before
    # Not only the same bytes: the user's own files are back, with their times.
    assert inodes(made.project) == kept


def _failing_once(real: Callable[..., object], left: list[int]) -> Callable[..., object]:
    def call(*args: object, **keys: object) -> object:
        left[0] -= 1
        if left[0] == -1:
            raise OSError(5, "Input/output error")
        return real(*args, **keys)

    return call


def test_what_somebody_types_while_it_fails_is_kept_and_named(
    quick_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, prepared = _template(quick_path / "w")
    before = tree(made.project)
    real = ApplyJournal.finish

    def type_and_fail(self: ApplyJournal) -> None:
        real(self)
        made.in_project("echo typed > a")
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(ApplyJournal, "finish", type_and_fail)
    with pytest.raises(ApplyEditsKeptError) as caught:
        made.carry_out(prepared)
    assert caught.value.files == ("a",)
    assert (made.project / "a").read_text() == "typed\n"
    del before[b"a"]
    assert {path: fact for path, fact in tree(made.project).items() if path != b"a"} == before


def test_a_change_between_looking_and_keeping_gives_up_whole(
    quick_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, prepared = _template(quick_path / "w")
    real = FolderStage.fill

    def fill_and_type(self: FolderStage, reader: TreeReader, wanted: Mapping[bytes, Entry]) -> None:
        real(self, reader, wanted)
        made.in_project("echo typed > a")

    monkeypatch.setattr(FolderStage, "fill", fill_and_type)
    before = tree(made.project)
    with pytest.raises(ApplyConflictError):
        made.carry_out(prepared)
    assert (made.project / "a").read_text() == "typed\n"
    assert {p: f for p, f in tree(made.project).items() if p != b"a"} == {
        p: f for p, f in before.items() if p != b"a"
    }


def test_what_was_kept_and_is_lost_comes_back_from_the_snapshots(quick_path: Path) -> None:
    made, prepared = _template(quick_path / "w")
    before = tree(made.project)
    made.registry.carry_out(made.resource, prepared)
    for kept in _stage_of(made).iterdir():
        kept.unlink()
    assert made.registry.revert(made.resource, prepared) == ()
    made.registry.finish(made.resource, prepared)
    assert tree(made.project) == before


def test_what_can_come_from_nowhere_is_named_and_comes_later(
    quick_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, prepared = _template(quick_path / "w")
    before = tree(made.project)
    made.registry.carry_out(made.resource, prepared)
    for kept in _stage_of(made).iterdir():
        kept.unlink()

    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(FolderStage, "fill", refuse)
        with pytest.raises(ApplyRefusedError, match="not all of it could be put back: a"):
            made.registry.revert(made.resource, prepared)
    assert made.registry.revert(made.resource, prepared) == ()
    made.registry.finish(made.resource, prepared)
    assert tree(made.project) == before


def _stage_of(made: FolderWorld) -> Path:
    return made.project / f".cleveragents-apply-{made.resource.resource_id}"
