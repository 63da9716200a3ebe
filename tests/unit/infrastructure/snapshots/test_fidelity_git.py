"""Byte for byte through what git makes hard: submodules, pointers, hostile settings, gc."""

import os
from pathlib import Path

import pytest

from cleveragents.domain.checkpoint import Snapshot

IDENTITY = "-c user.name=n -c user.email=e@x"


def _there_and_back(world, command: str) -> tuple[Snapshot, Snapshot]:
    """Both states come back, by this process and by a new one."""
    first, before = world.capture(), (world.state(), world.git())
    world.work(command)
    second, after = world.capture(), (world.state(), world.git())
    assert second.ref != first.ref
    world.restore(first.ref)
    assert (world.state(), world.git()) == before
    world.new_process()
    world.restore(second.ref)
    assert (world.state(), world.git()) == after
    world.verify(first.ref, first.state_hash)
    world.verify(second.ref, second.state_hash)
    return first, second


# --- submodules -----------------------------------------------------------------------------------

SUBMODULE = (
    "git init -q -b main ../library; cd ../library; echo lib > lib.txt; git add lib.txt;"
    f"git {IDENTITY} commit -qm lib; cd ../project;"
    "git -c protocol.file.allow=always submodule --quiet add ../library deps/lib"
)
POPULATE = "git -c protocol.file.allow=always submodule --quiet update --init"
IN_SUBMODULE = {
    "populated": POPULATE,
    "edited": f"{POPULATE}; echo x >> deps/lib/lib.txt; echo new > deps/lib/new",
    "committed": f"{POPULATE}; cd deps/lib; echo x > y; git add y; git {IDENTITY} commit -qm y",
    "committed outside too": f"{POPULATE}; cd deps/lib; echo x > y; git add y; "
    f"git {IDENTITY} commit -qm y; cd ../..; git add deps/lib; git {IDENTITY} commit -qm moved",
    "removed": "git rm -qf deps/lib",
    "replaced by files": "rm -rf deps/lib; mkdir -p deps/lib; echo x > deps/lib/x",
    "replaced by a file": "rm -rf deps/lib; echo x > deps/lib",
}


@pytest.mark.parametrize("command", IN_SUBMODULE.values(), ids=list(IN_SUBMODULE))
def test_a_submodule_that_was_empty_at_first(make_world, command: str) -> None:
    _there_and_back(make_world(SUBMODULE), command)


IN_POPULATED = {
    "edited": "echo x >> deps/lib/lib.txt; rm -rf src",
    "staged": "cd deps/lib; echo x > y; git add y",
    "committed": f"cd deps/lib; echo x > y; git add y; git {IDENTITY} commit -qm y",
    "on a branch": f"cd deps/lib; git switch -qc b; echo x > y; git add y; "
    f"git {IDENTITY} commit -qm y; git branch other; git pack-refs --all",
    "in conflict": f"cd deps/lib; git switch -qc b; echo 1 > lib.txt; git {IDENTITY} commit -qam 1;"
    f"git switch -qc c HEAD~1; echo 2 > lib.txt; git {IDENTITY} commit -qam 2;"
    f"git {IDENTITY} merge -q b || true",
    "taken away": "rm -rf deps; echo gone > gone",
    "deinitialised": "git submodule --quiet deinit -f deps/lib",
}


def _submodule(world) -> str:
    return world.work(
        "git status --porcelain --ignore-submodules=none; test -e deps/lib/.git || exit 0;"
        "cd deps/lib; git rev-parse HEAD; git symbolic-ref -q HEAD || true; git status --porcelain;"
        "git for-each-ref; git ls-files -s"
    )


@pytest.mark.parametrize("command", IN_POPULATED.values(), ids=list(IN_POPULATED))
def test_a_populated_submodule_comes_back_with_its_own_repository(make_world, command: str) -> None:
    world = make_world(SUBMODULE)
    world.work(POPULATE)
    first, before = world.capture(), (world.state(), _submodule(world))
    world.work(command)
    second, after = world.capture(), (world.state(), _submodule(world))
    assert second.ref != first.ref
    world.restore(first.ref)
    assert (world.state(), _submodule(world)) == before
    world.new_process()
    world.restore(second.ref)
    assert (world.state(), _submodule(world)) == after
    world.restore(first.ref)
    assert (world.state(), _submodule(world)) == before
    world.work("git -C deps/lib fsck --connectivity-only")


