"""Execute, rollback, checkpoint and prune, killed at every moment: the next command makes it right.

Each moment is one at which a kill leaves something else than at any other (`kill_points`).
"""

import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.support.copies import put_back
from tests.support.histories import Facts, KnownPlan
from tests.support.kill_points import PARTS, Point, kill_points, killed, share
from tests.support.world import World


class Scene:
    """A known plan that can be put back, in place, to the moment before what is killed."""

    def __init__(
        self, top: Path, template: World, prepare: Callable[[KnownPlan], object] = lambda _: None
    ) -> None:
        self.known = KnownPlan(top, template, with_code=True)
        self.plan = self.known.plan
        prepare(self.known)
        self._top, self._saved = top, top.with_name("saved")
        subprocess.run(["cp", "-a", str(top), str(self._saved)], check=True)

    def killed_everywhere(self, work: Callable[[], object], part: int) -> Iterator[Point]:
        """Once for each point: the world as the kill has left it."""
        data = self.known.world.agents.data_dir
        watched = [
            *(data / name for name in ("cleveragents.db", "cleveragents.db-wal")),
            *(data / name for name in ("sandboxes", "snapshots", "locks", "repositories")),
        ]
        self._reset()
        points = kill_points(work, watched)
        assert len(points) > 4
        for point in share(points, part, PARTS):
            self._reset()
            killed(work, point)
            yield point

    def _reset(self) -> None:
        put_back(self._top, self._saved)

    # --- what must be true ----------------------------------------------------------------------

    def is_finished(self, point: Point) -> None:
        """Every step was done, once, and everything stored can be brought back."""
        self.plan.execute().ok()
        assert self.known.facts() == self.known.states[-1], point
        status = self.plan.status
        assert status["state"] == "complete", point
        assert status["execution"]["tool_calls"] == self.known.steps, point
        tree = self.plan("tree").ok().data["tree"]
        assert len(tree["children"]) == self.known.steps, point
        self.is_sound()

    def is_sound(self) -> None:
        self.known.world.agents("store", "verify").ok()


@pytest.fixture(params=range(PARTS))
def part(request: pytest.FixtureRequest) -> int:
    return request.param


def test_execute(quick_path: Path, template: World, part: int) -> None:
    scene = Scene(quick_path / "w", template)
    for point in scene.killed_everywhere(lambda: scene.plan.execute().ok(), part):
        scene.is_finished(point)


def test_rollback(quick_path: Path, template: World, part: int) -> None:
    scene = Scene(quick_path / "w", template, _executed)
    begin = scene.plan.groups[0].group_id
    possible = (scene.known.states[0], scene.known.states[-1])

    def back() -> None:
        scene.plan.rollback(begin).ok()

    for point in scene.killed_everywhere(back, part):
        # Any command that works on the plan finishes or undoes what it finds.
        scene.plan("checkpoint", "create", "--label", "next").ok()
        found = scene.known.facts()
        assert found in possible, point
        assert _done(scene) == possible.index(found) * scene.known.steps - 1, point
        back()
        assert scene.known.facts() == possible[0], point
        scene.is_finished(point)


def test_single_files_brought_back(quick_path: Path, template: World, part: int) -> None:
    """All of them or none, in a folder and a database at once; the plan stays where it is."""
    scene = Scene(quick_path / "w", template, _executed)
    begin = scene.plan.groups[0].group_id
    first, last = scene.known.states[0], scene.known.states[-1]
    back = {path: first.files[path] for path in (b"a.txt", b"deep/old.txt")}
    possible = (last, Facts(files={**last.files, **back}, rows=first.rows, code=last.code))
    names = [word for name in ("assets:a.txt", "assets:deep", "db") for word in ("--only", name)]

    def restore() -> None:
        scene.plan("rollback", "--yes", *names, "{}", begin).ok()

    for point in scene.killed_everywhere(restore, part):
        scene.plan("checkpoint", "create", "--label", "next").ok()
        assert scene.known.facts() in possible, point
        restore()
        assert scene.known.facts() == possible[1], point
        assert _done(scene) == scene.known.steps - 1, point
        status = scene.plan.status
        assert status["execution"]["tool_calls"] == scene.known.steps, point
        scene.is_sound()


def test_failed_step_resumed(quick_path: Path, template: World, part: int) -> None:
    def fail(known: KnownPlan) -> None:
        known.shut(shut=True)
        assert known.plan.execute().code == 1
        known.shut(shut=False)

    scene = Scene(quick_path / "w", template, fail)
    for point in scene.killed_everywhere(lambda: scene.plan("resume").ok(), part):
        scene.plan.execute().ok()
        assert scene.known.facts() == scene.known.states[-1], point
        scene.is_sound()


def test_checkpoint_by_hand(quick_path: Path, template: World, part: int) -> None:
    scene = Scene(quick_path / "w", template, _executed)

    def create() -> None:
        scene.plan("checkpoint", "create", "--label", "mine").ok()

    for point in scene.killed_everywhere(create, part):
        if "mine" not in [group.label for group in scene.plan.groups]:
            create()
        scene.plan.rollback(scene.plan.groups[0].group_id).ok()
        scene.plan.rollback("mine").ok()
        assert scene.known.facts() == scene.known.states[-1], point
        scene.is_sound()


def test_sandboxes_made_again(quick_path: Path, template: World, part: int) -> None:
    """Half of one counts for none: no command takes it for what the plan has made."""
    scene = Scene(quick_path / "w", template, _without_sandboxes)

    def rebuild() -> None:
        scene.plan("resume", "--rebuild").ok()

    for point in scene.killed_everywhere(rebuild, part):
        whole = {item["status"] for item in scene.plan.status["sandboxes"]} == {"ready"}
        assert (scene.plan("diff").code == 0) == whole, point
        done = scene.plan("checkpoint", "create", "--label", "next")
        if done.code:  # nothing had begun, or this would have finished it
            assert done.error["code"] == "sandbox-missing", point
            rebuild()
        assert scene.known.facts() == scene.known.states[-1], point
        scene.plan.rollback(scene.plan.groups[0].group_id).ok()
        assert scene.known.facts() == scene.known.states[0], point
        scene.is_sound()


def test_prune(quick_path: Path, template: World, part: int) -> None:
    scene = Scene(quick_path / "w", template, _executed)
    few = scene.plan.agents.having(CLEVERAGENTS_CHECKPOINT_MAX_PER_PLAN="2")

    def prune() -> None:
        few("plan", "checkpoint", "prune", "--yes", scene.plan.id).ok()

    for point in scene.killed_everywhere(prune, part):
        prune()
        groups = scene.plan.groups
        assert len(groups) == 7, point  # of three states: the first, the last two
        for group, facts in ((groups[0], 0), (groups[-1], -1)):
            scene.plan.rollback(group.group_id).ok()
            assert scene.known.facts() == scene.known.states[facts], point
        scene.is_sound()


def _executed(known: KnownPlan) -> None:
    known.plan.execute().ok()


def _without_sandboxes(known: KnownPlan) -> None:
    known.plan.execute().ok()
    shutil.rmtree(known.world.agents.data_dir / "sandboxes" / known.plan.id)


def _done(scene: Scene) -> int:
    return scene.plan.status["last_completed_step"]
