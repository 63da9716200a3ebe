import os
import shutil
import signal
import sqlite3
import subprocess
import tempfile
from collections.abc import Callable, Generator
from contextlib import closing
from pathlib import Path

import pytest
from fs_world import FolderWorld, Tree, inodes, tree, world
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support.kill_points import THOROUGH

from cleveragents.domain.applying import PreparedApply
from cleveragents.domain.changes import ResourceDiff
from cleveragents.domain.errors import ApplyConflictError, ApplyRefusedError

__all__ = ["world"]

BEGIN = """
mkdir -p d/sub empty keep gone/deep; echo one > a; echo b > d/b; echo s > d/sub/s; echo k > keep/k
echo g > gone/deep/g; echo gg > gone/gg; ln -s a link; printf r > run; echo swap > swap
echo m > mode
printf 'bad' > "$(printf 'n\\377')"
"""
WORK = """
echo two > a; rm d/b; echo new > d/new; rm -r gone; echo file > gone; rm swap; mkdir swap
echo in > swap/in; rm link; ln -s keep/k link; chmod 700 run; mkdir -p x/y/z; echo deep > x/y/z/f
rmdir empty; chmod 600 mode; mkdir -m 700 hollow; printf 'n
l' > 'new
line'; printf d > ./-dash; printf 'worse' > "$(printf 'n\\377')"; chmod 750 d/sub
"""


@pytest.fixture
def quick_path() -> Generator[Path]:
    """In memory if possible: what is shown here is order, and waiting for disks shows nothing."""
    with tempfile.TemporaryDirectory(dir=_quick()) as top:
        yield Path(top)
        subprocess.run(["chmod", "-R", "u+rwx", top], check=True)


def _quick() -> Path | None:
    shm = Path("/dev/shm")
    return shm if os.access(shm, os.W_OK) else None


def _begun(world: FolderWorld, *exclude: str) -> None:
    world.in_project(BEGIN)
    world.begin(*exclude)


# --- what apply does ----------------------------------------------------------------------------


def test_apply_makes_the_project_equal_to_the_sandbox(world: FolderWorld) -> None:
    _begun(world)
    world.work(WORK)
    prepared = world.prepare()
    before = tree(world.project)
    ref = world.carry_out(prepared)
    assert before != tree(world.project) == tree(world.sandbox)
    assert ref.startswith("folder:sha256:")
    assert world.carry_out(prepared) == ref  # and may be repeated
    assert tree(world.project) == tree(world.sandbox)


def test_what_did_not_change_keeps_inode_and_time(world: FolderWorld) -> None:
    _begun(world)
    before = inodes(world.project)
    world.work(WORK)
    world.apply()
    after = inodes(world.project)
    kept = {name for name in before if before[name] == after.get(name)}
    assert kept == {"keep/k", "d/sub/s", "run", "mode"}  # of the last two only the mode changed


def test_a_written_file_has_the_time_it_has_in_the_sandbox(world: FolderWorld) -> None:
    _begun(world)
    world.work("echo new > d/new; touch -d 2003-04-05 d/new; echo two > a")
    world.apply()
    for name in ("a", "d/new"):
        times = {(top / name).stat().st_mtime_ns for top in (world.project, world.sandbox)}
        assert len(times) == 1


def test_an_apply_without_changes_touches_nothing(world: FolderWorld) -> None:
    _begun(world)
    before, names = inodes(world.project), tree(world.project)
    prepared = world.prepare()
    assert prepared.diff == ResourceDiff()
    world.carry_out(prepared)
    assert (inodes(world.project), tree(world.project)) == (before, names)


def test_work_of_the_users_elsewhere_stays(world: FolderWorld) -> None:
    _begun(world)
    world.work("echo two > a; echo new > d/new")
    world.in_project("echo mine > mine; echo more >> keep/k; echo x > d/mine; rm -r gone")
    world.apply()
    expected = {b"a": b"two\n", b"d/new": b"new\n", b"mine": b"mine\n", b"d/mine": b"x\n"}
    found = tree(world.project)
    assert {path: found[path][2] for path in expected} == expected
    assert found[b"keep/k"][2] == b"k\nmore\n"
    assert b"gone" not in found


def test_what_the_user_did_likewise_is_no_conflict(world: FolderWorld) -> None:
    _begun(world)
    world.work("echo two > a; rm d/b; mkdir same; echo 1 > same/f")
    world.in_project("echo two > a; rm d/b; mkdir same; echo 1 > same/f")
    before = inodes(world.project)
    world.apply()
    assert inodes(world.project) == before


