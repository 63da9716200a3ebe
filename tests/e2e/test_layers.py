"""Ignored folders of the project are there as layers: used, changed, rolled back, never copied."""

import json
import os
import platform
import shutil
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.support import machines
from tests.support.agents import COMMAND
from tests.support.world import PlanHandle, Step, World, action, shell, wait_for

from cleveragents.infrastructure.confinement.machine import Machine

HERE = Machine(os.environ["PATH"])
pytestmark = pytest.mark.skipif(
    not HERE.read_only_view, reason="this kernel has no view of its own for a command"
)


def bytes_of(top: Path) -> dict[str, object]:
    """All there is to a folder: kinds, modes, contents, links, times, names of one file."""
    found: dict[str, object] = {}
    for path in sorted([top, *top.rglob("*")]):
        status = path.lstat()
        kind = stat.S_IFMT(status.st_mode)
        content = path.read_bytes() if kind == stat.S_IFREG else b""
        target = str(path.readlink()) if kind == stat.S_IFLNK else ""
        marks = (status.st_mode, status.st_mtime_ns, status.st_nlink, content, target)
        found[str(path.relative_to(top))] = marks
    return found


@pytest.fixture
def furnished(world: World) -> World:
    """With `node_modules`, as `npm` makes it, and a virtual environment."""
    top = world.project.path
    (top / ".gitignore").write_text("node_modules/\n.venv/\ntarget/\n")
    world.project.git("add", "-A")
    world.project.git("commit", "-qm", "ignored")
    modules = top / "node_modules"
    for name in ("left", "right", "deep/inner"):
        (modules / name).mkdir(parents=True)
        (modules / name / "index.js").write_text(f"// {name}\n")
    (modules / ".bin").mkdir()
    (modules / ".bin/left").symlink_to("../left/index.js")
    os.link(modules / "left/index.js", modules / "left/again.js")
    return world


def test_a_step_uses_and_changes_ignored_folders_and_the_users_stay(furnished: World) -> None:
    world, modules = furnished, furnished.project.path / "node_modules"
    before = bytes_of(modules)
    told = world.beside / "told"
    plan = world.run(
        shell(f"cat node_modules/.bin/left > {told}", "read"),
        shell("echo new > node_modules/new.js; echo more >> node_modules/left/index.js", "write"),
        shell("rm -r node_modules/right", "remove"),
        shell("rm -r node_modules/deep; mkdir node_modules/deep; echo 1 > node_modules/deep/x"),
        shell(f"find node_modules | sort > {told}2; cat node_modules/left/index.js >> {told}2"),
    )
    assert told.read_text() == "// left\n"
    lines = (world.beside / "told2").read_text().splitlines()
    assert "node_modules/right" not in lines and "node_modules/deep/inner" not in lines
    assert lines[-2:] == ["// left", "more"]
    assert {"node_modules/deep/x", "node_modules/new.js"} <= {*lines}
    assert bytes_of(modules) == before
    assert stat.S_ISCHR((plan.sandbox / "node_modules/right").lstat().st_mode)


def test_going_back_and_forth_brings_layers_back_exactly(furnished: World) -> None:
    world, modules = furnished, furnished.project.path / "node_modules"
    before = bytes_of(modules)
    plan = world.run(
        shell("echo 1 > node_modules/left/index.js; rm node_modules/.bin/left", "one"),
        shell("rm -r node_modules/deep; echo file > node_modules/deep", "two"),
        shell("rm node_modules/deep; mkdir node_modules/deep; touch node_modules/deep/y", "three"),
        shell("rm -rf node_modules/left; cp -a node_modules/right node_modules/left", "four"),
    )
    upper = plan.sandbox / "node_modules"
    states = {}
    for group in plan.groups:
        plan.rollback(group.group_id).ok()
        states[group.group_id] = marks_of(upper)
    assert len({repr(state) for state in states.values()}) >= 5
    for group, state in reversed(states.items()):
        plan.rollback(group).ok()
        assert marks_of(upper) == state
    assert bytes_of(modules) == before


def marks_of(upper: Path) -> dict[str, object]:
    """The upper part of a layer: with whiteouts, and which folders are opaque."""
    found: dict[str, object] = {}
    for path in sorted([upper, *upper.rglob("*")]):
        status = path.lstat()
        content = path.read_bytes() if stat.S_ISREG(status.st_mode) else b""
        names = os.listxattr(path, follow_symlinks=False) if path.is_dir() else []
        opaque = "user.overlay.opaque" in names
        found[str(path.relative_to(upper))] = (status.st_mode, content, opaque)
    return found


