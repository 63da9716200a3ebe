"""A folder as a resource: which can be used, and that its sandbox and states are exact copies."""

import os
import resource as limits
import socket
import stat
import subprocess
from pathlib import Path

import pytest
from fs_world import PLAN, FolderWorld, tree, world

from cleveragents.domain.errors import ResourceError, SandboxError, SandboxMissingError
from cleveragents.domain.resource_kinds import FS_DIRECTORY

__all__ = ["world"]

FIDELITY = r"""
mkdir -p deep/er empty 'closed folder' nested/.git/objects .git sgid
printf 'one\n' > a.txt; printf 'x' > deep/er/f; printf 's' > secret; printf r > run.sh
printf 'crlf\r\n' > windows.txt; head -c 100000 /dev/urandom > bin; : > nothing
printf q > 'quo"te'; printf n > 'new
line'; printf d > ./-dash; printf s > ' space '; printf u > "$(printf 'bad\377name')"
ln -s a.txt link; ln -s nowhere dangling; ln -s /etc/passwd outside; ln -s deep folder-link
printf 'ref: refs/heads/main\n' > .git/HEAD; printf c > nested/.git/config
ln a.txt twin; chmod 600 secret; chmod 755 run.sh; chmod 4711 deep/er/f; chmod 2775 sgid
chmod 555 'closed folder'; chmod 640 bin; touch -d '2001-02-03 04:05:06.789' secret deep empty
touch -h -d '2002-02-03 04:05:06' link
"""


# --- inspect ------------------------------------------------------------------------------------


def test_an_existing_folder_can_be_used(world: FolderWorld) -> None:
    world.in_project("echo a > a; mkdir b; echo 12 > b/c")
    found = world.inspect()
    assert found.location == str(world.project)
    assert found.base.startswith("folder:")
    assert found.notices == ()


def test_a_link_to_a_folder_is_resolved(world: FolderWorld) -> None:
    link = world.root / "link"
    link.symlink_to(world.project)
    assert world.inspect(link).location == str(world.project)


def test_what_is_no_usable_folder_is_refused_with_what_to_do(world: FolderWorld) -> None:
    file = world.root / "file"
    file.write_text("x")
    nowhere = world.root / "nowhere"
    nowhere.symlink_to("missing")
    circle = world.root / "circle"
    circle.symlink_to("circle")
    sandboxes = world.root / "data/sandboxes"
    sandboxes.mkdir(parents=True)
    said = {
        world.root / "missing": "does not exist",
        file: "is not a folder",
        nowhere: "leads nowhere",
        circle: "cannot be reached",
        Path("/"): "too much",
        sandboxes: "is inside the data directory",
        world.root: "contains the data directory",
    }
    for path, expected in said.items():
        with pytest.raises(ResourceError, match=expected) as caught:
            world.inspect(path)
        assert caught.value.hint


def test_the_home_folder_itself_is_refused(
    world: FolderWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(world.project))
    with pytest.raises(ResourceError, match="too much"):
        world.inspect()


def test_what_its_owner_closed_is_taken_along(world: FolderWorld) -> None:
    world.in_project("echo a > closed; chmod 000 closed")
    assert world.inspect().notices == ()
    world.begin()
    assert stat.S_IMODE((world.sandbox / "closed").stat().st_mode) == 0


def test_sockets_and_pipes_are_named_and_left_out(world: FolderWorld) -> None:
    os.mkfifo(world.project / "pipe")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(world.project / "s"))
    (notice,) = world.inspect().notices
    assert "pipe, s are sockets, pipes or devices and will be left out" in notice
    world.begin()
    assert tree(world.sandbox) == {}


def test_a_very_large_folder_is_mentioned(world: FolderWorld) -> None:
    with (world.project / "huge").open("wb") as file:
        file.truncate(3 * 1024**3)
    (notice,) = world.inspect().notices
    assert "all 1 files (3.0 GB) will be copied" in notice
    assert world.inspect(exclude=("huge",)).notices == ()


# --- create -------------------------------------------------------------------------------------


def _times(root: Path) -> dict[bytes, int]:
    return {path: os.lstat(os.fsencode(root) + b"/" + path).st_mtime_ns for path in tree(root)}


