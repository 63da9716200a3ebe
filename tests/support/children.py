"""Owns steps that spawn child plans, and what became of those."""

from typing import Any

from tests.support.world import PlanHandle, Step, World, shell


def child(name: str, *commands: str, **keys: Any) -> dict[str, Any]:
    return {
        "name": name,
        "steps": [shell(c, f"{name} {i}") for i, c in enumerate(commands)],
        **keys,
    }


def spawn(*children: dict[str, Any], **keys: Any) -> Step:
    return {"name": "spawn", "subplans": {"parallel": True, "plans": list(children), **keys}}


def run(world: World, *children: dict[str, Any], **keys: Any) -> PlanHandle:
    plan = world.use(
        shell("printf 'one\\ntwo\\nthree\\nfour\\nfive\\n' > t.txt"), spawn(*children, **keys)
    )
    plan("execute")
    return plan


def text(plan: PlanHandle, name: str = "t.txt") -> str:
    return (plan.sandbox / name).read_text()


def children(plan: PlanHandle) -> dict[str, dict[str, Any]]:
    """The children that count, by name."""
    gone = ("invalidated", "discarded")
    return {c["name"]: c for c in plan.status["children"] if c["outcome"] not in gone}
