"""Owns a project with a virtual environment and `node_modules`, and what a program does to them."""

import json
from pathlib import Path

from tests.support.agents import Answer
from tests.support.trees import Tree, tree_of
from tests.support.world import PlanHandle, World

PACKAGE = {"name": "shop", "version": "1.0.0", "dependencies": {"is-odd": "3.0.1"}}


class Furnished:
    """`told` is outside of every sandbox: what is noted there stays."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.top = world.project.path
        self.told = world.top / "told"
        self.told.mkdir()
        (self.top / ".gitignore").write_text(".venv/\nnode_modules/\n__pycache__/\n")
        (self.top / "package.json").write_text(json.dumps(PACKAGE))
        (self.top / "check.py").write_text("import six\nprint('python', six.__version__)\n")
        (self.top / "check.js").write_text("console.log('node', require('is-odd')(3))\n")

    def commit(self) -> None:
        self.world.project.git("add", "-A")
        self.world.project.git("commit", "-qm", "a project")

    @property
    def users(self) -> tuple[Tree, Tree]:
        """Contents, modes and links of the user's own folders."""
        return tree_of(self.top / ".venv"), tree_of(self.top / "node_modules")

    def run(self, script: str, *options: str) -> Answer:
        words = ("--format", "json", "run", "--keep", *options, "--", "sh", "-c", script)
        return self.world.agents.process(*words, timeout=300)

    def plan(self, answer: Answer) -> PlanHandle:
        return PlanHandle(self.world.agents, answer.ok().data["plan_id"])

    @property
    def notes(self) -> list[str]:
        return (self.told / "it").read_text().splitlines()


def files_above(plan: PlanHandle) -> list[str]:
    """What the sandbox has of the ignored folders: copies, and what was changed in them."""
    places = (plan.sandbox / ".venv", plan.sandbox / "node_modules")
    found = [path for place in places for path in place.rglob("*") if not path.is_dir()]
    return sorted(str(path.relative_to(plan.sandbox)) for path in found)


def versions(top: Path) -> list[str]:
    return sorted(path.name for path in top.glob(".venv/lib/python*/site-packages/six-*.dist-info"))
