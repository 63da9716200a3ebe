"""Decisions and what they use: what `plan tree` and `plan explain` tell."""

from typing import Any

from tests.support.refusals import refused
from tests.support.world import PlanHandle, Step, World, shell, write


def step(tool: str, name: str, uses: tuple[str, ...] = (), **arguments: Any) -> Step:
    return {"name": name, "tool": tool, "with": {"resource": "code", **arguments}, "uses": [*uses]}


def decisions(plan: PlanHandle) -> list[dict[str, Any]]:
    """Those of the steps, in their order."""
    return plan("tree").ok().data["tree"]["children"]


def explained(plan: PlanHandle, index: int) -> dict[str, Any]:
    wanted = decisions(plan)[index]["id"]
    return plan.agents("plan", "explain", wanted).ok().data


def used(plan: PlanHandle, index: int) -> dict[int, str]:
    """The steps whose output a step used, each with the reason."""
    numbers = {node["id"]: number for number, node in enumerate(decisions(plan))}
    found = explained(plan, index)["depends_on"]
    return {numbers[item["decision_id"]]: item["why"] for item in found}


def test_a_step_depends_on_those_whose_output_it_uses(world: World) -> None:
    plan = world.run(
        write("new/a.txt", "a"),
        write("new/b.txt", "b"),
        step("file.read", "read it", path="new/a.txt"),
        step("file.edit", "change it", path="new/b.txt", old="b", new="c"),
        shell("cat new/a.txt", name="look"),
        step("shell", "build", uses=("read it",), command="true"),
        step("file.delete", "clear", path="new", recursive=True),
        step("file.list", "list"),
    )

    assert [used(plan, index) for index in range(6)] == [
        {},
        {},
        {0: "reads code:new/a.txt"},
        {1: "reads code:new/b.txt"},
        {},
        {2: "uses 'read it'"},
    ]
    assert set(used(plan, 6)) == {0, 1, 3}
    assert set(used(plan, 7)) == {0, 1, 3, 6}
    assert [item["why"] for item in explained(plan, 0)["used_by"]] == [
        "reads code:new/a.txt",
        "reads code:new",
        "reads code",
    ]


def test_git_state_and_databases_count_as_one_path(world: World) -> None:
    plan = world.run(
        write("a.txt", "a"),
        shell("git add a.txt"),
        write("b.txt", "b"),
    )

    assert used(plan, 1) == {0: "changes code after it"}
    assert used(plan, 2) == {1: "changes code:b.txt after it"}


def test_explain_says_everything_about_a_decision(world: World) -> None:
    plan = world.run(write("a.txt", "a"))
    found = explained(plan, 0)

    assert found["alternatives"] == []
    assert found["rationale"] == "the action file says so"
    assert found["confidence"] == 1.0
    assert found["context"] == {"tool": "file.write", "actor_state": {}}
    assert found["group_id"] == plan.group("decision 1: write").group_id
    assert found["corrections"] == []
    (call,) = found["tool_calls"]
    assert call["files"] == [{"path": "a.txt", "change": "added"}]
    text = world.agents.inside("--format", "plain", "plan", "explain", found["decision_id"])
    assert "the action file says so" in text.ok().out


def test_a_decision_is_found_by_the_beginning_of_its_id(world: World) -> None:
    plan = world.run(write("a.txt", "a"), write("a.txt", "b"))
    first, second = (node["id"] for node in decisions(plan))
    shared = next(n for n in range(26) if first[n] != second[n])

    assert world.agents("plan", "explain", second[:-1].lower()).ok().data["decision_id"] == second
    both = refused(world.agents("plan", "explain", first[: max(shared, 4)]), "decision-ambiguous")
    for node in (first, second):
        ending = next(word for word in both.split() if len(word) >= 4 and node.endswith(word))
        assert world.agents("plan", "explain", ending).ok().data["decision_id"] == node
    refused(world.agents("plan", "explain", "7ZZZZ"), "decision-not-found")
    refused(world.agents("plan", "explain", "7"), "decision-not-found")