def test_a_sandbox_is_an_exact_copy_with_modes_times_links_and_any_name(world: FolderWorld) -> None:
    world.in_project(FIDELITY)
    before, times = tree(world.project), _times(world.project)
    world.begin()
    assert tree(world.sandbox) == before
    assert _times(world.sandbox) == times
    assert tree(world.project) == before
    assert world.changes() == {}


def test_the_sandbox_is_private_and_where_it_was_said_to_be(world: FolderWorld) -> None:
    world.in_project("echo a > a")
    world.begin()
    place = world.registry.path_for(PLAN, "assets", FS_DIRECTORY.type)
    assert world.resource.sandbox_path == place
    assert stat.S_IMODE(Path(place).parent.stat().st_mode) == 0o700
    world.registry.check(world.resource)


def test_writing_in_the_sandbox_leaves_the_project_alone(world: FolderWorld) -> None:
    world.in_project("echo a > a; ln a twin; mkdir d; echo b > d/b")
    before = tree(world.project)
    world.begin()
    world.work("echo more >> a; echo more >> d/b")
    assert tree(world.project) == before
    assert (world.sandbox / "twin").read_text() == "a\n"  # a file of its own in the copy


def test_excluded_paths_are_not_copied(world: FolderWorld) -> None:
    world.in_project("mkdir -p target/x d; echo o > target/x/o; echo l > d/a.log; echo k > d/k")
    world.begin("target/", "*.log")
    assert set(tree(world.sandbox)) == {b"d", b"d/k"}


def test_a_sparse_file_stays_sparse(world: FolderWorld) -> None:
    path = world.project / "sparse"
    with path.open("wb") as file:
        file.seek(50 * 1024**2)
        file.write(b"end")
        file.truncate(80 * 1024**2)
    world.registry.create(world.resource)
    copy = world.sandbox / "sparse"
    assert copy.stat().st_size == 80 * 1024**2
    assert copy.stat().st_blocks * 512 < 1024**2
    with copy.open("rb") as file:
        file.seek(50 * 1024**2)
        assert file.read(4) == b"end\0"


def test_a_folder_deeper_than_a_path_can_say_is_copied(world: FolderWorld) -> None:
    _deep(world.project)
    world.registry.create(world.resource)
    names = subprocess.run(
        ["find", "."], cwd=world.sandbox, capture_output=True, check=True, text=True
    )
    assert names.stdout.count("\n") == 102
    subprocess.run(["rm", "-rf", str(world.project)], check=True)
    subprocess.run(["rm", "-rf", str(world.sandbox)], check=True)


def _deep(top: Path) -> None:
    fd = os.open(top, os.O_RDONLY)
    for _ in range(100):
        os.mkdir("d" * 100, dir_fd=fd)
        inner = os.open("d" * 100, os.O_RDONLY, dir_fd=fd)
        os.close(fd)
        fd = inner
    os.close(os.open("bottom", os.O_WRONLY | os.O_CREAT, 0o644, dir_fd=fd))
    os.close(fd)


def test_what_an_interrupted_creation_left_is_replaced(world: FolderWorld) -> None:
    world.in_project("echo a > a; mkdir d")
    world.sandbox.mkdir(parents=True)
    (world.sandbox / "half").write_text("x")
    (world.sandbox / "shut").mkdir(mode=0o000)
    (world.sandbox / "d").symlink_to("/etc")
    neighbour = world.sandbox.parent / "other"
    neighbour.write_text("stays")
    world.begin()
    assert tree(world.sandbox) == tree(world.project)
    assert neighbour.read_text() == "stays"


def test_nothing_is_removed_outside_of_the_sandboxes(world: FolderWorld) -> None:
    outside = world.root / "outside"
    outside.mkdir()
    (outside / "assets").mkdir()
    (world.sandbox.parent.parent).mkdir(parents=True)
    world.sandbox.parent.symlink_to(outside)
    with pytest.raises(SandboxError, match="not among the sandboxes"):
        world.registry.create(world.resource)
    assert (outside / "assets").is_dir()


