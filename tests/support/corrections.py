"""Owns a plan of steps that depend on each other, and ways to correct it."""

import json
from typing import Any

from tests.support.agents import Answer
from tests.support.world import PlanHandle, World, shell, write

SIX = (
    write("one.txt", "one\n", "write one"),
    write("new/two.txt", "two\n", "write two"),
    write("other/three.txt", "three\n", "write three"),
    {**shell("cat new/two.txt > copy.txt", "copy"), "uses": ["write two"]},
    write("new/four.txt", "four\n", "write four"),
    write("five.txt", "five\n", "write five"),
)


def decisions(plan: PlanHandle) -> dict[int, str]:
    """The live decision of each step."""
    found: dict[int, str] = {}

    def visit(node: dict[str, Any]) -> None:
        for child in node["children"]:
            visit(child)
        shown = plan.agents("plan", "explain", node["id"]).ok().data
        steps = shown["plan_id"] == plan.id and shown["type"] != "user_intervention"
        if shown["step_index"] is not None and steps:
            found[shown["step_index"]] = node["id"]

    visit(plan("tree").ok().data["tree"])
    return found


def correct(plan: PlanHandle, decision: str, *more: str, guidance: str = "again") -> Answer:
    words = ("--mode", "revert", "--guidance", guidance, "--yes", *more, decision)
    return plan.agents("plan", "correct", *words)


def step_file(world: World, step: Any) -> str:
    """Without a name of its own it keeps that of the step whose place it takes."""
    path = world.top / "step.yaml"
    path.write_text(json.dumps(step))
    return str(path)


def read(plan: PlanHandle, path: str) -> str:
    return (plan.sandbox / path).read_text()