def test_a_submodule_populated_after_the_snapshot_can_be_populated_again(make_world) -> None:
    world = make_world(SUBMODULE)
    first = world.capture()
    world.work(f"{POPULATE}; cd deps/lib; echo x > y; git add y; git {IDENTITY} commit -qm y")
    world.capture()
    world.restore(first.ref)
    world.work(POPULATE)
    assert _submodule(world).splitlines()[0] == world.work("git rev-parse HEAD:deps/lib").strip()


# --- large-file pointers --------------------------------------------------------------------------

# As git-lfs does: the repository has a pointer, the working tree the content from beside it.
LFS = """
mkdir ../large
cat > ../clean <<'END'
#!/bin/sh
cat > "$(dirname "$0")/large/incoming"
sum=$(sha256sum < "$(dirname "$0")/large/incoming" | cut -d' ' -f1)
mv "$(dirname "$0")/large/incoming" "$(dirname "$0")/large/$sum"
printf 'version https://git-lfs.github.com/spec/v1\\noid sha256:%s\\n' "$sum"
END
cat > ../smudge <<'END'
#!/bin/sh
sum=$(sed -n 's/^oid sha256://p')
cat "$(dirname "$0")/large/$sum"
END
chmod +x ../clean ../smudge
git config filter.lfs.clean "$PWD/../clean"; git config filter.lfs.smudge "$PWD/../smudge"
git config filter.lfs.required true
printf '*.bin filter=lfs diff=lfs merge=lfs -text\\n' > .gitattributes
head -c 300000 /dev/urandom > asset.bin"""


def test_large_file_pointers_and_their_content_are_told_apart(make_world) -> None:
    world = make_world(LFS)
    assert world.work("git cat-file -s HEAD:asset.bin").strip() == "119"
    assert (world.sandbox / "asset.bin").stat().st_size == 300_000
    first, _ = _there_and_back(
        world,
        "git cat-file blob HEAD:asset.bin > asset.bin; head -c 90000 /dev/urandom > new.bin;"
        f"git add -A; git {IDENTITY} commit -qm assets",
    )
    # The filter and what it keeps are the user's: without them a snapshot is still whole.
    world.sh("rm -r ../large ../clean ../smudge")
    world.restore(first.ref)
    assert (world.sandbox / "asset.bin").stat().st_size == 300_000


def test_a_pointer_that_was_not_fetched_stays_a_pointer(make_world) -> None:
    world = make_world(LFS)
    world.sh("git config --unset filter.lfs.required; rm -r ../large")
    world.work("git cat-file blob HEAD:asset.bin > asset.bin")
    _there_and_back(world, "rm asset.bin")
    world.restore("1")
    assert (world.sandbox / "asset.bin").read_bytes().startswith(b"version https://git-lfs")


# --- a hostile set-up -----------------------------------------------------------------------------

HOOKS = ("pre-commit", "post-checkout", "post-index-change", "reference-transaction", "fsmonitor")
VARIABLES = {
    "GIT_DIR": "/nowhere",
    "GIT_WORK_TREE": "/nowhere",
    "GIT_INDEX_FILE": "/nowhere/index",
    "GIT_OBJECT_DIRECTORY": "/nowhere",
    "GIT_CONFIG_COUNT": "1",
    "GIT_CONFIG_KEY_0": "core.bare",
    "GIT_CONFIG_VALUE_0": "true",
    "GIT_AUTHOR_DATE": "nonsense",
    "GIT_CEILING_DIRECTORIES": "/",
}


def _hostile(world) -> Path:
    """Gives back a file that exists once any of the hooks has run."""
    ran, hooks = world.top / "ran", world.top / "hooks"
    hooks.mkdir()
    for name in HOOKS:
        (hooks / name).write_text(f"#!/bin/sh\ntouch '{ran}'\nexit 1\n")
        (hooks / name).chmod(0o755)
    for name, value in {
        "commit.gpgsign": "true",
        "gpg.program": "false",
        "user.useConfigOnly": "true",
        "core.hooksPath": str(hooks),
        "core.fsmonitor": str(hooks / "fsmonitor"),
        "core.autocrlf": "true",
        "core.safecrlf": "true",
        "core.fileMode": "false",
        "core.symlinks": "false",
        "core.untrackedCache": "true",
        "core.splitIndex": "true",
        "index.threads": "1",
        "feature.manyFiles": "true",
        "submodule.recurse": "true",
        "gc.auto": "1",
    }.items():
        world.sh(f"git config {name} '{value}'")
    world.sh("git config --unset user.name; git config --unset user.email")
    return ran


