"""Applying to a folder: it becomes the sandbox, and what the user changed is a conflict."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
from fs_apply_world import WORK, begun, quick
from fs_world import FolderWorld, inodes, tree, world
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cleveragents.domain.changes import ResourceDiff
from cleveragents.domain.errors import ApplyConflictError, ApplyRefusedError, ProjectMissingError

__all__ = ["world"]


# --- what apply does ----------------------------------------------------------------------------


def test_apply_makes_the_project_equal_to_the_sandbox(world: FolderWorld) -> None:
    begun(world)
    world.work(WORK)
    prepared = world.prepare()
    before = tree(world.project)
    ref = world.carry_out(prepared)
    assert before != tree(world.project) == tree(world.sandbox)
    assert ref.startswith("folder:sha256:")
    assert world.carry_out(prepared) == ref  # and may be repeated
    assert tree(world.project) == tree(world.sandbox)


def test_what_did_not_change_keeps_inode_and_time(world: FolderWorld) -> None:
    begun(world)
    before = inodes(world.project)
    world.work(WORK)
    world.apply()
    after = inodes(world.project)
    kept = {name for name in before if before[name] == after.get(name)}
    assert kept == {"keep/k", "d/sub/s", "run", "mode"}  # of the last two only the mode changed


def test_a_written_file_has_the_time_it_has_in_the_sandbox(world: FolderWorld) -> None:
    begun(world)
    world.work("echo new > d/new; touch -d 2003-04-05 d/new; echo two > a")
    world.apply()
    for name in ("a", "d/new"):
        times = {(top / name).stat().st_mtime_ns for top in (world.project, world.sandbox)}
        assert len(times) == 1


def test_an_apply_without_changes_touches_nothing(world: FolderWorld) -> None:
    begun(world)
    before, names = inodes(world.project), tree(world.project)
    prepared = world.prepare()
    assert prepared.diff == ResourceDiff()
    world.carry_out(prepared)
    assert (inodes(world.project), tree(world.project)) == (before, names)


def test_work_of_the_users_elsewhere_stays(world: FolderWorld) -> None:
    begun(world)
    world.work("echo two > a; echo new > d/new")
    world.in_project("echo mine > mine; echo more >> keep/k; echo x > d/mine; rm -r gone")
    world.apply()
    expected = {b"a": b"two\n", b"d/new": b"new\n", b"mine": b"mine\n", b"d/mine": b"x\n"}
    found = tree(world.project)
    assert {path: found[path][2] for path in expected} == expected
    assert found[b"keep/k"][2] == b"k\nmore\n"
    assert b"gone" not in found


def test_what_the_user_did_likewise_is_no_conflict(world: FolderWorld) -> None:
    begun(world)
    world.work("echo two > a; rm d/b; mkdir same; echo 1 > same/f")
    world.in_project("echo two > a; rm d/b; mkdir same; echo 1 > same/f")
    before = inodes(world.project)
    world.apply()
    assert inodes(world.project) == before


def test_the_diff_of_an_apply_outlives_sandbox_and_snapshots(world: FolderWorld) -> None:
    begun(world)
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
    begun(world)
    world.work(plan)
    world.in_project(user)
    assert _refused(world) == names


def test_a_conflict_says_where_both_versions_are(world: FolderWorld) -> None:
    begun(world)
    world.work("echo two > a")
    world.in_project("echo mine > a")
    with pytest.raises(ApplyConflictError) as caught:
        world.prepare()
    assert str(world.sandbox) in caught.value.hint
    assert "--branch" not in caught.value.hint


def test_a_project_that_has_gone_or_is_a_link_now_is_refused(world: FolderWorld) -> None:
    begun(world)
    world.work("echo two > a")
    elsewhere = world.root / "elsewhere"
    world.project.rename(elsewhere)
    with pytest.raises(ProjectMissingError):
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
    with tempfile.TemporaryDirectory(dir=quick()) as top:
        made = FolderWorld(Path(top) / "w")
        for step in start:
            _edit(made.project, *step)
        made.begin()
        for step in edits:
            _edit(made.sandbox, *step)
        wanted = tree(made.sandbox)
        made.apply()
        assert tree(made.project) == wanted
