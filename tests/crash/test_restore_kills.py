"""A rollback of many files, which are written in place, killed at every moment: none stays half."""

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.support.copies import put_back
from tests.support.kill_points import PARTS, Point, kill_points, killed, share
from tests.support.trees import Tree
from tests.support.world import World, shell

# More than are replaced one by one; every third gets shorter, so that its end has to go.
_FILES = 18
_WRITE = (
    f"for i in $(seq {_FILES}); do printf 'second %s' $i > many/f$i; done;"
    " for i in 3 6 9 12 15 18; do printf x > many/f$i; done; chmod 755 many/f1;"
    " rm many/f2; echo > new"
)


class Scene:
    def __init__(self, top: Path, template: World) -> None:
        self.world = World(top, template)
        source = self.world.project.path / "many"
        source.mkdir()
        for number in range(1, _FILES + 1):
            (source / f"f{number}").write_text(f"first {number}\n" * 3)
        self.world.project.git("add", "-A")
        self.world.project.git("commit", "-qm", "files")
        self.plan = self.world.use(shell(_WRITE))
        self.plan.execute().ok()
        self.begin = self.plan.groups[0].group_id
        self.last = self.tree()
        self.plan.rollback(self.begin).ok()
        self.first = self.tree()
        self.plan.execute().ok()
        self._top, self._saved = top, top.with_name("saved")
        subprocess.run(["cp", "-a", str(top), str(self._saved)], check=True)

    def tree(self) -> Tree:
        return self.plan.tree()

    def killed_everywhere(self, work: Callable[[], object], part: int) -> Iterator[Point]:
        watched = [self.world.agents.data_dir / "sandboxes"]
        self._reset()
        points = kill_points(work, watched)
        assert len(points) > 2 * _FILES, "not every file was written by itself"
        for point in share(points, part, PARTS):
            self._reset()
            killed(work, point)
            yield point

    def _reset(self) -> None:
        put_back(self._top, self._saved)


@pytest.fixture(params=range(PARTS))
def part(request: pytest.FixtureRequest) -> int:
    return request.param


def test_rollback_of_many_files(quick_path: Path, template: World, part: int) -> None:
    scene = Scene(quick_path / "w", template)

    def back() -> None:
        scene.plan.rollback(scene.begin).ok()

    for point in scene.killed_everywhere(back, part):
        scene.plan("checkpoint", "create", "--label", "next").ok()
        assert scene.tree() in (scene.first, scene.last), point
        back()
        assert scene.tree() == scene.first, point
        scene.world.agents("store", "verify").ok()


def test_many_files_brought_back_alone(quick_path: Path, template: World, part: int) -> None:
    scene = Scene(quick_path / "w", template)
    kept = {name: seen for name, seen in scene.last.items() if not name.startswith(b"many")}
    alone = {**scene.first, **kept}

    def back() -> None:
        scene.plan("rollback", "--yes", "--only", "many", "{}", scene.begin).ok()

    for point in scene.killed_everywhere(back, part):
        scene.plan("checkpoint", "create", "--label", "next").ok()
        assert scene.tree() in (alone, scene.last), point
        back()
        assert scene.tree() == alone, point
