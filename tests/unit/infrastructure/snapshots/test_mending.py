"""What is damaged in the store, and is to go from the sandbox, is stored anew before that."""

import hashlib
import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from cleveragents.domain.errors import SnapshotDamagedError

LARGE = b"large" * 2_000_000


def key_of(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()


def spoil(world, key: bytes, how: str, *, later: bool = True) -> None:
    """Of all that is stored under this hash; `later` by another process than goes on."""
    if later:
        world.new_process()
    with closing(sqlite3.connect(world.database)) as db:
        if how == "gone":
            done = db.execute("DELETE FROM contents WHERE hash=?", (key,)).rowcount
        else:
            done = db.execute("UPDATE contents SET data=x'00' WHERE hash=?", (key,)).rowcount
        assert done, "nothing of it is stored"
        db.commit()


@pytest.mark.parametrize("later", [True, False], ids=["later", "right after it was stored"])
@pytest.mark.parametrize("how", ["other bytes", "gone"])
def test_a_small_file_that_goes_is_stored_anew(world, how: str, *, later: bool) -> None:
    first = world.capture()
    world.work("echo precious > new; echo other > a.txt")
    second = world.capture()
    spoil(world, key_of(b"precious\n"), how, later=later)
    restored = world.restore(first.ref)
    assert ["'new'" in note for note in restored.notes] == [True]
    assert not (world.sandbox / "new").exists()
    world.verify(second.ref, second.state_hash)
    assert world.restore(second.ref).notes == ()
    assert (world.sandbox / "new").read_text() == "precious\n"


def test_of_a_large_file_every_part_is_stored_anew(world) -> None:
    first = world.capture()
    (world.sandbox / "large").write_bytes(LARGE)
    second = world.capture()
    with closing(sqlite3.connect(world.database)) as db:
        chunks = [row[0] for row in db.execute("SELECT chunk FROM file_chunks")]
    assert len(chunks) > 2
    spoil(world, chunks[1], "other bytes")
    assert world.restore(first.ref).notes != ()
    world.verify(second.ref, second.state_hash)
    world.restore(second.ref)
    spoil(world, key_of(LARGE), "gone")
    assert world.restore(first.ref).notes != ()
    world.verify(second.ref, second.state_hash)


def test_a_file_that_git_has_lost_is_stored_here(world) -> None:
    first = world.capture()
    world.work("rm src/b.txt")
    second = world.capture()
    world.restore(first.ref)
    oid = world.sh("git rev-parse HEAD:src/b.txt").strip()
    blob = world.project / ".git" / "objects" / oid[:2] / oid[2:]
    blob.chmod(0o600)
    blob.unlink()
    world.new_process()
    assert ["'src/b.txt'" in note for note in world.restore(second.ref).notes] == [True]
    world.restore(first.ref)
    assert (world.sandbox / "src/b.txt").read_text() == "two\n"


def test_chosen_paths_are_kept_too(world) -> None:
    first = world.capture()
    world.work("echo precious > new; echo other > a.txt")
    second = world.capture()
    spoil(world, key_of(b"precious\n"), "gone")
    restored = world.store.restore_paths(world.resource, first.ref, ["new"])
    assert len(restored.notes) == 1
    world.verify(second.ref, second.state_hash)


def test_what_does_not_go_is_not_read(world) -> None:
    first = world.capture()
    world.work("echo stays > stays")
    world.capture()
    world.work("echo other > a.txt")
    third = world.capture()
    spoil(world, key_of(b"stays\n"), "gone")
    restored = world.store.restore_paths(world.resource, first.ref, ["a.txt"])
    assert restored.notes == ()
    with pytest.raises(SnapshotDamagedError):
        world.verify(third.ref, third.state_hash)


def test_what_was_never_stored_is_no_damage(world) -> None:
    first = world.capture()
    world.work("echo unseen > new; echo unseen too > a.txt")
    assert world.restore(first.ref).notes == ()


def test_if_the_sandbox_has_other_bytes_too_nothing_is_changed(world) -> None:
    first = world.capture()
    world.work("echo precious > new")
    world.capture()
    path = world.sandbox / "new"
    spoil(world, key_of(b"precious\n"), "gone")
    rot(world, path, b"PRECIOUS\n")
    with pytest.raises(SnapshotDamagedError, match="touch"):
        world.restore(first.ref)
    assert path.read_bytes() == b"PRECIOUS\n"
    path.touch()
    world.new_process()
    rotten = world.capture()
    world.restore(first.ref)
    world.restore(rotten.ref)
    assert path.read_bytes() == b"PRECIOUS\n"


def rot(world, path: Path, data: bytes) -> None:
    """As a failing disk does it: nobody is told, and no time changes."""
    path.write_bytes(data)
    found = path.stat()
    with closing(sqlite3.connect(world.database)) as db:
        for table in ("entries", "recent_paths"):
            marks = (found.st_ctime_ns, found.st_mtime_ns, os.fsencode(path.name))
            db.execute(f"UPDATE {table} SET ctime_ns=?, mtime_ns=? WHERE path=?", marks)
        db.commit()
    world.new_process()


def test_the_git_state_is_stored_anew(world) -> None:
    first = world.capture()
    world.work("git switch -qc topic; echo x > x; git add x; git commit -qm mine; git tag t")
    second, git = world.capture(), world.git()
    with closing(sqlite3.connect(world.database)) as db:
        rows = db.execute("SELECT name, hash FROM side_contents WHERE seq=2").fetchall()
    for name, key in rows:
        world.restore(second.ref)
        spoil(world, key, "gone")
        restored = world.restore(first.ref)
        assert any("git state" in note for note in restored.notes), name
        world.verify(second.ref, second.state_hash)
    world.restore(second.ref)
    assert world.git() == git