def test_a_hostile_git_set_up_changes_nothing(world, monkeypatch: pytest.MonkeyPatch) -> None:
    first, before = world.capture(), world.state()
    staged = "printf 'x\\r\\ny\\n' > a.txt; chmod 0700 a.txt; git add a.txt; ln -sfn nowhere link"
    world.work(staged)
    second, after, git = world.capture(), world.state(), world.git()
    ran = _hostile(world)
    with monkeypatch.context() as patch:
        for name, value in VARIABLES.items():
            patch.setenv(name, value)
        patch.setenv("HOME", "/nowhere")
        world.new_process()
        world.restore(first.ref)
        assert world.state() == before
        world.restore(second.ref)
        (world.sandbox / "third").write_bytes(b"\r\n")
        third = world.capture()
        world.verify(third.ref, third.state_hash)
        world.restore(second.ref)
    assert world.state() == after
    assert not ran.exists()
    world.sh("git config --unset core.hooksPath; git config --unset core.fsmonitor")
    assert world.git() == git


def test_locks_in_the_users_repository_do_not_matter(world) -> None:
    """The user is in the middle of a commit: their index is locked, and it stays so."""
    locks = [world.project / ".git" / name for name in ("index.lock", "HEAD.lock", "config.lock")]
    for lock in locks:
        lock.write_bytes(b"theirs")
    _there_and_back(world, f"echo x > a.txt; git add a.txt; git {IDENTITY} commit -qm x; rm -r src")
    assert [lock.read_bytes() for lock in locks] == [b"theirs"] * 3


def test_a_gc_between_every_two_steps_takes_nothing_away(world) -> None:
    gc = "git reflog expire --expire=now --all; git gc -q --prune=now; git prune --expire=now"
    taken = []
    for command in (
        "true",
        f"echo 1 > one; git add one; git {IDENTITY} commit -qm one",
        "echo 2 > two; git add two",
        f"git {IDENTITY} commit -qm two; git reset -q --hard HEAD~2",
        "git reset -q --soft HEAD@{0}; echo 3 > three; git stash -q -u || true; echo 4 > a.txt",
    ):
        world.work(command)
        taken.append((world.capture(), world.state(), world.git()))
        world.sh(gc)
    for snapshot, files, git in [taken[2], taken[0], taken[4], taken[1], taken[3], taken[2]]:
        world.restore(snapshot.ref)
        assert (world.state(), world.git()) == (files, git)
        world.sh(gc)
    for snapshot, _, _ in taken:
        world.verify(snapshot.ref, snapshot.state_hash)


# --- names and sizes ------------------------------------------------------------------------------

NAMES = [
    b"new\nline",
    b"tab\t",
    b"'",
    b'"',
    b"a\"b'c",
    b"back\\slash",
    b"-n",
    b"--",
    b"-rf *",
    b"$(touch pwned)",
    b"`id`;&|",
    b"\xff\xfe",
    b"\xc3\x28",
    b"\xed\xa0\x80",
    b"...",
    b" ",
    b"e\xcc\x81",
    b"\xc3\xa9",
    b"x" * 255,
    b".gitmodules",
    b".git ",
    b"git~1",
]


def test_names_of_every_kind_come_back(world) -> None:
    top = os.fsencode(world.sandbox)
    first, before = world.capture(), world.state()
    for name in NAMES:
        (Path(os.fsdecode(top + b"/" + name))).write_bytes(name)
        Path(os.fsdecode(top + b"/in " + name[:200])).mkdir()
        Path(os.fsdecode(top + b"/in " + name[:200] + b"/" + name)).symlink_to(os.fsdecode(name))
    second, after = world.capture(), world.state()
    assert len(second.changes) == 2 * len(NAMES)
    world.restore(first.ref)
    assert world.state() == before
    world.restore(second.ref)
    assert world.state() == after
    world.verify(second.ref, second.state_hash)


def test_a_file_of_100_megabytes_comes_back_and_a_changed_part_of_it_is_all_it_costs(world) -> None:
    world.work("head -c 104857600 /dev/urandom > big; sha256sum big > ../sum")
    first = world.capture()
    assert first.size_bytes >= 100 << 20
    world.work("printf changed | dd of=big bs=1 seek=50000000 conv=notrunc status=none")
    second = world.capture()
    assert second.size_bytes <= 5 << 20
    world.work("rm big")
    world.capture()
    world.restore(first.ref)
    world.work("sha256sum --status -c ../sum")
