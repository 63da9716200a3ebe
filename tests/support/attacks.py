"""Programs that try to get out, and the commands of ours that might run them."""

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.support.agents import Answer
from tests.support.outside import nothing_happens
from tests.support.world import PlanHandle, World

REQUIRED = {"mode": "required"}
_TRACE = "got-out"


def payload(world: World) -> str:
    """A script that writes wherever it can, and then does what a filter does."""
    project = world.project.path
    places = [world.top, world.home, world.agents.data_dir, world.agents.data_dir / "sandboxes"]
    places += [project, project / "src", project / ".git", project / ".git/hooks"]
    lines = [f"echo \"$*\" >> '{place}/{_TRACE}'" for place in places]
    lines += [f"touch -d 2001-01-01 '{world.home}/.gitconfig' '{project}/README.md'"]
    lines += [f"chmod 777 '{project}/README.md'", f"echo bad >> '{project}/README.md'"]
    return "#!/bin/sh\n" + "".join(f"({line}) 2>/dev/null\n" for line in lines) + "cat\n"


def module(world: World) -> str:
    """The same for `python3 -m`."""
    return f"import subprocess, sys\nsubprocess.run(['sh', '-c', {payload(world)!r}, *sys.argv])\n"


def traces(world: World) -> list[Path]:
    """What a program has written outside of where it belongs."""
    inside = world.agents.data_dir / "sandboxes"
    found = world.top.rglob(f"{_TRACE}*")
    return [path for path in found if path.parent == inside or inside not in path.parents]


@contextmanager
def held_inside(world: World) -> Generator[None]:
    """Nothing around the sandboxes changes but what our commands themselves record."""
    data = world.agents.data_dir
    pins = (world.project.path / ".git/refs/cleveragents", world.project.path / ".git/refs")
    with nothing_happens(world.top, but=(data, *pins)):
        yield
    assert traces(world) == []
    known = {"cleveragents.db", "cleveragents.db-wal", "cleveragents.db-shm"}
    known |= {"snapshots", "scratch", "locks", "sandboxes", "tracebacks", "trash", "machine.json"}
    assert {path.name for path in data.iterdir()} - known == set()
    assert {path.name for path in (data / "scratch").iterdir()} == set()


def on_start(plan: PlanHandle) -> str:
    return plan.groups[0].group_id


COMMANDS: Mapping[str, Callable[[PlanHandle], Answer]] = {
    "checkpoint create": lambda plan: plan("checkpoint", "create", "--label", "by hand"),
    "diff": lambda plan: plan("diff"),
    "checkpoint verify": lambda plan: plan("checkpoint", "verify"),
    "doctor": lambda plan: plan.agents("doctor"),
    "rollback": lambda plan: plan.rollback(on_start(plan)),
    "rollback of the rollback": lambda plan: plan.rollback(plan.groups[-1].group_id),
    "resume": lambda plan: plan("resume"),
    "status": lambda plan: plan("status"),
    "doctor --fix": lambda plan: plan.agents("doctor", "--fix", "--yes"),
    "cancel": lambda plan: plan("cancel"),
}
"""What may be typed before apply, in an order in which each has something to do."""