def test_a_virtual_environment_works_and_is_rolled_back(furnished: World) -> None:
    world, venv = furnished, furnished.project.path / ".venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(venv)], check=True)
    script = venv / "bin/hello"
    script.write_text(f"#!{venv}/bin/python\nimport sys, own\nprint(sys.prefix, own.VALUE)\n")
    script.chmod(0o755)
    packages = next(venv.glob("lib/python*/site-packages"))
    (packages / "own.py").write_text("VALUE = 1\n")
    inside = packages.relative_to(world.project.path)
    before = bytes_of(venv)
    told = world.beside / "told"
    hello = f"PYTHONDONTWRITEBYTECODE=1 .venv/bin/hello >> {told}"
    plan = world.run(shell(hello), shell(f"echo VALUE = 2 > {inside}/own.py; {hello}", "upgrade"))
    assert told.read_text().splitlines() == [f"{venv} 1", f"{venv} 2"]
    plan.rollback(plan.groups[0].group_id).ok()
    told.unlink()
    plan.execute().ok()
    assert told.read_text().splitlines() == [f"{venv} 1", f"{venv} 2"]
    assert bytes_of(venv) == before


# --- the tools that work on files themselves ----------------------------------------------------


def tool(name: str, **arguments: object) -> dict[str, object]:
    return {"name": name, "tool": f"file.{name}", "with": {"resource": "code", **arguments}}


def output(world: World, *steps: Step) -> list[str]:
    plan = world.run(*steps)
    return [call["output"] for call in plan("artifacts").ok().data["artifacts"]]


def test_file_tools_see_ignored_folders_as_steps_do(furnished: World) -> None:
    world, modules = furnished, furnished.project.path / "node_modules"
    before = bytes_of(modules)
    listing = "cd node_modules; find . | sort; cat left/index.js right/new.js moved/inner/index.js"
    told = output(
        world,
        tool("read", path="node_modules/left/index.js"),
        tool("edit", path="node_modules/left/index.js", old="left", new="edited"),
        tool("write", path="node_modules/right/new.js", content="new\n"),
        tool("delete", path="node_modules/right/index.js"),
        tool("move", path="node_modules/deep", to="node_modules/moved"),
        tool("list", path="node_modules"),
        tool("list", path="node_modules/right"),
        shell(listing, "look"),
        tool("delete", path="node_modules/moved", recursive=True),
        tool("write", path="node_modules/deep/inner/index.js", content="again\n"),
        shell("cat node_modules/deep/inner/index.js; ls node_modules", "look"),
    )
    assert told[0] == "// left\n"
    assert told[5].split() == [".bin/", "left/", "moved/", "right/"]
    assert told[6].split() == ["new.js"]
    assert told[7].split("\n") == [
        *(".", "./.bin", "./.bin/left", "./left", "./left/again.js", "./left/index.js"),
        *("./moved", "./moved/inner", "./moved/inner/index.js", "./right", "./right/new.js"),
        *("// edited", "new", "// deep/inner", ""),
    ]
    assert told[10].split() == ["again", "deep", "left", "right"]
    assert bytes_of(modules) == before


@pytest.mark.parametrize(
    ("step", "problem"),
    [
        (tool("read", path="node_modules/none"), "No such file"),
        (tool("delete", path="node_modules/none"), "No such file"),
        (tool("delete", path="node_modules/left"), "not empty"),
        (tool("move", path="node_modules/left", to="node_modules/right"), "exists already"),
        (tool("write", path="node_modules/left", content="x"), "Is a directory"),
        (tool("read", path="node_modules/.bin/left"), "it is a link"),
    ],
)
def test_file_tools_refuse_in_ignored_folders_what_they_refuse_elsewhere(
    furnished: World, step: dict[str, object], problem: str
) -> None:
    plan = furnished.use(step)
    plan.execute()
    assert problem in plan("errors").ok().out


# --- what becomes of it -------------------------------------------------------------------------


def left_out(plan: PlanHandle) -> list[str]:
    return [row["path"] for row in plan("diff").ok().data["left_out"]]


