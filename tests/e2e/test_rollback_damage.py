"""A damaged snapshot is found by verify and refused by rollback, and nothing has changed."""

import hashlib
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from tests.support.guarded import BIG, nothing_changes, plan
from tests.support.refusals import refused
from tests.support.world import PlanHandle, World, write

__all__ = ["plan"]


def _flip(data: bytes) -> bytes:
    middle = len(data) // 2
    return data[:middle] + bytes([data[middle] ^ 0xFF]) + data[middle + 1 :]


def _flip_content(database: sqlite3.Connection, content: bytes) -> int:
    key = hashlib.sha256(content).digest()
    rows = database.execute("SELECT data FROM contents WHERE hash=?", (key,)).fetchall()
    for (data,) in rows:
        database.execute("UPDATE contents SET data=? WHERE hash=?", (_flip(data), key))
    return len(rows)


def _small_file(database: sqlite3.Connection) -> int:
    return _flip_content(database, b"one\n")


def _compressed_file(database: sqlite3.Connection) -> int:
    return _flip_content(database, BIG.encode())


def _missing_big(database: sqlite3.Connection) -> int:
    key = hashlib.sha256(BIG.encode()).digest()
    return database.execute("DELETE FROM contents WHERE hash=?", (key,)).rowcount


def _missing_content(database: sqlite3.Connection) -> int:
    key = hashlib.sha256(b"one\n").digest()
    database.execute("PRAGMA foreign_keys=OFF")
    return database.execute("DELETE FROM contents WHERE hash=?", (key,)).rowcount


def _in_versions(database: sqlite3.Connection, sql: str, *values: bytes) -> int:
    """Wherever the rows are."""
    tables = ("versions", "recent_paths")
    return sum(database.execute(sql.format(table), values).rowcount for table in tables)


def _mode(database: sqlite3.Connection) -> int:
    return _in_versions(database, "UPDATE {} SET mode=mode | 2 WHERE path=?", b"one.txt")


def _link_target(database: sqlite3.Connection) -> int:
    return _in_versions(database, "UPDATE {} SET target=? WHERE path=?", b"/etc/passwd", b"link")


def _path(database: sqlite3.Connection) -> int:
    return _in_versions(database, "UPDATE {} SET path=? WHERE path=?", b"../one.txt", b"one.txt")


def _forgotten_file(database: sqlite3.Connection) -> int:
    return _in_versions(database, "DELETE FROM {} WHERE path=?", b"big.txt")


def _forgotten_snapshots(database: sqlite3.Connection) -> int:
    database.execute("PRAGMA foreign_keys=OFF")
    return database.execute("DELETE FROM snapshots WHERE seq > 1").rowcount


def _damage(world: World, plan: PlanHandle, damage: Callable[[sqlite3.Connection], int]) -> None:
    with closing(sqlite3.connect(snapshot_file(world, plan))) as database:
        assert damage(database) > 0
        database.commit()


def _lose(plan: PlanHandle, *names: str) -> None:
    for name in names:
        (plan.sandbox / name).unlink()


@pytest.mark.parametrize(
    "damage",
    [
        _small_file,
        _compressed_file,
        _missing_content,
        _mode,
        _link_target,
        _path,
        _forgotten_file,
        _forgotten_snapshots,
    ],
)
def test_a_damaged_snapshot_is_refused_and_verify_finds_it(
    world: World, plan: PlanHandle, damage: Callable[[sqlite3.Connection], int]
) -> None:
    target = plan.group("after shell two").group_id
    _lose(plan, "big.txt", "link")
    plan("checkpoint", "create", "--label", "lost", "{}").ok()
    _damage(world, plan, damage)
    with nothing_changes(world, plan.sandbox):
        said = refused(plan.rollback(target), "snapshot-damaged")
        assert "agents plan checkpoint verify" in said
        for words in ((plan.id, target), (plan.id,)):
            found = world.agents("plan", "checkpoint", "verify", *words)
            assert (found.code, found.envelope["status"]) == (1, "error")
            assert target in [item["group_id"] for item in found.data["damaged"]]
            assert target not in found.data["verified"]


