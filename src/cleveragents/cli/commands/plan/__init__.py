"""`agents plan …`: text in, one service call, a view out. A command loads only what is its own."""

import click

from cleveragents.cli.framework import LazyGroup, examples

_COMMANDS = "cleveragents.cli.commands"


@click.group(
    "plan",
    cls=LazyGroup,
    lazy={
        "use": (
            f"{_COMMANDS}.plan.use:use",
            "Make a plan from an action file",
        ),
        "execute": (
            f"{_COMMANDS}.plan.execute:execute",
            "Start a plan, or go on with one that was interrupted or has failed",
        ),
        "status": (f"{_COMMANDS}.plan.status:status", "Show where a plan stands"),
        "diff": (
            f"{_COMMANDS}.plan.changes:diff",
            "Show what applying the plan would change in the project",
        ),
        "apply": (
            f"{_COMMANDS}.plan.changes:apply",
            "Bring the plan's result into the project: all of it, or nothing",
        ),
        "rollback": (
            f"{_COMMANDS}.rollback:rollback",
            "Take a plan and all its sandboxes back to a checkpoint",
        ),
        "resume": (f"{_COMMANDS}.resume:resume", "Go on with a plan from its last finished step"),
        "correct": (
            f"{_COMMANDS}.correct:correct",
            "Take one decision back with all that stands on it, and do it again with advice",
        ),
        "prompt": (
            f"{_COMMANDS}.correct:prompt",
            "Tell a plan that has failed or waits what it needs to know, and go on",
        ),
        "checkpoint": (
            f"{_COMMANDS}.checkpoint:checkpoint",
            "List, show, create, prune, delete, verify and compare checkpoints",
        ),
        "list": (
            f"{_COMMANDS}.plan.listing:list_plans",
            "List all plans, the newest first, and say where each belongs",
        ),
        "tree": (
            f"{_COMMANDS}.plan.decisions:tree",
            "Show the plan's decisions and the checkpoint of each",
        ),
        "explain": (
            f"{_COMMANDS}.plan.decisions:explain",
            "Show why a decision was made and what came of it",
        ),
        "show": (
            f"{_COMMANDS}.plan.decisions:show",
            "Show one step: what it said and what it changed",
        ),
        "artifacts": (
            f"{_COMMANDS}.plan.decisions:artifacts",
            "Show what each step wrote and said",
        ),
        "errors": (
            f"{_COMMANDS}.plan.decisions:errors",
            "Show what failed, and what to do about it",
        ),
        "effects": (
            f"{_COMMANDS}.plan.decisions:effects",
            "Show what the steps have done outside their sandboxes, and what is known of it",
        ),
        "cancel": (
            f"{_COMMANDS}.plan.ending:cancel",
            "End a plan for good",
        ),
        "discard": (
            f"{_COMMANDS}.plan.ending:discard",
            "End a plan, running or not, and remove its sandboxes and snapshots",
        ),
    },
    epilog=examples("agents plan use add-login.yaml", "agents plan execute latest"),
)
def plan() -> None:
    """Make, run, roll back and apply plans."""