def test_a_project_that_has_gone_is_told_at_creation(world: FolderWorld) -> None:
    world.project.rmdir()
    with pytest.raises(ResourceError, match="does not exist"):
        world.registry.create(world.resource)
    assert not world.sandbox.exists()


def test_a_file_that_keeps_growing_is_named_and_nothing_is_left(
    world: FolderWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = world.project / "growing.log"
    path.write_bytes(b"x" * 100_000)
    copy = os.copy_file_range

    def grown_meanwhile(*arguments: int) -> int:
        with path.open("ab") as file:
            file.write(b"more")
        return copy(*arguments)

    # A writer that never misses its moment, however busy the machine is.
    monkeypatch.setattr(os, "copy_file_range", grown_meanwhile)
    with pytest.raises(SandboxError, match=r"growing\.log.*keeps changing"):
        world.registry.create(world.resource)
    assert not world.sandbox.exists()


def test_a_full_disk_is_told_and_nothing_is_left(tmp_path: Path) -> None:
    mount = tmp_path / "small"
    mount.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "none", str(mount)],
        check=False,
        capture_output=True,
    )
    if done.returncode:
        pytest.skip("no tmpfs can be mounted here")
    try:
        world = FolderWorld(tmp_path / "w")
        world.in_project("head -c 3000000 /dev/zero | tr '\\0' x > big")
        (tmp_path / "w/data").mkdir(exist_ok=True)
        (tmp_path / "w/data/sandboxes").symlink_to(mount)
        with pytest.raises(SandboxError, match="no room.*'big'") as caught:
            world.registry.create(world.resource)
        assert "free some space" in caught.value.hint
        assert not world.sandbox.exists()
    finally:
        subprocess.run(["umount", str(mount)], check=True)


def test_many_open_files_are_not_needed(world: FolderWorld) -> None:
    world.in_project("for i in $(seq 80); do mkdir d$i; echo $i > d$i/f; done")
    soft, hard = limits.getrlimit(limits.RLIMIT_NOFILE)
    open_now = len(list(Path("/proc/self/fd").iterdir()))
    limits.setrlimit(limits.RLIMIT_NOFILE, (open_now + 40, hard))
    try:
        world.begin()
        world.work("for i in $(seq 80); do echo same > d$i/f; done")
        world.apply()
    finally:
        limits.setrlimit(limits.RLIMIT_NOFILE, (soft, hard))
    assert tree(world.project) == tree(world.sandbox)


# --- check and remove ---------------------------------------------------------------------------


def test_a_sandbox_that_is_gone_or_replaced_is_missing(world: FolderWorld) -> None:
    world.begin()
    world.registry.remove(world.resource)
    for make in (lambda: None, lambda: world.sandbox.symlink_to(world.project)):
        world.sandbox.parent.mkdir(exist_ok=True)
        make()
        with pytest.raises(SandboxMissingError):
            world.registry.check(world.resource)


def test_a_removed_sandbox_leaves_nothing_and_can_be_removed_again(world: FolderWorld) -> None:
    world.in_project("mkdir -p a/b; echo x > a/b/c; chmod 555 a/b a")
    world.begin()
    world.work("chmod 000 a")
    for _ in range(2):
        world.registry.release(world.resource)
        world.registry.remove(world.resource)
    assert not world.sandbox.parent.exists()
    assert (world.project / "a/b/c").read_text() == "x\n"
    world.in_project("chmod 755 a a/b")


# --- snapshots ----------------------------------------------------------------------------------

EDITS = (
    "echo changed > a.txt; rm secret; mv bin moved; chmod 600 run.sh; chmod +x nothing",
    "rm -r deep; echo now > deep; rm windows.txt; mkdir windows.txt; echo in > windows.txt/f",
    "rm link; ln -s elsewhere link; rmdir empty; mkdir hollow; rm -- -dash; echo 2 > '-dash'",
    "rm -rf .git nested; mkdir .git; echo plain > .git/HEAD; rm \"$(printf 'bad\\377name')\"",
    "chmod 755 'closed folder'; echo in > 'closed folder/f'; chmod 555 'closed folder'",
)


