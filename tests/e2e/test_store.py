"""`agents store`: what is stored, whether it is whole, how much it may be, what is left over."""

import os
import time

from tests.support.refusals import refused
from tests.support.world import World, shell, write

BIG = "head -c 400000 /dev/urandom > big.bin"


def test_status_shows_the_size_and_the_plans(world: World) -> None:
    plan = world.use(write("a.txt", "a\n"))
    plan("execute").ok()

    data = world.agents("store", "status").ok().data

    (share,) = data["plans"]
    assert share["plan_id"] == plan.id
    assert share["checkpoints"] == plan.status["execution"]["checkpoints"]
    assert data["size_bytes"] == share["size_bytes"] > 0
    assert data["limit_bytes"] == 20_000_000_000


def test_sandboxes_and_records_count_and_what_helps_is_told(world: World) -> None:
    plan = world.run(shell("head -c 300000 /dev/urandom > big.bin"))
    done = world.run(write("a.txt", "a\n"))
    done("cancel").ok()

    answer = world.agents("store", "status").ok()

    shares = {share["plan_id"]: share for share in answer.data["plans"]}
    assert shares[plan.id]["sandbox_bytes"] > 300_000 > shares[done.id]["sandbox_bytes"] > 0
    data = answer.data
    assert data["sandbox_bytes"] == sum(share["sandbox_bytes"] for share in data["plans"])
    assert data["database_bytes"] > 0
    parts = ("size_bytes", "sandbox_bytes", "database_bytes")
    assert data["total_bytes"] == sum(data[key] for key in parts)
    assert data["next_steps"][0] == "agents prune --older-than 14d"
    out = world.agents.inside("store", "status").ok().out
    helps = data["next_steps"][-1].split()[1:]
    assert helps == ["plan", "discard", "--any", "demo-1"]
    world.agents(*helps, "--yes").ok()
    for word in (
        "sandboxes",
        "records",
        "copies of projects",
        "get room back: agents plan discard",
    ):
        assert word in out


def test_children_s_sandboxes_count_with_their_parent(world: World) -> None:
    plans = [{"name": "en", "steps": [shell("head -c 300000 /dev/urandom > b; exit 3")]}]
    plan = world.use({"name": "both", "subplans": {"plans": plans, "max_retries": 0}})
    plan("execute")

    (share,) = world.agents("store", "status").ok().data["plans"]

    assert (share["plan_id"], share["sandbox_bytes"] > 300_000) == (plan.id, True)


def test_an_empty_store_has_nothing(world: World) -> None:
    data = world.agents("store", "status").ok().data

    assert (data["size_bytes"], data["plans"]) == (0, [])
    assert (data["sandbox_bytes"], data["next_steps"]) == (0, [])


def test_verify_proves_all_plans_and_finds_damage(world: World) -> None:
    plans = [world.use(write("a.txt", text)) for text in ("one\n", "two\n")]
    for plan in plans:
        plan("execute").ok()
    assert world.agents("store", "verify").ok().data["plans"] == 2

    store = world.agents.data_dir / "snapshots" / f"{plans[0].id}.db"
    store.write_bytes(b"not a database" * 100)

    answer = world.agents("store", "verify")
    assert answer.code == 1
    assert [item["plan_id"] for item in answer.data["damaged"]] == [plans[0].id]
    assert answer.data["error"]["code"] == "snapshot-damaged"


def test_beyond_the_limit_a_step_is_refused_and_nothing_stored_is_harmed(world: World) -> None:
    plan = world.use(write("a.txt", "a\n"), shell(BIG, "big"))
    world.agents("config", "set", "store.max-size", "300KB").ok()

    refused(plan("execute"), "store-full")

    assert plan.status["state"] == "errored"
    assert plan.status["last_completed_step"] == 0
    assert "store.max-size" in plan("errors").ok().out
    world.agents("store", "verify").ok()

    world.agents("config", "set", "store.max-size", "100MB").ok()
    plan("resume").ok()
    assert (plan.sandbox / "big.bin").stat().st_size == 400_000


def test_leftovers_of_a_crash_go_at_the_next_start_and_what_others_may_need_stays(
    world: World,
) -> None:
    plan = world.use(write("a.txt", "a\n"))
    data = world.agents.data_dir
    (data / "snapshots").mkdir(exist_ok=True)
    (data / "scratch").mkdir(exist_ok=True)
    orphan = data / "snapshots" / "01ARZ3NDEKTSV4RRFFQ69G5FAV.db"
    orphan.write_bytes(b"x")
    old, fresh = data / "scratch" / "git-old", data / "scratch" / "git-fresh"
    old.mkdir()
    fresh.mkdir()
    yesterday = time.time() - 100_000
    os.utime(old, (yesterday, yesterday))

    plan("execute").ok()

    assert orphan.exists()  # of a plan that another database may know
    assert not old.exists()
    assert fresh.exists()


def test_the_store_is_for_its_owner_only(world: World) -> None:
    plan = world.use(write("a.txt", "a\n"))
    plan("execute").ok()

    for folder in ("snapshots", f"sandboxes/{plan.id}"):
        assert (world.agents.data_dir / folder).stat().st_mode & 0o077 == 0, folder
    for file in (world.agents.data_dir / "snapshots").iterdir():
        assert file.stat().st_mode & 0o077 == 0, file
