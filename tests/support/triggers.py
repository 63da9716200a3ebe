"""Owns plans with chosen triggers, and the groups that these made."""

from tests.support.agents import Agents
from tests.support.world import PlanHandle, World, action

VARIABLE = "CLEVERAGENTS_CHECKPOINT_AUTO_CREATE_ON"


def run(world: World, agents: Agents, *steps: object) -> PlanHandle:
    path = world.write_action(action(*steps))  # type: ignore[arg-type]
    plan = PlanHandle(agents, agents("plan", "use", path).ok().data["plan_id"])
    plan.execute()
    return plan


def triggered(plan: PlanHandle) -> list[str]:
    """Neither those that decisions make, nor the last one, without which no plan is complete."""
    return [reason for reason in plan.reasons if reason not in ("decision", "complete")]
