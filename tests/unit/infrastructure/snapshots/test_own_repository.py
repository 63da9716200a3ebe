"""The repository of a sandbox is part of the snapshot, and nothing but that is written."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from msgspec.structs import replace

from cleveragents.infrastructure.sandbox.git.repository.own_repository import make_repository

FORGET = "git reflog expire --expire=now --all; git gc -q --prune=now"

OWN_CHANGES = {
    "tag": "git tag v2",
    "annotated tag": "git tag -a -m v2 v2",
    "moved tag": "git tag -f v1 HEAD",
    "deleted tag": "git tag -d v1",
    "branch": "git branch other main",
    "deleted branch": "git branch -q -D main",
    "branch in the place of a folder": "git branch -q -D feature/one; git branch feature",
    "stash": "echo s > a.txt; git stash -q; echo t > a.txt; git stash -q",
    "setting": "git config user.name Somebody; git config core.autocrlf true",
    "hook": 'd=$(git rev-parse --git-path hooks); mkdir -p $d; echo "exit 1" > $d/pre-commit; '
    "chmod +x $d/pre-commit; ln -s pre-commit $d/commit-msg",
    "odd name": 'd=$(git rev-parse --git-path hooks); mkdir -p $d; : > "$d/$(printf "\\377")"',
    "exclude": "echo '*.o' >> $(git rev-parse --git-path info/exclude)",
    "packed": "git pack-refs --all; git tag v2; git symbolic-ref refs/heads/alias refs/heads/main",
    "note": "git notes add -m noted",
}


def _own(world) -> tuple:
    refs = "git for-each-ref --format='%(refname) %(objectname) %(symref)'; git stash list"
    folder = "cd $(git rev-parse --absolute-git-dir)"
    files = (
        f"{folder}; cat config info/exclude; find . -path './hooks/*' -printf '%p %M %l\\n' | sort"
    )
    head = "git symbolic-ref -q HEAD || true; git rev-parse -q --verify HEAD; git ls-files -s -v"
    status = "git status --porcelain=v2 --branch"
    return (world.state(), *map(world.work, (head, status, refs, files)))


@pytest.mark.parametrize("command", OWN_CHANGES.values(), ids=list(OWN_CHANGES))
def test_references_and_settings_come_back_even_after_gc(make_world, command: str) -> None:
    world = make_world()
    world.work("git tag v1; git branch feature/one; git commit -q --allow-empty -m own")
    first, before = world.capture(), _own(world)
    world.work(command)
    second, after = world.capture(), _own(world)
    assert second.state_hash != first.state_hash
    world.restore(first.ref)
    assert _own(world) == before
    world.work(FORGET)
    world.restore(second.ref)
    assert _own(world) == after
    world.work("git fsck --connectivity-only")
    world.work("rm -rf $(git rev-parse --absolute-git-dir)")
    world.capture()
    world.restore(second.ref)
    assert _own(world) == after
    world.restore(first.ref)
    assert _own(world) == before


def test_commits_that_differ_a_little_take_little_and_come_back_in_their_order(make_world) -> None:
    world = make_world()
    world.work("seq 100000 > long.txt; git add -A; git commit -q -m first; git gc -q")
    world.capture()
    taken = []
    for number in range(8):
        world.work(f"echo {number} >> long.txt; git commit -q -a -m {number}; git repack -q -a -d")
        taken.append((world.capture(), _own(world)))
    names = _packs_of(world)
    assert len(names) > len(taken)
    assert sum(sorted(names.values())[: len(taken)]) < 20_000, "each holds what differs"
    world.work("rm -rf $(git rev-parse --absolute-git-dir)")
    world.capture()
    for one, was in taken[::-1]:
        world.restore(one.ref)
        assert _own(world) == was
        world.work("git fsck --connectivity-only")


def _packs_of(world) -> dict[str, int]:
    with closing(sqlite3.connect(world.database)) as db:
        rows = db.execute(
            "SELECT DISTINCT s.name, c.size FROM side_contents s JOIN contents c USING (hash)"
            " WHERE s.name LIKE 'pack:%'"
        )
        return dict(rows.fetchall())


DAMAGE = {
    "a configuration that git cannot read": "echo '[broken' > config",
    "no configuration": "rm config",
    "a HEAD that is none": "echo nonsense > HEAD",
    "a reference that is none": "mkdir -p refs/heads/main; rmdir refs/heads/main; "
    "echo nonsense > refs/heads/main",
    "a folder in the place of a file": "rm config; mkdir config; rm packed-refs; mkdir packed-refs",
    "no objects": "rm -rf objects",
    "locks": "touch index.lock HEAD.lock packed-refs.lock config.lock refs/heads/main.lock",
    "a pipe": "mkfifo hooks_; mkdir -p hooks; mkfifo hooks/pre-commit; rm HEAD; mkfifo HEAD",
    "a split index": "git update-index --split-index; git add -A",
    "no way to the objects of the user": "rm -r objects/info",
}


@pytest.mark.parametrize("command", DAMAGE.values(), ids=list(DAMAGE))
def test_a_damaged_repository_is_put_right(world, command: str) -> None:
    first, before = world.capture(), _own(world)
    world.work(f"cd $(git rev-parse --absolute-git-dir); export GIT_WORK_TREE=$OLDPWD; {command}")
    damaged = world.capture()
    world.restore(first.ref)
    assert _own(world) == before
    world.restore(damaged.ref)
    world.restore(first.ref)
    assert _own(world) == before
    world.work("git add -A; git commit -q --allow-empty -m x; git branch y; git gc -q")


@pytest.mark.parametrize("name", ["", "/refs", "/objects", "/info", "/hooks", "/HEAD", "/index"])
def test_links_planted_in_the_repository_lead_no_write_to_the_user(world, name: str) -> None:
    first, before = world.capture(), _own(world)
    world.sh("mkdir -p .git/hooks; git add -A")
    user = _bytes(world.project / ".git")
    world.work(
        f"rm -rf ../sandbox.git{name}; ln -s {world.project}/.git{name} ../sandbox.git{name}; "
        "echo x > a.txt"
    )
    world.capture()
    world.restore(first.ref)
    assert _own(world) == before
    assert _bytes(world.project / ".git") == user


def _bytes(top: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in top.rglob("*") if path.is_file()}


def test_a_branch_that_the_user_deletes_and_prunes_stops_nothing(make_world) -> None:
    world = make_world()
    world.sh("git switch -qc gone; git commit -q --allow-empty -m gone; git switch -q main")
    world.resource = replace(world.resource, sandbox_path=str(world.top / "later"))
    world.sandbox = world.top / "later"
    make_repository(world.resource)
    first = world.capture()
    world.work("git branch -q mine gone; git branch -q -D gone; echo x > x")
    second = world.capture()
    world.sh(f"git branch -q -D gone; {FORGET}")
    world.work("echo y > x; git add x; git commit -qm y")
    third = world.capture()
    for snapshot in (first, second, third, first):
        assert world.restore(snapshot.ref).snapshot.state_hash == snapshot.state_hash
