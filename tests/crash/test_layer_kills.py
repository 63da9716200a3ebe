"""A rollback of layers, killed at every moment: the next command finishes it, or undoes it."""

import os
import shutil
import stat
import subprocess
from pathlib import Path

import pytest
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
        shutil.rmtree(top)
        subprocess.run(["cp", "-a", str(saved), str(top)], check=True)

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
