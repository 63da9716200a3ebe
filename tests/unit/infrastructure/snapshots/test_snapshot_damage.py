"""Damage, locks, links and leftovers: each is found by the store, and nothing is touched."""

import os
import sqlite3
import stat
import subprocess

import pytest
from msgspec.structs import replace

from cleveragents.domain.errors import (
    DatabaseBusyError,
    DatabaseTooNewError,
    ResourceError,
    SandboxMissingError,
    SnapshotDamagedError,
    SnapshotFailedError,
)
from cleveragents.domain.resource_kinds import POSTGRES
from cleveragents.infrastructure.snapshots.store import plan_store

# --- damage and refusal -------------------------------------------------------------------------


def _edit(world, *statements: str) -> None:
    with sqlite3.connect(world.database) as db:
        for statement in statements:
            db.execute(statement)
    db.close()


MIB = 1 << 20
FLIP = "UPDATE contents SET data = CAST(X'00' || substr(data, 2) AS BLOB) WHERE "
DAMAGE = {
    "a flipped byte": FLIP + "codec IN (0, 1)",
    "a missing content": "DELETE FROM contents WHERE codec IN (0, 1)",
    "a missing chunk": "DELETE FROM file_chunks WHERE position = 1",
    "another mode": "UPDATE recent_paths SET mode = 511 WHERE path = X'6E6577'",
    "a missing version": "DELETE FROM recent_paths WHERE path = X'6E6577'",
    "another total": "UPDATE snapshots SET identity = '{}'",
    "a missing snapshot": "DELETE FROM snapshots",
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=list(DAMAGE))
def test_damage_is_found(world, damage: str) -> None:
    (world.sandbox / "new").write_bytes(os.urandom(5 * MIB))
    first = world.capture()
    world.verify(first.ref, first.state_hash)
    _edit(world, damage)
    with pytest.raises(SnapshotDamagedError):
        world.verify(first.ref, first.state_hash)


def test_nothing_is_touched_when_content_is_damaged(world) -> None:
    world.work("echo 1234567890 > new; mkdir ro; chmod 0500 ro")
    first = world.capture()
    world.work("rm new; echo y > a.txt; git add a.txt; rm src/b.txt")
    world.capture()
    before = (world.state(), world.git())
    _edit(world, FLIP + "size = 11")
    with pytest.raises(SnapshotDamagedError, match="'new'"):
        world.restore(first.ref)
    assert (world.state(), world.git()) == before


def test_a_blob_that_git_lost_is_named(world) -> None:
    first = world.capture()
    blob = world.sh("git rev-parse HEAD:a.txt").strip()
    (world.project / ".git/objects" / blob[:2] / blob[2:]).unlink()
    with pytest.raises(SnapshotDamagedError, match=r"a\.txt"):
        world.verify(first.ref, first.state_hash)


@pytest.mark.parametrize("ref", ["77", "", "x", "-1", "1.0"])
def test_an_unknown_ref_is_damage(world, ref: str) -> None:
    first = world.capture()
    with pytest.raises(SnapshotDamagedError):
        world.verify(ref, first.state_hash)
    with pytest.raises(SnapshotDamagedError):
        world.restore(ref)


def test_another_hash_is_damage(world) -> None:
    first = world.capture()
    with pytest.raises(SnapshotDamagedError):
        world.verify(first.ref, "sha256:" + "0" * 64)


def test_a_newer_format_is_refused(world) -> None:
    world.capture()
    _edit(world, f"PRAGMA user_version={plan_store.FORMAT + 1}")
    with pytest.raises(DatabaseTooNewError):
        world.capture()


def test_a_file_that_is_no_database_is_damage(world) -> None:
    world.capture()
    world.store.forget(world.resource.plan_id)
    world.database.write_bytes(b"nonsense" * 1000)
    with pytest.raises(SnapshotDamagedError):
        world.capture()


def test_a_locked_store_is_busy(world, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan_store, "_BUSY_TIMEOUT", 0.05)
    world.capture()
    other = sqlite3.connect(world.database, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(DatabaseBusyError):
        world.capture()
    other.close()


def test_a_type_without_engine_is_refused(world) -> None:
    world.resource = replace(world.resource, type=POSTGRES.type)
    with pytest.raises(ResourceError):
        world.capture()


def test_a_missing_sandbox_is_named(world) -> None:
    first = world.capture()
    world.sandbox.rename(world.top / "moved")
    with pytest.raises(SandboxMissingError):
        world.capture()
    with pytest.raises(SandboxMissingError):
        world.restore(first.ref)


def test_a_file_that_never_holds_still_stops_a_snapshot(world) -> None:
    (world.sandbox / "busy").write_bytes(bytes(48 * MIB))
    command = ["/bin/sh", "-c", "while :; do echo x >> busy; done"]
    with subprocess.Popen(command, cwd=world.sandbox) as writer:
        try:
            with pytest.raises(SnapshotFailedError, match="busy"):
                world.capture()
        finally:
            writer.kill()
    assert world.capture().ref == "1"


# --- restore stays inside -----------------------------------------------------------------------


def test_a_planted_link_is_never_followed(world) -> None:
    first, before = world.capture(), world.state()
    outside = world.top / "outside"
    outside.mkdir()
    (outside / "b.txt").write_text("mine")
    world.work("rm -r src; ln -s ../outside src")
    world.restore(first.ref)
    assert world.state() == before
    assert (outside / "b.txt").read_text() == "mine"


def test_hard_linked_files_are_replaced(world) -> None:
    first = world.capture()
    outside = world.top / "outside"
    world.work(f"echo changed > a.txt; chmod 600 a.txt; ln a.txt {outside}")
    world.restore(first.ref)
    assert outside.read_text() == "changed\n"
    assert stat.S_IMODE(outside.stat().st_mode) == 0o600


def test_what_a_killed_restore_left_is_cleared(world) -> None:
    first, before = world.capture(), world.state()
    world.work("echo x > a.txt; mkdir -p d/e; echo x > d/e/f")
    world.capture()
    # As a kill in the middle leaves it: some paths done, some not, scratch files around.
    world.work("echo one > a.txt; rm d/e/f; chmod 700 d; echo half > .cleveragents-0011")
    leftover = world.top / "scratch" / f"restore-{world.resource.resource_id}"
    leftover.mkdir(parents=True)
    (leftover / "junk").write_text("x")
    world.new_process()
    world.restore(first.ref)
    assert world.state() == before
    assert list((world.top / "scratch").iterdir()) == []
