"""A way back in the user's own tree, killed at every moment: no file half, nothing of others lost.

Danger 10: the next command finishes it or takes it back; what somebody changes in between stays.
"""

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.support.copies import put_back
from tests.support.in_place import Place
from tests.support.kill_points import PARTS, Point, kill_points, killed, share
from tests.support.world import World

_WORK = (
    "echo two > README.md; rm -r docs 2>/dev/null; mkdir -p new/deep; echo x > new/deep/x; ln -s x"
    " a-link; chmod 700 new; git switch -qc agent; git add -A; git commit -qm agent; echo y > y;"
    " git add y"
)


class Scene:
    def __init__(self, top: Path, template: World) -> None:
        self.place = Place(World(top, template))
        self.first = self.place.state()
        self.place.run(_WORK).ok()
        self.last = self.place.state()
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

    def _reset(self) -> None:
        put_back(self._top, self._saved)


@pytest.fixture(params=range(PARTS))
def part(request: pytest.FixtureRequest) -> int:
    return request.param


def test_an_undo_that_is_killed_is_finished_by_the_next_command(
    quick_path: Path, template: World, part: int
) -> None:
    scene = Scene(quick_path / "w", template)
    place = scene.place

    for point in scene.killed_everywhere(lambda: place("undo").ok(), part):
        assert _is_mixture(scene), point
        place("undo").ok()
        assert place.state() == scene.first, point
        assert not list((place.path / ".git").glob("*.lock")), point
        place("redo").ok()
        assert place.state() == scene.last, point
        place("store", "verify").ok()


def test_what_somebody_changes_after_the_kill_stays(
    quick_path: Path, template: World, part: int
) -> None:
    scene = Scene(quick_path / "w", template)
    place = scene.place

    for point in scene.killed_everywhere(lambda: place("undo").ok(), part):
        place.project.write("README.md", "typed since\n")
        place.project.write("mine.txt", "mine\n")
        place("undo", "--keep")
        assert place.project.read("README.md") == "typed since\n", point
        assert place.project.read("mine.txt") == "mine\n", point


def _is_mixture(scene: Scene) -> bool:
    """Each path is as it was before or as it was to become."""
    now, one, two = scene.place.tree(), scene.first["tree"], scene.last["tree"]
    return all(now.get(path) in (one.get(path), two.get(path)) for path in {*now, *one, *two})
