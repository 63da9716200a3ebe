"""How a person names a plan: by name, as the latest, by its id or a part of it, or not at all."""

from pathlib import Path

from tests.support.agents import Answer
from tests.support.refusals import refused
from tests.support.world import PlanHandle, World, write


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
    refused(world.agents("plan", "status", one.id[:3]), "plan-not-found")
    assert world.agents("plan", "status", one.id[-8:].lower()).ok().data["plan_id"] == one.id


def test_without_any_plan_the_latest_is_said_to_be_missing_and_how_to_make_one(
    fresh: World,
) -> None:
    error = fresh.agents("plan", "status", "latest").error
    assert (error["code"], error["message"]) == ("plan-not-found", "there is no plan yet")
    assert "agents plan use" in error["hint"]


def named(world: World, name: str) -> PlanHandle:
    """A plan of an action of this name, which writes one file."""
    return world.use(write(f"{name}.txt", "x", "write it"), name=name)


def who(answer: Answer) -> str:
    return str(answer.ok().data["plan_id"])


def test_plans_are_counted_by_action_and_called_so(world: World) -> None:
    hello, other, again = (named(world, name) for name in ("hello", "other", "hello"))

    assert [p.status["name"] for p in (hello, other, again)] == ["hello-1", "other-1", "hello-2"]
    assert who(world.agents("plan", "status", "hello-1")) == hello.id
    assert who(world.agents("plan", "status", "hello")) == again.id
    assert who(world.agents("plan", "status", "other")) == other.id
    assert who(world.agents("plan", "status")) == again.id
    refused(world.agents("plan", "status", "hello-3"), "plan-not-found")
    refused(world.agents("plan", "status", "hell"), "plan-not-found")


def test_a_plans_own_name_counts_before_an_actions_that_ends_in_a_number(world: World) -> None:
    first, _, third = (named(world, "hello") for _ in range(3))
    odd = named(world, "hello-3")

    assert odd.status["name"] == "hello-3-1"
    assert who(world.agents("plan", "status", "hello-3")) == third.id
    assert who(world.agents("plan", "status", "hello-3-1")) == odd.id
    assert who(world.agents("plan", "status", "hello-1")) == first.id


def test_where_no_plan_has_that_number_the_action_that_ends_in_it_is_meant(world: World) -> None:
    named(world, "hello")
    odd = named(world, "hello-3")

    assert who(world.agents("plan", "status", "hello-3")) == odd.id


def test_a_name_of_another_place_needs_any_and_an_id_does_not(world: World, tmp_path: Path) -> None:
    plan = named(world, "hello")
    other = tmp_path / "elsewhere"
    other.mkdir()
    agents = world.agents.at(other)

    for name in ("hello", "hello-1"):
        told = refused(agents.json("plan", "status", name), "plan-elsewhere")
        assert str(world.project.path) in told
        assert "--any hello-1" in told
        assert who(agents.json("plan", "status", "--any", name)) == plan.id
    for part in (plan.id, plan.id.lower(), plan.id[-8:]):
        assert who(agents.json("plan", "status", part)) == plan.id


def test_a_child_is_called_by_its_name_below_its_parents(world: World) -> None:
    inner = {"name": "x", "steps": [write("x.txt", "x")]}
    nested = {"name": "more", "subplans": {"plans": [inner]}}
    child = {"name": "en", "steps": [write("b.txt", "two"), nested]}
    parent = world.run({"name": "split", "subplans": {"plans": [child]}})
    listed = world.agents("plan", "list", "--all").ok().data["plans"]

    names = [row["name"] for row in listed]
    assert names == ["demo-1", "demo-1/en", "demo-1/en/x"]
    for row in listed:
        assert who(world.agents("plan", "status", row["name"])) == row["plan_id"]
    assert who(world.agents("plan", "status", f"{parent.id}/en")) == listed[1]["plan_id"]
    refused(world.agents("plan", "status", "demo-1/de"), "plan-not-found")


