"""How many children run at a time, how often one is tried, and the groups around them."""

from typing import Any

from tests.support.world import Step, World, shell

VARIABLE = "CLEVERAGENTS_CHECKPOINT_AUTO_CREATE_ON"


def spawn(*commands: str, **keys: Any) -> Step:
    children = [
        {"name": f"c{number}", "steps": [shell(command, f"do {number}")]}
        for number, command in enumerate(commands)
    ]
    return {"name": "spawn", "subplans": {"parallel": True, "plans": children, **keys}}


def test_no_more_children_run_at_a_time_than_are_allowed_and_the_rest_queue(world: World) -> None:
    log = world.beside / "log"
    at_work = [f"echo in >> {log}; sleep 0.2; echo out >> {log}; touch f{n}" for n in range(5)]
    plan = world.run(spawn(*at_work, max_parallel=2))
    running = most = 0
    for line in log.read_text().split():
        running += 1 if line == "in" else -1
        most = max(most, running)
    assert most == 2
    assert sorted(path.name for path in plan.sandbox.glob("f?")) == [f"f{n}" for n in range(5)]


def test_a_child_that_fails_is_tried_twice_more_and_then_given_up(world: World) -> None:
    tally = world.beside / "tally"
    plan = world.run(spawn(f"echo x >> {tally}; test $(wc -l < {tally}) = 3 && touch good"))
    assert (plan.sandbox / "good").exists()
    tally.unlink()
    never = world.use(spawn(f"echo x >> {tally}; false"))
    assert never.execute().code == 1
    assert tally.read_text() == "x\n" * 3


def test_there_is_a_group_before_the_first_child_and_one_after_each_if_asked(world: World) -> None:
    steps = (shell("echo 1 > a", "one"), spawn("test -e a && echo 2 > b", "echo 3 > c"))
    plan = world.run(*steps)
    (spawned,) = [group for group in plan.groups if group.reason == "on_subplan_spawn"]
    assert "after_subplan" not in plan.reasons
    plan.rollback(spawned.group_id).ok()
    assert (plan.sandbox / "a").exists()
    assert not (plan.sandbox / "b").exists()

    agents = world.agents.having(**{VARIABLE: "after_subplan"})
    asked = world.use(*steps)
    agents("plan", "execute", asked.id).ok()
    assert asked.reasons.count("after_subplan") == 2
    assert "on_subplan_spawn" not in asked.reasons
