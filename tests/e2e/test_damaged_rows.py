"""A row of our database that is not as we write them is told as that, with its name."""

import sqlite3

import pytest
from tests.support.world import World, write

DAMAGES = {
    "checkpoints.metadata_json": "{broken",
    "checkpoint_groups.actor_state_json": "",
    "checkpoints.created_at": "yesterday",
    "checkpoints.checkpoint_id": "7",
    "checkpoint_groups.reason": "no reason",
}


def damage(world: World, place: str, value: str) -> None:
    table, column = place.split(".")
    db = sqlite3.connect(world.agents.data_dir / "cleveragents.db")
    with db:
        db.execute(f"UPDATE {table} SET {column} = ? WHERE rowid = 1", (value,))
    db.close()


@pytest.mark.parametrize("place", DAMAGES)
@pytest.mark.parametrize("command", ["list", "rollback", "verify"])
def test_it_is_no_bug_and_the_row_is_named(world: World, place: str, command: str) -> None:
    plan = world.run(write("a.txt", "a\n"))
    damage(world, place, DAMAGES[place])

    answer = plan.rollback("start") if command == "rollback" else plan("checkpoint", command)

    assert answer.error["code"] == "database-damaged"
    assert f"in {place.partition('.')[0]} cannot be read" in answer.error["message"]
    assert "agents doctor" in answer.error["hint"]


@pytest.mark.parametrize("place", [place for place in DAMAGES if place.endswith("_json")])
def test_doctor_finds_each_value_that_is_no_json(world: World, place: str) -> None:
    world.run(write("a.txt", "a\n"))
    damage(world, place, DAMAGES[place])

    found = world.agents("doctor").data["findings"]

    table, column = place.split(".")
    assert any(f"{column} of " in str(item) and f" in {table} " in str(item) for item in found)


def test_with_the_value_back_everything_works_again(world: World) -> None:
    plan = world.run(write("a.txt", "a\n"))
    damage(world, "checkpoints.metadata_json", "{broken")
    plan.rollback("start")
    damage(world, "checkpoints.metadata_json", "{}")

    assert world.agents("doctor").data["findings"] == []