@pytest.mark.parametrize("damage", [_small_file, _missing_content])
def test_verify_names_exactly_the_checkpoints_that_need_a_damaged_content(
    world: World, plan: PlanHandle, damage: Callable[[sqlite3.Connection], int]
) -> None:
    # It is there from the first step on, and gone with the third.
    labels = [group.label for group in plan.groups]
    first, gone = labels.index("after file.write one.txt"), labels.index("after shell three")
    needing = [group.group_id for group in plan.groups[first:gone]]
    others = [group.group_id for group in (*plan.groups[:first], *plan.groups[gone:])]
    assert len(needing) > 2
    assert others
    _damage(world, plan, damage)

    found = world.agents("plan", "checkpoint", "verify", plan.id)

    assert found.code == 1
    assert [item["group_id"] for item in found.data["damaged"]] == needing
    assert all("'one.txt'" in item["reason"] for item in found.data["damaged"])
    assert found.data["verified"] == others
    stored = world.agents("store", "verify")
    # What they share is damaged for all of them, and told once.
    reasons = {item["reason"] for item in found.data["damaged"]}
    assert [item["problems"] for item in stored.data["damaged"]] == [list(reasons)]
    assert len(reasons) == 1


@pytest.mark.parametrize("damage", [_compressed_file, _link_target, _forgotten_file])
def test_what_no_checkpoint_has_seen_change_is_refused_too(
    world: World, plan: PlanHandle, damage: Callable[[sqlite3.Connection], int]
) -> None:
    _lose(plan, "big.txt", "link")
    _damage(world, plan, damage)
    before, state = plan.tree(), plan.status["state"]
    refused(plan.rollback("after shell two"), "snapshot-damaged")
    assert plan.tree() == before
    assert plan.status["state"] == state


@pytest.mark.parametrize("damage", [_compressed_file, _link_target, _forgotten_file])
def test_damage_to_what_the_sandbox_has_as_it_was_is_in_nobodys_way(
    world: World, plan: PlanHandle, damage: Callable[[sqlite3.Connection], int]
) -> None:
    target = plan.group("after shell two")
    expected = world.replay(["printf 'one\\n' > one.txt", f"cat > big.txt <<'E'\n{BIG}E"])[-1]
    _damage(world, plan, damage)
    plan.rollback(target.group_id).ok()
    assert plan.tree() == expected
    found = world.agents("plan", "checkpoint", "verify", plan.id, target.group_id)
    assert [item["group_id"] for item in found.data["damaged"]] == [target.group_id]


@pytest.mark.parametrize("damage", [_compressed_file, _missing_big])
@pytest.mark.parametrize("only", [(), ("--only", "big.txt")], ids=["all", "only"])
def test_the_last_good_copy_of_what_is_damaged_is_stored_anew_before_it_goes(
    world: World,
    plan: PlanHandle,
    damage: Callable[[sqlite3.Connection], int],
    only: tuple[str, ...],
) -> None:
    before = plan.tree()
    assert before[b"big.txt"][2] == BIG.encode()
    _damage(world, plan, damage)

    words = ("plan", "rollback", "--yes", *only, plan.id, "after file.write one.txt")
    answer = world.agents(*words).ok()

    assert b"big.txt" not in plan.tree()
    assert answer.envelope["status"] == "warn"
    assert any("'big.txt' was damaged" in text for text in answer.envelope["messages"])
    undo = next(group for group in reversed(plan.groups) if group.reason == "before_rollback")
    world.agents("plan", "checkpoint", "verify", plan.id, undo.group_id).ok()
    plan.rollback(undo.group_id).ok()
    assert plan.tree() == before