def test_the_diff_of_an_apply_outlives_sandbox_and_snapshots(world: FolderWorld) -> None:
    _begun(world)
    world.work(WORK)
    prepared = world.prepare()
    shown = world.registry.diff(world.resource)
    assert prepared.diff == shown
    ref = world.carry_out(prepared)
    world.registry.remove(world.resource)
    world.snapshots.forget(world.resource.plan_id)
    assert world.applied(prepared, ref) == shown


def test_a_closed_folder_is_opened_for_the_change_and_closed_again(world: FolderWorld) -> None:
    world.in_project(
        "mkdir -p shut/in other; echo a > shut/in/a; chmod 555 shut shut/in; chmod 500 other"
    )
    world.begin()
    world.work("chmod 755 shut/in; echo b > shut/in/a; chmod 555 shut/in; chmod 700 other")
    world.work("echo n > other/n; chmod 511 other")
    world.apply()
    assert tree(world.project) == tree(world.sandbox)
    assert tree(world.project)[b"shut/in"][1] == 0o555


def test_a_replaced_file_keeps_its_group_and_a_new_one_follows_its_folder(
    world: FolderWorld,
) -> None:
    try:
        os.chown(world.project, 4242, 4242)
    except PermissionError:
        pytest.skip("only root may give files away")
    world.in_project("echo a > a; mkdir team; chgrp 4242 a team; chmod 2775 team; chown 4243 a")
    world.begin()
    world.work("echo b > a.new; mv a.new a; echo n > team/n; mkdir team/sub")
    world.apply()
    found = (world.project / "a").stat()
    assert (found.st_uid, found.st_gid) == (4243, 4242)
    assert (world.project / "team/n").stat().st_gid == 4242
    assert tree(world.project) == tree(world.sandbox)


def test_another_file_system_mounted_in_the_project_is_written_to(world: FolderWorld) -> None:
    mount = world.project / "mounted"
    mount.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=1m", "none", str(mount)]
    if subprocess.run(command, check=False, capture_output=True).returncode:
        pytest.skip("no tmpfs can be mounted here")
    try:
        world.in_project("chmod 755 mounted; echo a > mounted/a; echo g > mounted/gone")
        world.begin()
        world.work("cd mounted; echo b > a; rm gone; mkdir -m 711 new; echo n > new/n; ln -s a l")
        world.apply()
        assert tree(world.project) == tree(world.sandbox)
    finally:
        subprocess.run(["umount", str(mount)], check=True)


# --- conflicts ----------------------------------------------------------------------------------


def _refused(world: FolderWorld) -> tuple[str, ...]:
    before, names = inodes(world.project), tree(world.project)
    with pytest.raises(ApplyConflictError) as caught:
        world.prepare()
    assert (inodes(world.project), tree(world.project)) == (before, names)
    return caught.value.files


CONFLICTS = {
    "both edited": ("echo two > a", "echo mine > a", ("a",)),
    "same size, same time": ("echo two > a", "touch -r a t; echo eno > a; touch -r t a", ("a",)),
    "mode changed": ("echo two > a", "chmod 600 a", ("a",)),
    "deleted there": ("echo two > a", "rm a", ("a",)),
    "edited there, deleted here": ("rm a", "echo mine > a", ("a",)),
    "both made it": ("echo 1 > n", "echo 2 > n", ("n",)),
    "made a folder there": ("echo 1 > n", "mkdir n", ("n",)),
    "link retargeted": ("ln -sf d link", "ln -sf nowhere link", ("link",)),
    "folder gone": ("echo n > d/new", "rm -r d", ("d/new",)),
    "folder is a file now": ("echo n > d/new", "rm -r d; echo x > d", ("d/new",)),
    "folder is a link now": ("echo n > d/sub/new", "mv d e; ln -s e d", ("d/sub/new",)),
    "new file in a folder that goes": ("rm -r gone", "echo m > gone/deep/m", ("gone/deep/m",)),
    "new folder in one that goes": ("rm -r gone", "mkdir gone/mine", ("gone/mine",)),
    "pipe": ("echo n > n", "mkfifo n", ("n",)),
    "pipe in a folder that goes": ("rm -r gone", "mkfifo gone/p", ("gone/p",)),
    "folder mode": ("chmod 700 d", "chmod 711 d", ("d",)),
    "several": ("echo 2 > a; rm d/b; echo n > n", "echo m > a; echo m > d/b", ("a", "d/b")),
}


@pytest.mark.parametrize("case", CONFLICTS)
def test_what_the_user_changed_meanwhile_is_a_conflict_by_name(
    world: FolderWorld, case: str
) -> None:
    plan, user, names = CONFLICTS[case]
    _begun(world)
    world.work(plan)
    world.in_project(user)
    assert _refused(world) == names


