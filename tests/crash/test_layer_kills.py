"""A rollback or an apply of layers, killed at every moment: finished next, or undone."""

import os
import stat
import subprocess
import time
from pathlib import Path

import pytest
from tests.support.agents import Answer
from tests.support.copies import put_back
from tests.support.kill_points import PARTS, kill_points, killed, share
from tests.support.world import World, shell

STEPS = (
    shell("rm -r node_modules/a; echo 1 > node_modules/b/x", "one"),
    shell("rm -r node_modules/b; mkdir node_modules/b; echo 2 > node_modules/b/y", "two"),
    shell("rm -r node_modules/b; echo file > node_modules/b; ln -s b node_modules/a", "three"),
)


def state(upper: Path) -> dict[str, object]:
    """With whiteouts, and which folders are opaque."""
    found: dict[str, object] = {}
    for path in sorted([upper, *upper.rglob("*")]):
        mode = path.lstat().st_mode
        content = path.read_bytes() if stat.S_ISREG(mode) else b""
        names = os.listxattr(path) if stat.S_ISDIR(mode) else []
        found[str(path.relative_to(upper))] = (mode, content, "user.overlay.opaque" in names)
    return found


def furnished(top: Path, template: World) -> World:
    world = World(top, template)
    (world.project.path / ".gitignore").write_text("node_modules/\n")
    world.project.git("add", "-A")
    world.project.git("commit", "-qm", "ignored")
    for name in ("a", "b"):
        (world.project.path / "node_modules" / name).mkdir(parents=True)
        (world.project.path / "node_modules" / name / "x").write_text(f"{name}\n")
    return world


@pytest.mark.parametrize("part", range(PARTS))
def test_rollback_of_layers(quick_path: Path, template: World, part: int) -> None:
    top = quick_path / "w"
    world = furnished(top, template)
    plan = world.run(*STEPS)
    upper = plan.sandbox / "node_modules"
    groups = plan.groups
    last, target = groups[-1].group_id, groups[len(groups) // 3].group_id
    states = [state(upper)]
    plan.rollback(target).ok()
    states.append(state(upper))
    plan.rollback(last).ok()
    assert state(upper) == states[0] != states[1]
    saved = top.with_name("saved")
    subprocess.run(["cp", "-a", str(top), str(saved)], check=True)

    def reset() -> None:
        put_back(top, saved)

    def work() -> object:
        return plan.rollback(target).ok()

    data = world.agents.data_dir
    watched = [*(data / name for name in ("cleveragents.db", "cleveragents.db-wal", "sandboxes"))]
    reset()
    points = kill_points(work, watched)
    assert len(points) > 4
    for point in share(points, part, PARTS):
        reset()
        killed(work, point)
        plan("status").ok()
        plan.rollback(target).ok()
        assert state(upper) == states[1], point
        plan.rollback(last).ok()
        assert state(upper) == states[0], point
    world.agents("store", "verify").ok()


class Applying:
    """A plan that has changed a tracked file and an ignored folder, applied again and again."""

    def __init__(self, top: Path, template: World) -> None:
        self._top, self._saved = top, top.with_name("saved")
        self.world = furnished(top, template)
        last = shell("echo 1 > own.txt; echo 2 > node_modules/new", "three")
        self.plan = self.world.run(*STEPS[:2], last)
        self.project = self.world.project.path
        self._notes = self.plan.sandbox.with_name("code.layers")
        self._tip = self.project / ".git/refs/heads/main"
        self._before = self._tip.read_bytes()
        subprocess.run(["cp", "-a", str(top), str(self._saved)], check=True)

    def reset(self) -> None:
        put_back(self._top, self._saved)
        # A copy has a status of its own; the plan is to have seen this one.
        (self._notes / "since").write_bytes(b"node_modules\0%d" % time.time_ns())

    def __call__(self) -> Answer:
        return self.plan("apply", "--yes", "--with-ignored", "node_modules")

    def refused(self) -> Answer:
        """As somebody else is changing the branch just then."""
        lock = self._tip.with_name("main.lock")
        lock.touch()
        try:
            return self()
        finally:
            lock.unlink()

    @property
    def is_open(self) -> bool:
        """Whether it can still be taken back."""
        return self._tip.read_bytes() == self._before and self.plan.status["state"] != "applied"

    @property
    def modules(self) -> dict[str, object]:
        return state(self.project / "node_modules")

    @property
    def own(self) -> bool:
        return (self.project / "own.txt").exists()

    def traces(self) -> list[str]:
        left = [str(path) for path in (self.project / ".git").glob("cleveragents-*")]
        return [*left, *self.world.project.git("status", "--porcelain").splitlines()]


@pytest.mark.parametrize("part", range(PARTS))
def test_an_apply_with_ignored_folders(quick_path: Path, template: World, part: int) -> None:
    """Finished by the next command, or taken back by it where it cannot be: all of it."""
    apply = Applying(quick_path / "w", template)
    before = apply.modules
    apply.reset()
    points = kill_points(apply, [apply.project, apply.world.agents.data_dir / "sandboxes"])
    after = apply.modules
    assert after != before and len(points) > 20
    taken_back = 0
    for number, point in enumerate(share(points, part, PARTS)):
        apply.reset()
        killed(apply, point)
        if number % 2 and apply.is_open:
            assert apply.refused().code == 1, point
            assert (apply.modules, apply.own) == (before, False), point
            taken_back += 1
        answer = apply()
        assert answer.code == 0 or answer.error["code"] == "plan-applied", (point, answer)
        assert (apply.modules, apply.own, apply.traces()) == (after, True, []), point
    assert taken_back > 2
