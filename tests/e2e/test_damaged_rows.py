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
    "checkpoint_groups.superseded": "perhaps",
    "plan_actions.action_json": '{"name": "without steps"}',
}
OF_RESOURCES = {
    "plan_resources.type": "tape",
    "plan_resources.confinement_json": '{"mode": "a bit"}',
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
    table = place.partition(".")[0].replace("plan_actions", "plans")  # read with the plan's own
    assert f"in {table} cannot be read" in answer.error["message"]
    assert "agents doctor" in answer.error["hint"]


@pytest.mark.parametrize("place", OF_RESOURCES)
def test_so_is_that_of_a_resource(world: World, place: str) -> None:
    plan = world.run(write("a.txt", "a\n"))
    damage(world, place, OF_RESOURCES[place])

    for answer in (plan.rollback("start"), plan("checkpoint", "verify"), plan("apply")):
        assert answer.error["code"] == "database-damaged"
        assert "in plan_resources cannot be read" in answer.error["message"]


def test_what_a_type_keeps_for_itself_is_told_as_the_resource(world: World) -> None:
    plan = world.run(write("a.txt", "a\n"))
    damage(world, "plan_resources.details_json", '{"git_dir": 7}')

    for answer in (plan.rollback("start"), plan("apply")):
        assert answer.error["code"] == "database-damaged"
        told = f"what plan {plan.id} keeps of `code` cannot be read"
        assert told in answer.error["message"]
        assert "$.git_dir" in answer.error["message"]


def test_so_is_what_it_keeps_of_an_apply(world: World) -> None:
    plan = world.run(write("a.txt", "a\n"))
    plan("apply", "--yes").ok()
    damage(world, "plan_resources.intent_json", '{"way": "by hand", "head": ""}')

    answer = plan("diff")

    assert answer.error["code"] == "database-damaged"
    assert "keeps of `code` cannot be read: Invalid enum value" in answer.error["message"]


def test_what_was_known_for_a_decision_is_read_as_that(world: World) -> None:
    plan = world.run(write("a.txt", "a\n"))
    damage(world, "decisions.context_json", '{"first_step": "soon"}')

    for answer in (plan("tree"), plan.rollback("start")):
        assert answer.error["code"] == "database-damaged"
        assert "in decisions cannot be read" in answer.error["message"]
        assert "$.context.first_step" in answer.error["message"]


@pytest.mark.parametrize(
    "place", ["checkpoints.metadata_json", "checkpoint_groups.actor_state_json"]
)
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