def test_diff_and_apply_say_what_changed_in_ignored_folders_and_leave_it(furnished: World) -> None:
    world, modules = furnished, furnished.project.path / "node_modules"
    before = bytes_of(modules)
    plan = world.run(
        shell("echo 1 > own.txt; echo 2 > node_modules/new.js; rm -r node_modules/left", "change")
    )
    assert left_out(plan) == ["node_modules/ (1 written, 1 removed)"]
    done = plan("apply", "--yes").ok()
    assert "node_modules/ (1 written, 1 removed)" in done.out
    assert (world.project.path / "own.txt").exists()
    assert bytes_of(modules) == before


def test_a_layer_that_nobody_changed_is_not_mentioned(furnished: World) -> None:
    plan = furnished.run(shell("cat node_modules/left/index.js; echo 1 > own.txt", "look"))
    assert left_out(plan) == []
    assert not [row for row in plan.groups if "node_modules" in str(row.rows)]


def test_children_have_the_layers_of_their_parent_and_bring_their_changes(furnished: World) -> None:
    world, modules = furnished, furnished.project.path / "node_modules"
    before = bytes_of(modules)
    told = world.beside / "told"
    children = [
        {
            "name": name,
            "steps": [
                shell(
                    f"cat node_modules/by-parent node_modules/right/index.js"
                    f" > {told}-{name}; {command}",
                    name,
                )
            ],
        }
        for name, command in (
            ("one", "echo 1 > node_modules/one; rm -r node_modules/right"),
            ("two", "echo 2 > node_modules/two; rm -r node_modules/deep; mkdir node_modules/deep"),
        )
    ]
    split = {"name": "split", "subplans": {"parallel": True, "plans": children}}
    look = shell(f"find node_modules | sort > {told}", "look")
    plan = world.run(shell("echo p > node_modules/by-parent", "parent"), split, look)
    for name in ("one", "two"):
        assert (world.beside / f"told-{name}").read_text() == "p\n// right\n"
    lines = {line.removeprefix("node_modules/") for line in told.read_text().split()}
    assert {"one", "two", "by-parent", "deep"} <= lines
    assert not {"right", "deep/inner"} & lines
    assert bytes_of(modules) == before
    assert plan.status["state"] == "complete"


def test_nothing_of_a_layer_is_left_when_a_plan_is_discarded(furnished: World) -> None:
    world = furnished
    plan = world.run(shell("rm -r node_modules/left; echo 1 > node_modules/new", "change"))
    sandboxes = plan.sandbox.parent
    assert sorted(path.name for path in sandboxes.iterdir()) == [
        "code",
        "code.git",
        "code.index",
        "code.layers",
    ]
    assert {path.name for path in (sandboxes / "code.layers").iterdir()} == {"known", "since"}
    plan("discard", "--yes").ok()
    assert not sandboxes.exists()
    assert (world.project.path / "node_modules/left/index.js").exists()


def test_a_step_cannot_write_the_lower_folder_by_any_name_it_has(furnished: World) -> None:
    world, modules = furnished, furnished.project.path / "node_modules"
    before = bytes_of(modules)
    ways = (
        f"umount {modules}; echo bad > {modules}/left/index.js",
        f"unshare -Urm sh -c 'umount {modules}; umount {world.project.path};"
        f" echo bad > {modules}/left/index.js; mount --bind / /mnt;"
        f" echo bad > /mnt{modules}/left/index.js'",
        f"for f in /proc/self/root /proc/1/root /proc/*/root; do echo bad > $f{modules}/bad; done",
        f"ln -s {modules} way; echo bad > way/right/index.js; chmod 777 {modules}/left/index.js",
        f"touch -d 2001-01-01 {modules} {modules}/left; chmod 000 {modules}",
        "mv node_modules away; rm -rf node_modules; true",
    )
    world.run(*(shell(f"({way}) 2>&1; true", f"way {n}") for n, way in enumerate(ways)))
    assert bytes_of(modules) == before


def test_a_link_in_the_place_of_a_folder_leads_no_layer_elsewhere(furnished: World) -> None:
    """What a step puts in its sandbox must not become the upper part, which is written."""
    world = furnished
    inner = world.project.path / "src/target"
    inner.mkdir()
    (inner / "theirs").write_text("theirs\n")
    victim = world.home / "victim"
    (victim / "target").mkdir(parents=True)
    (victim / "target/file").write_text("theirs\n")
    before = bytes_of(victim)
    world.run(
        shell("cat src/target/theirs", "there"),
        shell(f"rm -rf src 2>/dev/null; mv src away; ln -s {victim} src", "plant"),
        shell("echo bad > src/target/file; echo bad > src/target/new; true", "write"),
    )
    assert bytes_of(victim) == before
    assert (inner / "theirs").read_text() == "theirs\n"


