"""What was captured comes back byte for byte, whatever happened in between."""

import os
from pathlib import Path

import pytest

FILE_CHANGES = {
    "tracked edit": "echo changed > a.txt",
    "tracked delete": "rm a.txt src/b.txt",
    "untracked": "echo new > new.txt; mkdir -p deep/er; echo x > deep/er/f",
    "ignored": "echo secret > debug.log",
    "empty file": ": > empty; : > a.txt",
    "rename": "mv a.txt c.txt; mv src lib",
    "case rename": "mv a.txt A.txt",
    "file becomes folder": "rm a.txt; mkdir a.txt; echo x > a.txt/x",
    "folder becomes file": "rm -r src; echo x > src",
    "folder becomes link": "mv src other; ln -s other src",
    "mode 0600": "chmod 0600 a.txt",
    "executable": "chmod +x a.txt; chmod -x run.sh",
    "setuid and sticky": "chmod 4755 run.sh; mkdir s; chmod 1777 s",
    "read-only folder": "mkdir ro; echo x > ro/x; chmod 0444 ro/x; chmod 0555 ro src",
    "folder mode": "chmod 0700 src",
    "dangling link": "ln -s nowhere dangling",
    "retargeted link": "ln -sfn src/b.txt link",
    "link to a folder": "ln -s src srclink",
    "empty folders": "mkdir -p e/f/g h",
    "hard links": "ln a.txt hard; echo more >> hard",
    "nested repository": "git init -q sub; cd sub; echo x > x; git add x; "
    "git -c user.name=n -c user.email=e commit -qm s",
    "nested repository without commit": "git init -q sub; echo x > sub/x",
    "odd names": "printf x > \"$(printf 'a\\nb')\"; printf x > ./-rf; printf x > 'sp ace'; "
    "printf x > \"$(printf '\\377\\376')\"; printf x > 'é'; printf x > '*'; printf x > ' '",
    "binary": "head -c 100000 /dev/urandom > random",
    "everything gone": "rm -rf a.txt src run.sh link .gitignore",
}


@pytest.mark.parametrize("command", FILE_CHANGES.values(), ids=list(FILE_CHANGES))
def test_there_and_back_again(world, command: str) -> None:
    first, before = world.capture(), world.state()
    world.work(command)
    second, after = world.capture(), world.state()
    assert second.ref != first.ref
    back = world.restore(first.ref)
    assert world.state() == before
    assert back.snapshot.state_hash == first.state_hash
    world.new_process()
    forth = world.restore(second.ref)
    assert world.state() == after
    assert forth.snapshot.state_hash == second.state_hash
    assert world.capture().ref == forth.snapshot.ref
    world.verify(first.ref, first.state_hash)
    world.verify(second.ref, second.state_hash)


GIT_CHANGES = {
    "staged": "echo s > a.txt; git add a.txt; echo t > t; git add t",
    "commit": "echo c > c; git add c; git -c user.name=n -c user.email=e commit -qm c",
    "amend": "git -c user.name=n -c user.email=e commit -q --amend -m other",
    "new branch": "git switch -qc topic; echo c > c; git add c; "
    "git -c user.name=n -c user.email=e commit -qm c",
    "detached": "git switch -q --detach",
    "orphan": "git switch -q --orphan fresh",
    "removed from the index": "git rm -q --cached a.txt",
    "merge in conflict": "git config user.name n; git config user.email e; git switch -qc one; "
    "echo 1 > a.txt; git commit -qam 1; git switch -q -; echo 2 > a.txt; git commit -qam 2; "
    "git merge -q one || true",
    "rebase in conflict": "git config user.name n; git config user.email e; git switch -qc one; "
    "echo 1 > a.txt; git commit -qam 1; git switch -q -; echo 2 > a.txt; git commit -qam 2; "
    "git rebase -q one || true",
}


FORGET = "git reflog expire --expire=now --all; git gc -q --prune=now"


def _everything(world) -> tuple:
    head = world.work("git symbolic-ref -q HEAD || true; git rev-parse -q --verify HEAD || true")
    return world.state(), head, world.work("git ls-files -s -v; git status --porcelain=v2 --branch")


@pytest.mark.parametrize("command", GIT_CHANGES.values(), ids=list(GIT_CHANGES))
def test_head_branch_and_index_come_back_even_after_gc(world, command: str) -> None:
    first, before = world.capture(), _everything(world)
    world.work(command)
    second, after = world.capture(), _everything(world)
    assert second.state_hash != first.state_hash
    world.restore(first.ref)
    assert _everything(world) == before
    # A gc of the user, and one in the sandbox with nothing left that names what the agent made.
    world.sh(FORGET)
    world.work(FORGET)
    world.verify(second.ref, second.state_hash)
    forth = world.restore(second.ref)
    assert _everything(world) == after
    assert forth.snapshot.state_hash == second.state_hash
    if "orphan" not in command:  # git misses the empty tree there, which it knows anyway
        world.work("git fsck --connectivity-only")
    world.restore(first.ref)
    assert _everything(world) == before


