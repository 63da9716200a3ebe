"""Owns a plan with a slow step that can be interrupted, and how its process ends."""

import subprocess

import pytest
from tests.support.agents import Answer
from tests.support.world import World, shell, wait_for, write


class Slow:
    """A plan that stands in its second step until `gate` is there; each step leaves a tally."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.gate = world.beside / "gate"
        self.reached = world.beside / "reached"
        self.tally = world.beside / "tally"
        wait = f"touch {self.reached}; while ! test -e {self.gate}; do sleep 0.05; done"
        self.plan = world.use(
            shell(f"echo first >> first.txt; echo 1 >> {self.tally}", "first"),
            shell(f"echo half >> second.txt; rm README.md; {wait}; echo 2 >> {self.tally}", "slow"),
            write("third.txt", "third\n", "third"),
        )
        self.start_tree, self.before = world.replay(["echo first >> first.txt"])

    def start(self) -> "subprocess.Popen[bytes]":
        self.reached.unlink(missing_ok=True)
        process = self.world.agents.start("--format", "json", "plan", "execute", self.plan.id)
        wait_for(self.reached.exists)
        return process

    def finish(self) -> None:
        """Go on in a new process, and check that all is as if nothing had happened."""
        undone = "" if self._standing_calls() else self._tallied()
        self.gate.touch()
        self.world.agents.fork("plan", "resume", self.plan.id).answer().ok()
        status = self.plan.status
        assert status["state"] == "complete"
        sandbox = self.plan.sandbox
        assert (sandbox / "first.txt").read_text() == "first\n"
        assert (sandbox / "second.txt").read_text() == "half\n"
        assert (sandbox / "third.txt").read_text() == "third\n"
        # The tally is outside of the sandbox: it still has the first step if that was undone.
        assert self._tallied() == undone + "1\n2\n"
        assert self._standing_calls() == [0, 1, 2]
        assert status["execution"]["tool_calls"] == 3
        tree = self.plan("tree").data["tree"]
        assert [node["description"] for node in tree["children"]] == [
            "shell: first",
            "shell: slow",
            "file.write: third",
        ]

    def _standing_calls(self) -> list[int]:
        calls = self.plan("artifacts").data["artifacts"]
        return [call["step_index"] for call in calls if not call["undone"]]

    def _tallied(self) -> str:
        return self.tally.read_text() if self.tally.exists() else ""


@pytest.fixture
def slow(world: World) -> Slow:
    return Slow(world)


def ended(process: "subprocess.Popen[bytes]") -> Answer:
    try:
        out, err = process.communicate(timeout=20)
    finally:
        process.kill()
    return Answer(argv=(), code=process.returncode, out=out.decode(), err=(err or b"").decode())