# --- where the machine refuses ------------------------------------------------------------------


def held_back(world: World, *argv: str) -> dict[str, Any]:
    """The command below a filter of calls that refuses namespaces and mounts."""
    done = subprocess.run(
        [*machines.refusing_namespaces(), str(COMMAND), "--format", "json", *argv],
        cwd=world.project.path,
        env=world.agents.environ,
        capture_output=True,
        check=False,
    )
    assert done.stdout, done.stderr
    return json.loads(done.stdout)


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the filter has its numbers")
def test_where_namespaces_are_refused_small_folders_are_copied_and_that_is_told(
    furnished: World,
) -> None:
    world, modules = furnished, furnished.project.path / "node_modules"
    large = world.project.path / "target"
    large.mkdir()
    for number in range(1100):
        (large / f"{number}.o").touch()
    before = bytes_of(modules)
    told = world.beside / "told"
    steps = [shell(f"pwd > {told}; ls >> {told}; rm -r node_modules/left; echo 1 > own.txt")]
    used = held_back(world, "plan", "use", world.write_action(action(*steps)))
    words = " ".join(used["messages"] + [str(used["data"])])
    assert "node_modules will be copied into the sandbox" in words
    assert "target will not be in the sandbox" in words and "include: [target]" in words

    assert held_back(world, "plan", "execute", used["data"]["plan_id"])["exit_code"] == 0

    plan = PlanHandle(world.agents, used["data"]["plan_id"])
    where, *names = told.read_text().split()
    assert where == str(plan.sandbox)
    assert "node_modules" in names and "target" not in names
    assert bytes_of(modules) == before
    plan.rollback("start").ok()
    assert (plan.sandbox / "node_modules/left/index.js").exists()


def test_a_change_of_the_users_folder_during_a_step_is_told(furnished: World) -> None:
    world = furnished
    go, gate = world.beside / "go", world.beside / "gate"
    wait = f"touch {go}; until [ -e {gate} ]; do sleep 0.02; done; ls node_modules"
    plan = world.use(shell("true", "quiet"), shell(wait, "wait"))
    process = world.agents.start("--format", "json", "plan", "execute", plan.id)
    try:
        wait_for(go.exists)
        (world.project.path / "node_modules/theirs").mkdir()
    finally:
        gate.touch()
        process.communicate(timeout=60)
    quiet, waited = plan("artifacts").ok().data["artifacts"]
    folder = str(world.project.path / "node_modules")
    assert "changed_by_others" not in quiet["values"]
    assert waited["values"]["changed_by_others"] == [folder]
    assert f"somebody else has changed {folder} while this ran" in waited["output"]


def test_a_package_that_the_user_installs_while_a_program_runs_is_told(furnished: World) -> None:
    """Where packages lie some folders below, and the program decides its steps itself."""
    world = furnished
    packages = world.project.path / ".venv/lib/python3.11/site-packages"
    packages.mkdir(parents=True)
    (packages / "one.py").touch()
    go, gate = world.beside / "go", world.beside / "gate"
    wait = f"touch {go} own.txt; until [ -e {gate} ]; do sleep 0.02; done"
    allowed = ("--write", str(world.beside))
    process = world.agents.start("run", "--keep", *allowed, "--", "sh", "-c", wait)
    try:
        wait_for(go.exists)
        (packages / "two.py").touch()
    finally:
        gate.touch()
        process.communicate(timeout=60)
    told = " ".join(str(row) for row in world.agents("plan", "artifacts").ok().data["artifacts"])
    assert "somebody else has changed" in told and ".venv" in told


def test_a_sandbox_that_is_made_again_has_its_layers(furnished: World) -> None:
    world, told = furnished, furnished.beside / "told"
    look = shell(f"ls node_modules > {told}", "look")
    plan = world.run(shell("rm -r node_modules/left; touch node_modules/new", "change"), look)
    before = told.read_text()
    first = plan.groups[2].group_id
    world.agents.inside("plan", "status", plan.id)
    shutil.rmtree(plan.sandbox.parent)
    told.unlink()
    plan.agents("plan", "rollback", "--rebuild", "--yes", plan.id, first).ok()
    plan.execute().ok()
    assert told.read_text() == before
    assert before.split() == ["deep", "new", "right"]
