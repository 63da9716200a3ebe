"""A correction over a checkout, a folder and a database, killed at every moment: all or nothing.

All: three chained steps are taken back in all three, what has nothing to do with them stands, and
so does what was to be kept, unchecked. Nothing: everything is as it was. The next command decides
it, whatever it is.
"""

import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.support.agents import Answer
from tests.support.copies import put_back
from tests.support.kill_points import PARTS, Point, kill_points, killed, share
from tests.support.trees import tree_of
from tests.support.world import Step, World, write


def step(tool: str, name: str, uses: tuple[str, ...] = (), **arguments: Any) -> Step:
    return {"name": name, "tool": tool, "uses": [*uses], "with": arguments}


class Corrected:
    """The whole world can be put back to the moment before the correction, in place."""

    def __init__(self, world: World) -> None:
        self.world, top = world, world.top
        (top / "assets").mkdir()
        (top / "assets/logo").write_text("old\n")
        with closing(sqlite3.connect(top / "app.db")) as database:
            database.execute("create table t (x)")
            database.commit()
        self.plan = world.run(
            write("a/a.txt", "a\n", "code"),
            step("shell", "asset", ("code",), resource="assets", command="echo new > logo"),
            step("sql.execute", "row", ("asset",), resource="db", sql="insert into t values (1)"),
            write("a/free.txt", "free\n", "free"),
            step("shell", "free asset", resource="assets", command="echo f > free"),
            resources={
                "code": {"type": "git-checkout", "path": str(world.project.path)},
                "assets": {"type": "fs-directory", "path": str(top / "assets")},
                "db": {"type": "sqlite", "path": str(top / "app.db")},
            },
        )
        self.decision = self.live()[0]
        self.paths = {s["resource"]: Path(s["path"]) for s in self.plan.status["sandboxes"]}
        self.before = self.state()
        self._saved = top.with_name(top.name + ".saved")
        subprocess.run(["cp", "-a", str(top), str(self._saved)], check=True)

    def reset(self) -> None:
        put_back(self.world.top, self._saved)

    @property
    def watched(self) -> list[Path]:
        data = self.world.agents.data_dir
        return [
            *(data / name for name in ("cleveragents.db", "cleveragents.db-wal")),
            *(data / name for name in ("sandboxes", "snapshots", "locks")),
        ]

    def correct(self) -> Answer:
        words = ("--mode", "revert", "--guidance", "again", "--yes", "--no-execute")
        keep = ("--keep", "free asset")
        return self.world.agents("plan", "correct", *words, *keep, self.decision)

    def live(self) -> list[str]:
        nodes = self.plan("tree").ok().data["tree"]["children"]
        return [node["id"] for node in nodes]

    def state(self) -> tuple[object, ...]:
        with closing(sqlite3.connect(self.paths["db"])) as database:
            rows = database.execute("select x from t").fetchall()
        return tree_of(self.paths["code"]), tree_of(self.paths["assets"]), rows

    def gone(self) -> bool:
        code, assets, rows = self.state()
        assert isinstance(code, dict) and isinstance(assets, dict)
        return (
            b"a/a.txt" not in code
            and b"a/free.txt" in code
            and assets[b"logo"][2] == b"old\n"
            and b"free" in assets
            and rows == []
        )


@pytest.fixture
def corrected(quick_path: Path, template: World) -> Corrected:
    return Corrected(World(quick_path / "w", template))


def kills(corrected: Corrected, part: int) -> Iterator[Point]:
    corrected.reset()
    points = kill_points(lambda: corrected.correct().ok(), watched=corrected.watched)
    assert corrected.gone()
    assert len(points) > 12
    for point in share(points, part, PARTS):
        corrected.reset()
        killed(corrected.correct, point)
        yield point


@pytest.mark.parametrize("part", range(PARTS))
def test_a_correction_killed_anywhere_is_in_force_or_has_never_happened(
    corrected: Corrected, part: int
) -> None:
    outcomes: set[bool] = set()
    for point in kills(corrected, part):
        # A command that finishes what was cut off and does nothing else of its own.
        corrected.plan("checkpoint", "create", "--label", "here").ok()
        taken_back = corrected.plan.status["attempt"] == 2
        outcomes.add(taken_back)
        assert corrected.gone() if taken_back else corrected.state() == corrected.before, point
        assert (corrected.decision in corrected.live()) != taken_back, point
        assert ("unchecked" in corrected.plan.status) == taken_back, point
        answer = corrected.plan.execute().ok()
        assert answer.data["state"] == "complete", point
        assert corrected.state() == corrected.before, point
        assert answer.data["execution"]["tool_calls"] == 5, point
        corrected.world.agents("store", "verify").ok()
    assert outcomes == {True, False}
