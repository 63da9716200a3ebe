"""An apply with work on every level of submodules, killed at every moment: all or nothing."""

import shutil
import subprocess
from pathlib import Path

import pytest
from tests.support.agents import Answer
from tests.support.apply_kills import kill_applies
from tests.support.copies import put_back
from tests.support.kill_points import PARTS, THOROUGH, Point
from tests.support.submodules import ALLOW, COMMIT_DEEP, WithSubmodules
from tests.support.world import World, shell

WORK = (
    "echo top > top.txt; rm src/old.py; echo loose > deps/lib/loose; echo x > deps/lib/inner/x;"
    "echo changed > deps/lib/lib.txt;"
    f"git {ALLOW} submodule --quiet add $PWD/deps/lib/inner more"
)


class Killed:
    """The whole world can be put back to the moment before the apply, in place."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.project = WithSubmodules(world)
        self.plan = world.run(shell(COMMIT_DEEP), shell(WORK))
        self.before = self.project.state()
        self._saved = self.copy("saved")

    def copy(self, name: str) -> Path:
        place = self.world.top.with_name(f"{self.world.top.name}.{name}")
        shutil.rmtree(place, ignore_errors=True)
        subprocess.run(["cp", "-a", str(self.world.top), str(place)], check=True)
        return place

    def reset(self, copy: Path | None = None) -> None:
        put_back(self.world.top, copy or self._saved)

    def apply(self) -> Answer:
        return self.world.agents("plan", "apply", "--yes", self.plan.id)

    @property
    def watched(self) -> list[Path]:
        data = self.world.agents.data_dir
        return [self.project.project.path, data / "cleveragents.db", data / "cleveragents.db-wal"]

    def arrived(self) -> bool:
        project, lib, inner = self.project.project, self.project.lib, self.project.inner
        return (
            project.read("top.txt") == "top\n"
            and not (project.path / "src/old.py").exists()
            and project.git("log", "-2", "--format=%s").splitlines()[1] == "with submodules"
            and self.project.link() == lib.head
            and (project.git_dir / "modules/more/HEAD").read_text() == inner.head + "\n"
            and self.project.link("more") == inner.head
            and lib.git("rev-parse", "HEAD:inner") == inner.head
            and lib.git("log", "-1", "--format=%s") == "with deep"
            and lib.git("status", "--porcelain") == " M inner\n M lib.txt\n?? loose"
            and inner.git("status", "--porcelain") == "?? x"
        )


@pytest.fixture
def world_of_submodules(quick_path: Path, template: World) -> Killed:
    return Killed(World(quick_path / "w", template))


@pytest.mark.parametrize("part", range(PARTS))
def test_an_apply_in_submodules_killed_anywhere_is_finished_or_taken_back(
    world_of_submodules: Killed, part: int
) -> None:
    undone = kill_applies(world_of_submodules, part, 60, _finished, _taken_back)
    assert undone > 20 // THOROUGH


def _finished(killing: Killed, point: Point) -> None:
    """By the next command, where nothing stands in its way."""
    answer = killing.apply()
    assert answer.code == 0 or answer.error["code"] == "plan-applied", (point, answer)
    assert killing.arrived(), point
    assert killing.project.traces() == [], point
    assert killing.plan.status["state"] == "applied", point


def _taken_back(killing: Killed, point: Point) -> bool:
    """By the next command, where the user has put something in the project's way meanwhile."""
    project = killing.project.project
    project.write("top.txt", "mine\n")
    answer = killing.apply()
    if answer.code == 0:  # the project had its commit already
        return False
    after = killing.project.state()
    assert after["lib"] == killing.before["lib"], point
    assert after["inner"] == killing.before["inner"], point
    assert project.git("status", "--porcelain") == "?? top.txt", point
    assert not (project.git_dir / "modules/more").exists(), point
    assert project.read("top.txt") == "mine\n"
    # What the user put there before we noted the path is in our way, and after it on top of ours.
    assert answer.error["code"] in ("apply-conflict", "apply-edits-kept"), (point, answer)
    assert "top.txt" in answer.error["message"]
    assert killing.project.traces() == [], point
    assert killing.plan.status["state"] == "constrained", point
    return True
