"""A way back of files and a database in the user's own tree, killed at every moment.

At none of them does anybody who opens the database find anything but what it was, or what it is to
become; the next command finishes it, and what somebody writes in between stays.
"""

import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.support.copies import put_back
from tests.support.in_place import Place
from tests.support.in_place_databases import Server, make, notes, write, writing
from tests.support.kill_points import PARTS, Point, kill_points, killed, share
from tests.support.world import World

BEFORE, AFTER = ["milk"], ["milk", "bread" * 3000]


class Scene:
    def __init__(self, top: Path, template: World, *, wal: bool) -> None:
        self.place = Place(World(top, template))
        self.db = make(self.place.path / "app.db", wal=wal, page_size=1024)
        self.first = self.place.state()
        script = f"echo two > README.md; {writing('bread' * 3000)}"
        self.place.run(script, "--db", "app.db").ok()
        if wal:  # what is to go back lies in a log that nobody has folded
            server = Server(self.db)
            server("UPDATE note SET text = text")
            server.kill()
        self._top, self._saved = top, top.with_name("saved")
        subprocess.run(["cp", "-a", str(top), str(self._saved)], check=True)

    def killed_everywhere(self, work: Callable[[], object], part: int) -> Iterator[Point]:
        self._reset()
        points = kill_points(work, [self.place.path])
        assert len(points) > 10
        for point in share(points, part, PARTS):
            self._reset()
            killed(work, point)
            yield point

    def seen(self) -> list[str]:
        """What anybody finds who opens it, SQLite's own recovery included; looked at in a copy."""
        folder = self._top.with_name("seen")
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        for path in self.place.path.glob("app.db*"):
            shutil.copy2(path, folder / path.name)
        with Server(folder / "app.db") as server:
            assert server("PRAGMA integrity_check") == "[('ok',)]"
        return notes(folder / "app.db")

    def _reset(self) -> None:
        put_back(self._top, self._saved)


@pytest.fixture(params=range(PARTS))
def part(request: pytest.FixtureRequest) -> int:
    return request.param


@pytest.mark.parametrize("wal", [False, True])
def test_an_undo_that_is_killed_is_finished_and_nobody_sees_a_half(
    quick_path: Path, template: World, part: int, *, wal: bool
) -> None:
    scene = Scene(quick_path / "w", template, wal=wal)
    place = scene.place

    for point in scene.killed_everywhere(lambda: place("undo", "--yes").ok(), part):
        assert scene.seen() in (BEFORE, AFTER), point
        place("undo", "--yes").ok()
        assert place.state() == scene.first, point
        assert [path.name for path in place.path.glob("app.db?*")] == [], point
        assert notes(scene.db) == BEFORE, point
        place("redo", "--yes").ok()
        assert notes(scene.db) == AFTER, point
        place("store", "verify").ok()


def test_what_somebody_writes_after_the_kill_stays(
    quick_path: Path, template: World, part: int
) -> None:
    scene = Scene(quick_path / "w", template, wal=False)
    place = scene.place

    for point in scene.killed_everywhere(lambda: place("undo").ok(), part):
        write(scene.db, "since")
        place("undo", "--keep")
        assert notes(scene.db)[-1] == "since", point