def test_commits_survive_several_snapshots_and_a_prune_between_them(world) -> None:
    world.work("git config user.name n; git config user.email e")
    last = world.capture()
    for name in "xyz":
        world.work(f"echo {name} > {name}; git add {name}; git commit -qm {name}")
        last = world.capture()
    after = _everything(world)
    world.work(f"git reset -q --hard HEAD~3; {FORGET}")
    world.capture()
    world.store.keep_only(world.resource, [last.ref])
    world.verify(last.ref, last.state_hash)
    world.restore(last.ref)
    assert _everything(world) == after


def test_sandbox_ref_is_the_head_commit(world) -> None:
    assert world.capture().sandbox_ref == world.work("git rev-parse HEAD").strip()


def test_a_refreshed_index_is_no_change(world) -> None:
    first = world.capture()
    world.work("touch a.txt; git status; git update-index --refresh")
    again = world.capture()
    assert (again.ref, again.changes, again.size_bytes) == (first.ref, (), 0)


def test_a_stale_index_lock_does_not_stop_a_restore(world) -> None:
    first = world.capture()
    world.work("echo x > a.txt; git add a.txt; : > $(git rev-parse --git-dir)/index.lock")
    world.restore(first.ref)
    assert world.work("git status --porcelain; git add -A") == ""


@pytest.mark.parametrize(
    "damage",
    [
        "rm .git",
        "echo nonsense > .git",
        "rm .git; ln -s /nowhere .git",
        "rm .git; git init -q .; echo x > new; git add new",
        "rm -rf .git; mkdir .git; echo x > .git/x",
    ],
)
def test_the_pointer_to_the_git_folder_is_put_back(world, damage: str) -> None:
    first, before = world.capture(), _everything(world)
    world.work(damage)
    altered = world.capture()
    world.restore(first.ref)
    assert _everything(world) == before
    world.restore(altered.ref)
    world.restore(first.ref)
    assert _everything(world) == before


def test_another_git_folder_planted_in_the_sandbox_is_never_written_to(world) -> None:
    first = world.capture()
    head = world.sh("git rev-parse main")
    world.work("rm .git; echo 'gitdir: ../project/.git' > .git; echo x > a.txt")
    world.capture()
    world.restore(first.ref)
    assert world.sh("git rev-parse main; git symbolic-ref HEAD") == head + "refs/heads/main\n"
    assert world.sh("git status --porcelain") == ""


def test_branches_of_the_user_are_neither_seen_moving_nor_moved(world) -> None:
    world.sh("git branch topic")
    first = world.capture()
    world.work("git fetch -q ../project topic:topic; git switch -q topic")
    on_topic = world.capture()
    world.work("git commit -q --allow-empty -m x")
    world.sh("echo u > u; git add u; git commit -qm u; git branch -f topic main")
    moved = world.sh("git rev-parse topic")
    world.restore(on_topic.ref)
    world.restore(first.ref)
    assert world.sh("git rev-parse topic") == moved


FILTERS = (
    "printf '*.txt text=auto eol=crlf\\n*.up filter=up\\n*.raw -text\\n' > .gitattributes;"
    "git config filter.up.smudge 'tr a-z A-Z'; git config filter.up.clean 'tr A-Z a-z';"
    "echo smudge > f.up; echo plain > p.raw"
)


def test_filters_and_line_ends_change_nothing_that_is_stored(make_world) -> None:
    world = make_world(FILTERS)
    assert world.state()[b"f.up"][2] == b"SMUDGE\n"
    assert world.state()[b"a.txt"][2] == b"one\r\n"
    first, before = world.capture(), world.state()
    world.work("printf 'mixed\\r\\nends\\n' > a.txt; printf 'Mixed Case' > f.up; rm p.raw")
    second, after = world.capture(), world.state()
    world.restore(first.ref)
    assert world.state() == before
    world.restore(second.ref)
    assert world.state() == after


def test_a_repository_with_sha256_objects(tmp_path: Path, world_class) -> None:
    os.environ["GIT_DEFAULT_HASH"] = "sha256"
    try:
        world = world_class(tmp_path / "sha256")
    finally:
        del os.environ["GIT_DEFAULT_HASH"]
    first, before = world.capture(), world.state()
    world.work("rm -r a.txt src")
    world.capture()
    world.restore(first.ref)
    assert world.state() == before


def test_a_project_at_a_strange_path(make_world) -> None:
    world = make_world(top="sp ace\né\n")
    first, before = world.capture(), _everything(world)
    world.work("echo x > a.txt; git add -A; git switch -qc 'b-é'; rm .git")
    world.capture()
    world.restore(first.ref)
    assert _everything(world) == before


def test_base_files_are_not_stored_twice(make_world) -> None:
    world = make_world("head -c 3000000 /dev/urandom > big; head -c 6000000 /dev/urandom > bigger")
    assert world.capture().size_bytes < 10_000
    before = world.state()
    world.work("echo x >> big; rm bigger")
    world.restore("1")
    assert world.state() == before


def test_mtime_comes_back_with_the_content(world) -> None:
    world.work("touch -d '2001-02-03 04:05:06' a.txt")
    first = world.capture()
    stamp = (world.sandbox / "a.txt").stat().st_mtime_ns
    world.work("echo changed > a.txt")
    world.capture()
    world.restore(first.ref)
    assert (world.sandbox / "a.txt").stat().st_mtime_ns == stamp
