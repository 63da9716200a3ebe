"""Validations: run when the steps are done, and what is required of a result gates its apply."""

import json
from typing import Any

import pytest
from tests.support.agents import Answer
from tests.support.refusals import refused
from tests.support.world import PlanHandle, World, action, write


def checking(kind: str, command: str, **more: Any) -> dict[str, Any]:
    return {"command": ["/bin/sh", "-c", command], "validation": kind, **more}


def run(world: World, *, content: str = "good\n", **keys: Any) -> PlanHandle:
    plan = world.use(write("out.txt", content), **keys)
    plan.execute()
    return plan


GOOD = checking("required", "grep -q good out.txt")


def test_a_validation_that_passes_is_a_decision_with_a_checkpoint_and_lets_apply_through(
    world: World,
) -> None:
    plan = run(world, tools={"check": GOOD})
    nodes = plan("tree").ok().data["tree"]["children"]
    assert [node["type"] for node in nodes] == ["tool_invocation", "validation_response"]
    assert nodes[1]["checkpoint"]
    status = plan.status
    assert status["state"] == "complete"
    assert [step["status"] for step in status["progress"]] == ["complete", "complete"]
    world.agents("plan", "apply", "--yes", plan.id).ok()
    assert world.project.read("out.txt") == "good\n"


def test_a_required_one_that_fails_keeps_the_plan_from_being_applied(world: World) -> None:
    before = world.project.fingerprint()
    plan = run(world, content="bad\n", tools={"check": GOOD})
    status = plan.status
    assert (status["phase"], status["state"]) == ("execute", "errored")
    assert (status["error"]["tool"], status["error"]["step"]) == ("check", 1)
    told = refused(world.agents("plan", "apply", "--yes", plan.id), "validation-unmet")
    assert "check has failed" in told
    assert world.project.fingerprint() == before
    # It can be tried again, and it can be rolled back.
    assert plan("resume").code == 1
    assert plan.rollback(plan.groups[0].group_id).ok()
    assert plan.status["state"] == "queued"


def test_a_required_one_that_passes_on_the_second_try_opens_the_way(world: World) -> None:
    gate = world.beside / "gate"
    plan = run(world, tools={"check": checking("required", f"test -e {gate}")})
    assert plan.status["state"] == "errored"
    gate.touch()
    plan("resume").ok()
    world.agents("plan", "apply", "--yes", plan.id).ok()


def test_an_informational_one_is_only_reported(world: World) -> None:
    plan = run(world, tools={"size": checking("informational", "echo too large >&2; exit 3")})
    assert plan.status["state"] == "complete"
    errors = plan("errors").ok().data
    assert "size" in str(errors) and "too large" in str(errors)
    world.agents("plan", "apply", "--yes", plan.id).ok()


@pytest.mark.parametrize("kind", ["required", "informational"])
def test_what_a_validation_leaves_in_a_sandbox_does_not_stay(world: World, kind: str) -> None:
    command = "mkdir .cache; echo x > .cache/x; echo changed > README.md"
    plan = run(world, tools={"check": checking(kind, command)})
    assert not (plan.sandbox / ".cache").exists()
    assert (plan.sandbox / "README.md").read_text() == "# project\n"
    world.agents("plan", "apply", "--yes", plan.id).ok()
    assert world.project.git("show", "--name-only", "--format=") == "out.txt"


def test_they_run_in_the_order_of_the_list_with_its_arguments_and_then_the_rest(
    world: World,
) -> None:
    tally = world.beside / "tally"
    plan = run(
        world,
        tools={
            "plain": checking("required", f"echo plain >> {tally}"),
            "told": {
                "command": ["/bin/sh", "-c", f'echo "$0" >> {tally}', "{what}"],
                "validation": "required",
            },
        },
        validations=[
            {"tool": "told", "name": "one", "with": {"what": "1"}},
            {"tool": "told", "name": "two", "with": {"what": "2"}},
        ],
    )
    assert tally.read_text() == "1\n2\nplain\n"
    names = [step["step"] for step in plan.status["progress"]]
    assert names == ["write", "one", "two", "plain"]


def test_a_change_after_the_validation_needs_another_one(world: World) -> None:
    plan = run(world, tools={"check": GOOD})
    (plan.sandbox / "out.txt").write_text("by hand\n")
    told = refused(world.agents("plan", "apply", "--yes", plan.id), "validation-unmet")
    assert "changed by hand" in told
    plan.rollback(plan.groups[0].group_id).ok()
    plan.execute().ok()  # from the start, and so is the validation
    world.agents("plan", "apply", "--yes", plan.id).ok()


def test_a_correction_makes_the_result_be_judged_again(world: World) -> None:
    tally = world.beside / "tally"
    check = checking("required", f"cat out.txt >> {tally}; grep -q good out.txt")
    plan = world.use(
        write("out.txt", "good\n", "one"), write("b", "1", "two"), tools={"check": check}
    )
    plan.execute().ok()
    (first, *_) = [n["id"] for n in plan("tree").ok().data["tree"]["children"]]

    assert corrected(world, first, "bad\n").code == 1
    assert tally.read_text() == "good\nbad\n"
    assert plan.status["error"]["tool"] == "check"
    refused(world.agents("plan", "apply", "--yes", plan.id), "validation-unmet")

    (again,) = [
        n["id"]
        for n in nodes_of(plan("tree").ok().data["tree"])
        if n["type"] == "tool_invocation" and "one" in n["description"]
    ]
    corrected(world, again, "good again\n").ok()
    assert tally.read_text() == "good\nbad\ngood again\n"
    world.agents("plan", "apply", "--yes", plan.id).ok()
    assert world.project.read("out.txt") == "good again\n"


def corrected(world: World, decision: str, content: str) -> Answer:
    path = world.top / "step.yaml"
    path.write_text(json.dumps(write("out.txt", content, "one")))
    words = ("--mode", "revert", "--guidance", "other", "--step-file", str(path), "--yes")
    return world.agents("plan", "correct", *words, decision)


def nodes_of(node: dict[str, Any]) -> list[dict[str, Any]]:
    return [node, *(below for child in node["children"] for below in nodes_of(child))]


def test_a_plan_with_steps_left_is_refused_for_that(world: World) -> None:
    plan = world.use(write("out.txt", "x"), tools={"check": GOOD})
    refused(world.agents("plan", "apply", "--yes", plan.id), "plan-state")


@pytest.mark.parametrize(
    ("keys", "told"),
    [
        ({"tools": {"c": checking("needed", "true")}}, "not one of required, informational"),
        ({"tools": {"c": checking("required", "true", writes=True)}}, "a validation only looks"),
        ({"validations": [{"tool": "shell", "with": {"command": "true"}}]}, "no tool with"),
        ({"tools": {"c": checking("required", "echo {x}")}}, "x"),
        ({"tools": {"c": GOOD}, "validations": [{"tool": "c", "with": {"y": "1"}}]}, "y"),
        ({"validations": "check"}, "must be a list"),
    ],
)
def test_a_mistake_in_them_is_told_and_nothing_is_created(
    world: World, keys: dict[str, Any], told: str
) -> None:
    path = world.write_action(action(write("a", "b"), **keys))
    answer = world.agents("plan", "use", path)
    assert told in refused(answer, "action-invalid")
    assert world.plan_count() == 0
