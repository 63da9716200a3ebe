"""How a person names a plan: by its id, the beginning of it, or as the latest."""

from tests.support.refusals import refused
from tests.support.world import World, write


def test_latest_is_the_newest_plan(world: World) -> None:
    world.use(write("a.txt", "one"))
    newest = world.use(write("b.txt", "two"))

    world.agents("plan", "execute", "latest").ok()

    assert newest("status").ok().data["state"] == "complete"
    assert world.agents("plan", "checkpoint", "list", "LATEST").ok().data["plan_id"] == newest.id


def test_a_child_is_never_the_latest(world: World) -> None:
    child = {"name": "c", "steps": [write("b.txt", "two")]}
    parent = world.run({"name": "split", "subplans": {"plans": [child]}})

    assert world.agents("plan", "status", "latest").ok().data["plan_id"] == parent.id


def test_the_beginning_of_an_id_is_enough_if_it_fits_one_plan(world: World) -> None:
    one = world.use(write("a.txt", "one"))
    two = world.use(write("b.txt", "two"))
    same = next(i for i in range(26) if one.id[i] != two.id[i])

    found = world.agents("plan", "status", two.id[: same + 1].lower()).ok()
    assert found.data["plan_id"] == two.id
    refused(world.agents("plan", "status", one.id[:6]), "plan-ambiguous")
    refused(world.agents("plan", "status", "7ZZZZZZZ"), "plan-not-found")
    refused(world.agents("plan", "status", one.id[:5]), "invalid-id", 2)


def test_without_any_plan_the_latest_is_said_to_be_missing_and_how_to_make_one(
    fresh: World,
) -> None:
    error = fresh.agents("plan", "status", "latest").error
    assert (error["code"], error["message"]) == ("plan-not-found", "there is no plan yet")
    assert "agents plan use" in error["hint"]