def test_the_last_good_pages_of_a_damaged_database_are_stored_anew_before_they_go(
    world: World,
) -> None:
    database = world.top / "app.db"
    with closing(sqlite3.connect(database)) as db:
        db.executescript("CREATE TABLE t (name); INSERT INTO t VALUES ('one')")
    sql = {"resource": "db", "sql": "UPDATE t SET name='two'"}
    plan = world.run(
        {"name": "row", "tool": "sql.execute", "with": sql},
        resources={"db": {"type": "sqlite", "path": str(database)}},
    )
    present = plan.sandbox.read_bytes()
    _damage(world, plan, lambda db: db.execute("UPDATE contents SET data=x'00'").rowcount)

    answer = plan.rollback("start").ok()

    assert any("of app.db was damaged" in text for text in answer.envelope["messages"])
    undo = next(group for group in reversed(plan.groups) if group.reason == "before_rollback")
    plan.rollback(undo.group_id).ok()
    assert plan.sandbox.read_bytes() == present


def test_other_groups_of_a_damaged_store_can_still_be_gone_back_to(
    world: World, plan: PlanHandle
) -> None:
    _lose(plan, "big.txt")
    plan("checkpoint", "create", "--label", "lost", "{}").ok()
    _damage(world, plan, _compressed_file)
    refused(plan.rollback("after shell two"), "snapshot-damaged")
    target = plan.group("after file.write one.txt")
    expected = world.replay(["printf 'one\\n' > one.txt"])[-1]
    plan.rollback(target.group_id).ok()
    assert plan.tree() == expected


def test_a_damaged_database_keeps_the_checkout_where_it_is_too(world: World) -> None:
    database = world.top / "app.db"
    with closing(sqlite3.connect(database)) as db:
        db.executescript("CREATE TABLE t (name); INSERT INTO t VALUES ('one')")
    plan = world.run(
        write("new.txt", "new\n", "code"),
        {
            "name": "row",
            "tool": "sql.execute",
            "with": {"resource": "db", "sql": "UPDATE t SET name='two'"},
        },
        write("newer.txt", "newer\n", "more code"),
        resources={
            "code": {"type": "git-checkout", "path": "."},
            "db": {"type": "sqlite", "path": str(database)},
        },
    )
    snapshots = world.agents.data_dir / "snapshots"
    [base] = [path for path in snapshots.iterdir() if not path.name.startswith(f"{plan.id}.db")]
    base.write_bytes(bytes(base.stat().st_size))

    with nothing_changes(world, world.agents.data_dir / "sandboxes" / plan.id):
        assert "`db`" in refused(plan.rollback("start"), "snapshot-damaged")
    # What the database has as it was is in nobody's way.
    plan.rollback("after sql.execute row").ok()
    assert not (plan.sandbox / "newer.txt").exists()


def test_a_base_file_that_git_has_lost_is_a_damaged_snapshot(
    world: World, plan: PlanHandle
) -> None:
    oid = world.project.git("rev-parse", "HEAD:README.md")
    stored = world.project.git_dir / "objects" / oid[:2] / oid[2:]
    stored.chmod(0o600)
    stored.unlink()
    with nothing_changes(world, plan.sandbox):
        assert "README.md" in refused(plan.rollback("start"), "snapshot-damaged")


@pytest.mark.parametrize("content", [b"this is no database at all" * 100, b"", None])
def test_a_snapshot_file_that_is_garbage_empty_or_gone_is_refused(
    world: World, plan: PlanHandle, content: bytes | None
) -> None:
    target = plan.groups[0].group_id
    file = snapshot_file(world, plan)
    for path in file.parent.glob(f"{file.name}*"):
        path.unlink()
    if content is not None:
        file.write_bytes(content)
    before, sandbox = plan.tree(), plan.status
    refused(plan.rollback(target), "snapshot-damaged")
    assert plan.tree() == before
    assert plan.status == sandbox


def snapshot_file(world: World, plan: PlanHandle) -> Path:
    return world.agents.data_dir / "snapshots" / f"{plan.id}.db"
