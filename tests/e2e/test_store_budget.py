"""`store.max-size`: refused before it is exceeded, and room again once checkpoints are gone."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from tests.support.refusals import refused
from tests.support.world import World, shell, write

NOISE = 400_000


def noise(name: str, size: int = NOISE) -> str:
    return f"head -c {size} /dev/urandom > {name}"


def used(world: World) -> int:
    folder = world.agents.data_dir / "snapshots"
    return sum(path.stat().st_size for path in folder.iterdir())


def budget(world: World, size: int) -> None:
    world.agents("config", "set", "store.max-size", str(size)).ok()


def test_a_refused_snapshot_leaves_the_store_within_its_budget(world: World) -> None:
    plan = world.use(write("a.txt", "a\n"), shell(noise("one"), "one"), shell(noise("two"), "two"))
    budget(world, 800_000)
    refused(plan.execute(), "store-full")
    assert plan.status["last_completed_step"] == 1
    assert used(world) <= 800_000
    listed = {group.group_id for group in plan.groups}
    assert set(plan("checkpoint", "verify").ok().data["verified"]) == listed


def test_deleted_checkpoints_give_their_room_back_to_the_disk_and_to_the_budget(
    world: World,
) -> None:
    # Larger than the other: an unfinished step is stored before it is undone and done again.
    first = shell(noise("one", 3 * NOISE), "one")
    plan = world.run(first, shell("rm one", "rm"), write("a.txt", "a\n"))
    full = used(world)
    assert full > 3 * NOISE
    # The budget is used up: another plan gets nothing.
    other = world.use(shell(noise("two"), "two"))
    budget(world, full + NOISE // 2)
    refused(other.execute(), "store-full")
    for group in plan.groups[1:-1]:
        world.agents("plan", "checkpoint", "delete", "--yes", plan.id, group.group_id).ok()
    stored = world.agents.data_dir / "snapshots" / f"{plan.id}.db"
    assert stored.stat().st_size < full - 2.9 * NOISE
    other("resume").ok()
    assert other.status["state"] == "complete"
    plan.rollback("start").ok()
    assert not (plan.sandbox / "a.txt").exists()


def test_an_applied_plan_gives_everything_back(world: World) -> None:
    plan = world.run(shell(noise("one"), "one"))
    assert used(world) > NOISE
    plan("apply", "--yes").ok()
    assert used(world) == 0


@pytest.fixture
def database(world: World) -> Path:
    path = world.top / "app.db"
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, b BLOB)")
        db.execute("INSERT INTO t (b) VALUES (randomblob(1000000))")
        db.commit()
    return path


def test_the_pages_of_a_database_count_and_are_given_back(world: World, database: Path) -> None:
    change = {"resource": "db", "sql": "UPDATE t SET b=randomblob(1000000)"}
    steps = [{"name": f"s{n}", "tool": "sql.execute", "with": change} for n in range(3)]
    resources = {"db": {"type": "sqlite", "path": str(database)}}
    budget(world, 500_000)
    plan = world.use(*steps, resources=resources)
    refused(plan.execute(), "store-full")
    assert used(world) < 500_000
    assert not list((world.agents.data_dir / "snapshots").glob("*.base*"))
    budget(world, 100_000_000)
    plan("resume").ok()
    full = used(world)
    assert full > 3_000_000
    for group in plan.groups[1:-1]:
        world.agents("plan", "checkpoint", "delete", "--yes", plan.id, group.group_id).ok()
    assert used(world) < full - 1_500_000
    plan("checkpoint", "verify").ok()
    plan.rollback("start").ok()
    assert rows(Path(plan.status["sandboxes"][0]["path"])) == rows(database)


def rows(path: Path) -> list[tuple[int, bytes]]:
    with closing(sqlite3.connect(path)) as db:
        return db.execute("SELECT id, b FROM t").fetchall()