def test_every_state_of_a_folder_comes_back_byte_for_byte(world: FolderWorld) -> None:
    world.in_project(FIDELITY)
    world.begin()
    states = {world.resource.base_snapshot or "": tree(world.sandbox)}
    for command in EDITS:
        world.work(command)
        states[world.snapshots.capture(world.resource).ref] = tree(world.sandbox)
    assert len(states) == len(EDITS) + 1
    for ref in [*states, *reversed(states)]:
        world.snapshots.restore(world.resource, ref)
        assert tree(world.sandbox) == states[ref]


def test_the_git_folder_of_a_plain_folder_is_content(world: FolderWorld) -> None:
    world.in_project("mkdir .git; echo one > .git/HEAD")
    world.begin()
    world.work("echo two > .git/HEAD; echo three > .git/new")
    assert world.changes() == {".git/HEAD": ("modified", 1, 1), ".git/new": ("added", 1, 0)}
    world.snapshots.restore(world.resource, world.resource.base_snapshot or "")
    assert tree(world.sandbox) == tree(world.project)


# --- diff ---------------------------------------------------------------------------------------


def test_a_diff_counts_lines_modes_links_and_empty_folders(world: FolderWorld) -> None:
    world.in_project(
        "seq 20 > text; echo x > mode; ln -s a link; mkdir gone; head -c 999 /dev/zero > bin; "
        "mkdir dir; echo f > dir/f; echo k > swap"
    )
    world.begin()
    world.work(
        "sed -i 's/^5$/five/; 12d' text; chmod 700 mode; rm link; ln -s b link; rmdir gone; "
        "printf more >> bin; mkdir -p new/empty; chmod 700 dir; "
        "rm swap; mkdir swap; echo f > swap/f"
    )
    assert world.changes() == {
        "bin": ("modified", None, None),
        "dir/": ("modified", 0, 0),
        "gone/": ("deleted", 0, 0),
        "link": ("modified", 1, 1),
        "mode": ("modified", 0, 0),
        "new/empty/": ("added", 0, 0),
        "swap/": ("modified", 0, 1),
        "swap/f": ("added", 1, 0),
        "text": ("modified", 1, 2),
    }


def test_a_patch_can_be_applied_by_git(world: FolderWorld) -> None:
    world.in_project("seq 100 > text; printf 'no end' > last; echo d > gone; echo 'a b' > 'sp ace'")
    world.begin()
    world.work(
        "sed -i '1d; 3s/$/!/; 50,55d; $d' text; printf 'other end' > last; rm gone; "
        "echo n > 'new\tname'; echo more >> 'sp ace'; chmod 755 last; ln -s text link"
    )
    patch = world.registry.diff(world.resource).patch
    subprocess.run(["git", "apply", "-"], cwd=world.project, input=patch.encode(), check=True)
    assert tree(world.project) == tree(world.sandbox)


def test_a_diff_stores_nothing_and_works_while_nothing_is_known(world: FolderWorld) -> None:
    world.in_project("echo a > a")
    world.begin()
    world.work("echo b > b")
    before = world.snapshots.capture(world.resource).ref
    world.work("echo c > c; rm a")
    assert set(world.changes()) == {"a", "b", "c"}
    taken = world.snapshots.capture(world.resource)
    assert {change.path for change in taken.changes} == {"a", "c"}
    assert int(taken.ref) == int(before) + 1


def test_a_huge_or_long_difference_is_only_named(world: FolderWorld) -> None:
    world.in_project("seq 400000 > huge; seq 60000 > long")
    world.begin()
    world.work("seq 400001 > huge; seq 60000 | sort -r > long")
    diff = world.registry.diff(world.resource)
    assert "Large files a/huge and b/huge differ" in diff.patch
    assert world.changes()["long"] == ("modified", 60000, 60000)
    assert len(diff.patch) < 2_000_000


def test_excluded_files_that_the_plan_made_are_left_behind(world: FolderWorld) -> None:
    world.in_project("mkdir logs; echo a > a")
    world.begin("*.log")
    world.work("echo x > logs/x.log; echo b > b")
    diff = world.registry.diff(world.resource)
    assert [file.path for file in diff.files] == ["b"]
    assert diff.left_behind == ("logs/x.log",)