def test_every_plan_command_is_about_the_latest_where_none_is_named(world: World) -> None:
    plan = world.run(write("a.txt", "one"), write("b.txt", "two", "the second"))
    for words in (
        ("status",), ("tree",), ("artifacts",), ("errors",), ("effects",), ("diff",),
        ("checkpoint", "list"), ("checkpoint", "verify"), ("checkpoint", "prune", "--dry-run"),
        ("checkpoint", "create", "--label", "mine"), ("resume", "--dry-run"), ("execute",),
    ):  # fmt: skip
        world.agents("plan", *words).ok()
    shown = world.agents("plan", "checkpoint", "show", "mine").ok().data
    assert shown["plan_id"] == plan.id
    assert world.agents("plan", "checkpoint", "diff", "0", "-1").ok().data["files"] == [
        {"resource": "code", "path": "a.txt", "status": "added"}
    ]
    assert world.agents("plan", "checkpoint", "verify", "1").ok().data["plan_id"] == plan.id
    assert world.agents("plan", "explain", "2").ok().data["chosen"] == "file.write: the second"
    assert world.agents("plan", "rollback", "--yes", "-1").ok().data["changes_reverted"] == [
        {"file": "b.txt", "action": "removed"}
    ]
    world.agents("plan", "checkpoint", "delete", "--yes", "mine").ok()
    world.agents("plan", "apply", "--yes").error  # noqa: B018 - it has not done all its steps yet
    world.agents("plan", "cancel").ok()
    assert plan("status").ok().data["state"] == "cancelled"


def test_a_plan_without_a_checkpoint_is_told_what_there_is(world: World) -> None:
    plan = named(world, "hello")
    plan.execute().ok()
    for words in (("rollback", "--yes"), ("checkpoint", "show"), ("checkpoint", "delete")):
        for named_so in ((), ("hello-1",), ("hello",), (plan.id,)):
            told = refused(world.agents("plan", *words, *named_so), "checkpoint-required", 2)
            assert "write it" in told
    told = refused(world.agents("plan", "rollback", "--yes", "nothing"), "checkpoint-not-found")
    assert "checkpoint list" in told


def test_a_word_that_names_a_checkpoint_of_the_latest_is_no_plan(world: World) -> None:
    named(world, "write")
    latest = named(world, "hello")
    latest.execute().ok()

    told = world.agents("plan", "rollback", "--yes", "--dry-run", "write").ok().data
    assert told["rollback_summary"]["plan"] == latest.id


def test_a_number_behind_a_dash_is_no_option_and_an_option_is_no_number(world: World) -> None:
    plan = world.run(write("a.txt", "one"))

    assert plan("checkpoint", "show", "{}", "-1").ok().data["label"] == "start"
    assert refused(plan("checkpoint", "show", "{}", "-7"), "checkpoint-not-found")
    assert "no such option '-x'" in refused(plan("rollback", "-x"), "usage", 2).lower()


def test_a_decision_is_named_by_its_step_or_by_a_part_of_its_name(world: World) -> None:
    first = world.run(write("a.txt", "one", "write the page"), write("b.txt", "two", "check it"))
    world.run(write("a.txt", "one", "write the page"), write("c.txt", "two", "check all"))

    told = world.agents("plan", "explain", "check").ok().data
    assert (told["chosen"], told["step_index"]) == ("file.write: check all", 1)
    older = world.agents("plan", "explain", "2", "--plan", "demo-1").ok().data
    assert (older["plan_id"], older["chosen"]) == (first.id, "file.write: check it")
    assert refused(world.agents("plan", "explain", "e"), "decision-ambiguous").count("\n") == 2
    refused(world.agents("plan", "explain", "3"), "decision-not-found")
    done = world.agents("plan", "correct", "2", "-g", "again", "--yes").ok().data
    assert done["steps"] == [1]
