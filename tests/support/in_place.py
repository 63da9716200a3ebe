"""A timeline in the user's own tree, told and asked through the command."""

from typing import Any

from tests.support.agents import Answer
from tests.support.trees import Tree, tree_of
from tests.support.world import World

STATE = ("refs/heads", "refs/tags", "refs/stash")


class Place:
    """The world's project, worked on where it is."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.project = world.project
        self.path = world.project.path

    def __call__(self, *words: str) -> Answer:
        return self.world.agents(*words)

    def run(self, script: str, *options: str) -> Answer:
        """An agent that is a shell script; in this process."""
        return self("run", "--in-place", *options, "--", "sh", "-c", script)

    def tree(self) -> Tree:
        return tree_of(self.path)

    def state(self) -> dict[str, Any]:
        """All that a group holds."""
        git = self.project.git
        return {
            "tree": self.tree(),
            "head": git("symbolic-ref", "-q", "HEAD", check=False) or git("rev-parse", "HEAD"),
            "refs": git("for-each-ref", "--format=%(refname) %(objectname)", *STATE),
            "stash": git("stash", "list", "--format=%gd %H"),
            "index": git("ls-files", "--stage", "-v"),
        }

    def rows(self) -> list[str]:
        """What each step is called, the oldest first."""
        found = self("status").ok().data
        return [item["step"] for item in found["progress"]]


def error_of(answer: Answer) -> str:
    assert answer.code != 0, answer
    return answer.error["code"]
