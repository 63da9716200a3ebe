"""Prune, discard and uninstall, killed at every moment: nothing is broken, and repeated they end.

Each moment is one at which a kill leaves something else than at any other (`kill_points`).
"""

import shutil
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from tests.support.copies import put_back
from tests.support.kill_points import (
    PARTS,
    THOROUGH,
    Point,
    cut_short,
    kill_points,
    killed,
    share,
)
from tests.support.world import PlanHandle, World, write

_STRIDE = 4
CHILD = [{"name": "en", "steps": [write("en.md", "en")]}]


class Scene:
    """A plan that was cancelled, with a child; one that was applied without a commit; and one that
    is to stay. All of it can be put back to the moment before what is killed."""

    def __init__(self, top: Path, template: World) -> None:
        self.world = World(top, template)
        self.gone = [self.world.run({"name": "child", "subplans": {"plans": CHILD}})]
        self.gone[0]("cancel").ok()
        self.gone.append(self.world.run(write("b", "b")))
        self.world.agents("plan", "apply", "--yes", "--no-commit", self.gone[1].id).ok()
        self.stays = self.world.run(write("c", "c"))
        self.project = self.world.project.fingerprint()
        self._top, self._saved = top, top.with_name("saved")
        self.save()

    def killed_everywhere(self, work: Callable[[], object], part: int) -> Iterator[Point]:
        data = self.world.agents.data_dir
        watched = [
            *(data / name for name in ("cleveragents.db", "cleveragents.db-wal")),
            *(data / name for name in ("sandboxes", "snapshots", "locks")),
            self.world.project.path / ".git" / "refs",
        ]
        self._reset()
        points = kill_points(work, watched)
        assert len(points) > 4
        for point in share(points, part, PARTS):
            self._reset()
            killed(work, point)
            yield point

    def cut_short_everywhere(self, work: Callable[[], object]) -> Iterator[int]:
        """For work that removes whole folders, in whatever order the disk has their files."""
        number = 1
        self._reset()
        while cut_short(work, number):
            yield number
            number += _STRIDE * THOROUGH
            self._reset()

    def save(self) -> None:
        shutil.rmtree(self._saved, ignore_errors=True)
        subprocess.run(["cp", "-a", str(self._top), str(self._saved)], check=True)

    def _reset(self) -> None:
        put_back(self._top, self._saved)
        # A copy of a database is another installation, unless its name is told to go with it.
        path = self.world.agents.data_dir / "cleveragents.db"
        with closing(sqlite3.connect(path)) as database:
            database.execute("UPDATE installation SET inode = ?", (path.stat().st_ino,))
            database.commit()

    def is_sound(self, point: Point) -> None:
        """Every command answers, and the plan that stays is whole."""
        agents = self.world.agents
        agents("plan", "list", "--all").ok()
        agents("store", "status").ok()
        agents("store", "verify").ok()
        for plan in self.gone:
            assert plan("status").code in (0, 1), point
        assert self.stays.status["state"] == "complete", point
        assert self.world.project.fingerprint() == self.project, point


@pytest.fixture(params=range(PARTS))
def part(request: pytest.FixtureRequest) -> int:
    return request.param


def test_prune(quick_path: Path, template: World, part: int) -> None:
    scene = Scene(quick_path / "w", template)

    def prune() -> None:
        scene.world.agents("prune", "--older-than", "0m", "--yes").ok()

    for point in scene.killed_everywhere(prune, part):
        scene.is_sound(point)
        prune()
        _nothing_of(scene.world, scene.gone, point)
        scene.is_sound(point)
        listed = scene.world.agents("plan", "list", "--all").ok().data["plans"]
        assert [plan["plan_id"] for plan in listed] == [scene.stays.id], point
        assert scene.world.agents("doctor").ok().data["findings"] == [], point


def test_discard(quick_path: Path, template: World, part: int) -> None:
    scene = Scene(quick_path / "w", template)
    plan = scene.stays
    scene.stays = scene.world.run(write("d", "d"))
    scene.save()

    def discard() -> None:
        scene.world.agents("plan", "discard", "--yes", plan.id).ok()

    for point in scene.killed_everywhere(discard, part):
        scene.is_sound(point)
        # Either it was not begun, or the plan is over; in both cases it can be repeated.
        assert plan.status["state"] in ("complete", "cancelled"), point
        discard()
        assert plan.status["state"] == "cancelled", point
        assert not list(scene.world.agents.data_dir.glob(f"s*/{plan.id}*")), point
        assert not any(plan.id.encode() in trace for trace in scene.world.project.traces()), point


def test_uninstall(quick_path: Path, template: World) -> None:
    scene = Scene(quick_path / "w", template)

    def uninstall() -> None:
        scene.world.agents("uninstall", "--yes").ok()

    moments = list[int]()
    for point in scene.cut_short_everywhere(uninstall):
        moments.append(point)
        assert scene.world.project.fingerprint() == scene.project, point
        scene.world.agents("plan", "list", "--all").ok()
        uninstall()
        assert not scene.world.agents.data_dir.exists(), point
        assert scene.world.project.traces() == [], point
        assert scene.world.project.fingerprint() == scene.project, point
    assert len(moments) > 4


def _nothing_of(world: World, plans: list[PlanHandle], point: Point) -> None:
    for plan in plans:
        assert not list(world.agents.data_dir.glob(f"*/{plan.id}*")), point
        assert not any(plan.id.encode() in trace for trace in world.project.traces()), point
