"""Keywords for the installed command: a world of its own per test, answers as dictionaries."""

import json
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import yaml

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.support.agents import COMMAND
from tests.support.trees import tree_of
from tests.support.world import World, action, groups_of, shell, write


class AgentsLibrary:
    """One instance per test, so that no test knows of another."""

    ROBOT_LIBRARY_SCOPE = "TEST"

    _template: World | None = None

    def __init__(self) -> None:
        self._world: World | None = None

    @property
    def world(self) -> World:
        assert self._world is not None, "call `New World` first"
        return self._world

    def new_world(self) -> dict[str, object]:
        """Makes a HOME and a project; gives back what `Run Process` needs to work in them."""
        place = Path(tempfile.mkdtemp(prefix="robot-"))
        # The first is in a new HOME altogether; the others start from an empty database.
        self._world = World(place, AgentsLibrary._template)
        if AgentsLibrary._template is None:
            template = World(Path(tempfile.mkdtemp(prefix="robot-")))
            template.agents.json("plan", "list").ok()
            AgentsLibrary._template = template
        return {"cwd": str(self.world.project.path), "env": self.world.agents.environ}

    def remove_world(self) -> None:
        shutil.rmtree(self.world.top)

    def remove_template(self) -> None:
        if AgentsLibrary._template is not None:
            shutil.rmtree(AgentsLibrary._template.top)
            AgentsLibrary._template = None

    def the_command(self) -> str:
        return str(COMMAND)

    def action_that_writes(self, *names: str) -> str:
        return self.world.write_action(action(*(write(name, f"{name}\n", name) for name in names)))

    def action_that_fails(self) -> str:
        return self.world.write_action(
            action(write("a.txt", "a\n", "good"), shell("exit 3", "bad"))
        )

    def action_that_waits(self) -> str:
        """Its second step stands still until `Let It Go On` is called."""
        top = self.world.top
        wait = f"touch {top}/beside/reached; while ! test -e {top}/beside/gate; do sleep 0.05; done"
        slow = f"echo half >> half.txt; {wait}"
        return self.world.write_action(action(write("a.txt", "a\n", "first"), shell(slow, "slow")))

    def step_that_writes(self, name: str, content: str) -> str:
        """A file with one step, which can take the place of another."""
        path = self.world.top / "step.yaml"
        path.write_text(json.dumps(write(name, content, name)))
        return str(path)

    def reasons(self, listing: dict[str, Any]) -> list[str]:
        return [group.reason for group in groups_of(listing)]

    def first_decision(self, tree: dict[str, Any]) -> str:
        """Of a step: the root is what was asked for."""
        calls = [row for row in tree["tree"]["children"] if row["type"] == "tool_invocation"]
        return calls[0]["decision_id"]

    def from_yaml(self, text: str) -> dict[str, Any]:
        return yaml.safe_load(text)

    def reached_file(self) -> str:
        return str(self.world.beside / "reached")

    def let_it_go_on(self) -> None:
        (self.world.beside / "gate").touch()

    def envelope(self, text: str, code: int = 0) -> dict[str, Any]:
        """Parses what was printed, and checks that it is an envelope with this exit code."""
        envelope = json.loads(text)
        assert list(envelope) == ["command", "status", "exit_code", "data", "timing", "messages"]
        assert envelope["exit_code"] == int(code), envelope
        return envelope

    def group_ids(self, listing: dict[str, Any]) -> list[str]:
        return [group.group_id for group in groups_of(listing)]

    def project_fingerprint(self) -> dict[str, object]:
        return self.world.project.fingerprint()

    def files_in(self, folder: str) -> list[str]:
        return sorted(path.decode() for path in tree_of(Path(folder)))

    def commits_in_project(self) -> int:
        return int(self.world.project.git("rev-list", "--count", "HEAD"))