def test_a_conflict_says_where_both_versions_are(world: FolderWorld) -> None:
    _begun(world)
    world.work("echo two > a")
    world.in_project("echo mine > a")
    with pytest.raises(ApplyConflictError) as caught:
        world.prepare()
    assert str(world.sandbox) in caught.value.hint
    assert "--branch" not in caught.value.hint


def test_a_project_that_has_gone_or_is_a_link_now_is_refused(world: FolderWorld) -> None:
    _begun(world)
    world.work("echo two > a")
    elsewhere = world.root / "elsewhere"
    world.project.rename(elsewhere)
    with pytest.raises(ApplyRefusedError, match="cannot be read"):
        world.prepare()
    world.project.symlink_to(elsewhere)
    with pytest.raises(ApplyRefusedError, match="cannot be read"):
        world.prepare()
    assert (elsewhere / "a").read_text() == "one\n"


def test_excluded_files_of_the_users_stay_even_if_their_folder_goes(world: FolderWorld) -> None:
    world.in_project(
        "mkdir -p logs/old other; echo l > logs/old/a.log; echo t > logs/t; echo o > other/o"
    )
    world.begin("*.log")
    world.work("rm -r logs other")
    world.apply()
    assert set(tree(world.project)) == {b"logs", b"logs/old", b"logs/old/a.log"}


def test_excluded_files_are_never_lost_to_a_file_in_their_folders_place(
    world: FolderWorld,
) -> None:
    world.in_project("mkdir -p logs/old; echo l > logs/old/a.log; echo t > logs/t")
    world.begin("*.log")
    world.work("rm -r logs; echo file > logs")
    assert _refused(world) == ("logs/old/a.log",)


def test_a_folder_in_which_the_plan_only_made_excluded_files_stays(world: FolderWorld) -> None:
    world.in_project("mkdir logs; echo a > a")
    world.begin("*.log")
    world.work("echo l > logs/x.log; echo two > a")
    world.apply()
    assert set(tree(world.project)) == {b"a", b"logs"}


# --- the project moves while it is changed ------------------------------------------------------


def _carried_out_against(world: FolderWorld, work: str, user: Callable[[], object]) -> None:
    """Prepared in peace; then the user does something, and the apply must give up whole."""
    _begun(world)
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
    _begun(world)
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
        _begun(world)
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
    _begun(world)
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


# --- any edits ----------------------------------------------------------------------------------

NAMES = st.sampled_from([b"a", b"b", b"c/a", b"c", b"c/d", b"c/d/e", b"\xff", b"-x", b"n\nl"])
EDIT = st.one_of(
    st.tuples(st.just("write"), NAMES, st.binary(max_size=20)),
    st.tuples(st.just("link"), NAMES, st.sampled_from([b"a", b"..", b"/nowhere", b"c/d"])),
    st.tuples(st.just("folder"), NAMES, st.just(b"")),
    st.tuples(st.just("delete"), NAMES, st.just(b"")),
    st.tuples(st.just("mode"), NAMES, st.sampled_from([b"600", b"755", b"4700", b"2750"])),
)


def _edit(root: Path, what: str, name: bytes, value: bytes) -> None:
    path = Path(os.fsdecode(os.fsencode(root) + b"/" + name))
    if what == "mode":
        if path.exists() and not path.is_symlink():
            path.chmod(int(value, 8) | (0o700 if path.is_dir() else 0))
        return
    for folder in reversed(path.relative_to(root).parents[:-1]):
        if not (root / folder).is_dir() or (root / folder).is_symlink():
            _clear(root / folder)
            (root / folder).mkdir()
    _clear(path)
    if what == "write":
        path.write_bytes(value)
    elif what == "link":
        path.symlink_to(os.fsdecode(value))
    elif what == "folder":
        path.mkdir()


def _clear(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    path.unlink(missing_ok=True)


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow], database=None
)
@given(start=st.lists(EDIT, max_size=8), edits=st.lists(EDIT, max_size=8))
def test_any_edits_in_the_sandbox_reach_the_project_byte_for_byte(
    start: list[tuple[str, bytes, bytes]], edits: list[tuple[str, bytes, bytes]]
) -> None:
    with tempfile.TemporaryDirectory(dir=_quick()) as top:
        made = FolderWorld(Path(top) / "w")
        for step in start:
            _edit(made.project, *step)
        made.begin()
        for step in edits:
            _edit(made.sandbox, *step)
        wanted = tree(made.sandbox)
        made.apply()
        assert tree(made.project) == wanted
