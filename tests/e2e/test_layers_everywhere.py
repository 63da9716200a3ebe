"""Layers where others have made it hard: odd paths, links, kept groups, a full disk, `rm -rf`."""

import os
import platform
import shutil
import stat
import subprocess
from pathlib import Path

import pytest
from tests.support import machines
from tests.support.agents import COMMAND, Agents
from tests.support.submodules import WithSubmodules
from tests.support.world import PlanHandle, World, action, shell, wait_for

from cleveragents.infrastructure.confinement.machine import Machine

pytestmark = pytest.mark.skipif(
    not Machine(os.environ["PATH"]).read_only_view,
    reason="this kernel has no view of its own for a command",
)
ODD = "with a space, 'quotes' and $HOME"
OPAQUE = "user.overlay.opaque"


def furnish(project: Path) -> Path:
    """With an ignored folder; what it is called."""
    git = ("git", "-C", str(project), "-c", "user.name=U", "-c", "user.email=u@example.org")
    (project / ".gitignore").write_text("node_modules/\nodd*/\n")
    subprocess.run([*git, "add", "-A"], check=True)
    subprocess.run([*git, "commit", "-qm", "ignored"], check=True)
    modules = project / "node_modules"
    for name in ("left", "right", "deep/inner", "folder", "linked"):
        (modules / name).mkdir(parents=True)
        (modules / name / "index.js").write_text(f"// {name}\n")
    (modules / "file").write_text("file\n")
    (modules / "alias").symlink_to("left")
    return modules


@pytest.fixture
def furnished(world: World) -> World:
    furnish(world.project.path)
    return world


# --- what a step has made of a folder, at each group --------------------------------------------

STEPS = (
    "rm -r node_modules/right; echo 1 > node_modules/new",
    "rm -r node_modules/deep; mkdir node_modules/deep; touch node_modules/deep/x",
    "rm -r node_modules/folder; echo file > node_modules/folder",
    "rm node_modules/file; mkdir -p node_modules/file/in; touch node_modules/file/in/side",
    "rm -r node_modules/linked; ln -s left node_modules/linked",
    "rm node_modules/alias; cp -a node_modules/left node_modules/alias",
    "ln node_modules/left/index.js node_modules/twin; chmod 600 node_modules/new",
    "echo more >> node_modules/left/index.js; mkdir node_modules/right",
    "rm -r node_modules/*; touch node_modules/last",
)


def state(top: Path) -> dict[str, object]:
    found: dict[str, object] = {}
    for path in sorted(top.rglob("*")):
        mode = path.lstat().st_mode
        content = path.read_bytes() if stat.S_ISREG(mode) else b""
        target = str(path.readlink()) if stat.S_ISLNK(mode) else ""
        found[str(path.relative_to(top))] = (mode, content, target)
    return found


def merged(lower: Path, upper: Path) -> dict[str, object]:
    """What the kernel would show, by rules of our own."""
    shown, above = state(lower), state(upper)
    for name, (mode, *_rest) in sorted(above.items()):  # type: ignore[misc]
        folder = stat.S_ISDIR(mode)
        if not folder or OPAQUE in os.listxattr(upper / name):
            shown = {n: s for n, s in shown.items() if n != name and not n.startswith(f"{name}/")}
    whole = {**shown, **above}
    return {n: s for n, s in whole.items() if not stat.S_ISCHR(s[0])}  # type: ignore[index]


def test_each_group_brings_back_what_the_same_commands_make_elsewhere(furnished: World) -> None:
    world, lower = furnished, furnished.project.path / "node_modules"
    truth = world.top / "truth"
    subprocess.run(["cp", "-a", str(world.project.path), str(truth)], check=True)
    expected = [state(lower)]
    for command in STEPS:
        subprocess.run(["/bin/sh", "-c", command], cwd=truth, check=True)
        expected.append(state(truth / "node_modules"))
    plan = world.run(*(shell(command, f"step {n}") for n, command in enumerate(STEPS)))
    upper = plan.sandbox / "node_modules"
    assert merged(lower, upper) == expected[-1]
    # There and back, and not one after the other.
    for number in (*range(0, len(STEPS), 2), *range(len(STEPS) - 1, 0, -2)):
        plan.rollback(f"after shell step {number}").ok()
        assert merged(lower, upper) == expected[number + 1], number
    plan.rollback("start").ok()
    assert merged(lower, upper) == expected[0]


def test_pruned_groups_of_layers_free_their_room_and_the_kept_ones_are_whole(
    furnished: World,
) -> None:
    world, size = furnished, 400_000
    steps = [
        shell(f"head -c {size} /dev/urandom > node_modules/big; rm -rf node_modules/left", f"s{n}")
        for n in range(8)
    ]
    plan = world.run(*steps, rollback_policy={"max_checkpoints": 3})
    stored = world.agents("store", "status").ok().data["plans"][0]
    assert stored["stored_bytes"] < 6 * size
    assert stored["sandbox_bytes"] > size
    world.agents("store", "verify").ok()
    upper = plan.sandbox / "node_modules"
    held = (upper / "big").read_bytes()
    last = plan.groups[-1].group_id
    plan.rollback("start").ok()
    assert [*upper.iterdir()] == []
    plan.rollback(last).ok()
    assert (upper / "big").read_bytes() == held
    assert stat.S_ISCHR((upper / "left").lstat().st_mode)


def test_removing_a_whole_ignored_folder_empties_it_and_that_is_what_is_kept(
    furnished: World,
) -> None:
    """It is a mount point, and so it stays; `rm` says so."""
    world, told = furnished, furnished.beside / "told"
    plan = world.run(
        shell(f"rm -rf node_modules 2> {told}; ls -A node_modules >> {told}", "remove"),
        shell(f"mkdir -p node_modules/a; ls -A node_modules >> {told}", "make anew"),
    )
    first, *names = told.read_text().splitlines()
    assert "busy" in first and names == ["a"]
    plan.rollback("after shell remove").ok()
    assert merged(world.project.path / "node_modules", plan.sandbox / "node_modules") == {}
    plan.execute().ok()
    plan("apply", "--yes", "--with-ignored", "node_modules").ok()
    assert [path.name for path in (world.project.path / "node_modules").iterdir()] == ["a"]


def test_a_sandbox_whose_list_of_layers_is_lost_has_them_all_the_same(furnished: World) -> None:
    world, told = furnished, furnished.beside / "told"
    look = shell(f"ls node_modules > {told}", "look")
    plan = world.use(shell("rm -r node_modules/left", "change"), look, shell("true", "wait"))
    plan.execute().ok()
    before = told.read_text()
    plan.rollback("after shell change").ok()
    shutil.rmtree(plan.sandbox.with_name("code.layers"))
    told.unlink()
    plan.execute().ok()
    assert told.read_text() == before and "right" in before.split()


# --- where the project is -----------------------------------------------------------------------


def at(world: World, place: Path) -> tuple[Agents, Path]:
    """The project moved to another place, and the command run from there."""
    shutil.move(world.project.path, place)
    return Agents(world.home, place), place


def run_at(world: World, agents: Agents, *steps: object) -> PlanHandle:
    path = world.write_action(action(*steps))  # type: ignore[arg-type]
    plan = PlanHandle(agents, agents("plan", "use", path).ok().data["plan_id"])
    plan.execute().ok()
    return plan


@pytest.mark.parametrize("kind", ["odd letters", "a link"])
def test_a_project_at_an_odd_place_has_its_layers(world: World, kind: str) -> None:
    top = world.top / ODD
    furnish(world.project.path)
    agents, project = at(world, top)
    (project / "odd \udcff").mkdir()
    (project / "odd \udcff/theirs").write_text("theirs\n")
    if kind == "a link":
        link = world.top / "link"
        link.symlink_to(project)
        agents = Agents(world.home, link)
    modules, told = project / "node_modules", world.beside / "told"
    before = state(project)
    plan = run_at(
        world,
        agents,
        shell(f"pwd > {told}; cat node_modules/left/index.js odd*/theirs >> {told}", "look"),
        shell("rm -r node_modules/right; mv odd*/theirs own; cp own odd*/; rm own", "change"),
    )
    where, *lines = os.fsdecode(told.read_bytes()).splitlines()
    assert where == str(project.resolve())
    assert lines == ["// left", "theirs"]
    assert {n: s for n, s in state(project).items() if ".git/" not in n} == {
        n: s for n, s in before.items() if ".git/" not in n
    }
    left = [row["path"] for row in plan("diff").ok().data["left_out"]]
    assert left == ["node_modules/ (1 removed)", "odd \\xff/ (1 written, 1 removed)"]
    plan("apply", "--yes", "--with-ignored", "node_modules", "--with-ignored", "odd \udcff").ok()
    assert not (modules / "right").exists()
    assert [path.name for path in (project / "odd \udcff").iterdir()] == ["own"]


@pytest.mark.skipif(os.geteuid() != 0, reason="something is mounted, which takes root")
def test_a_project_that_is_a_mount_point_has_its_layers(furnished: World) -> None:
    world, place, told = furnished, furnished.top / "mounted", furnished.beside / "told"
    place.mkdir()
    mount = ["mount", "--bind", world.project.path, place]
    if subprocess.run(mount, check=False).returncode:
        pytest.skip("nothing can be mounted here")
    try:
        before = state(place / "node_modules")
        plan = run_at(
            world,
            Agents(world.home, place),
            shell(f"pwd > {told}; ls node_modules >> {told}; rm -r node_modules/left", "change"),
        )
        where, *names = told.read_text().splitlines()
        assert where == str(place) and "left" in names
        assert state(place / "node_modules") == before
        plan("apply", "--yes", "--with-ignored", "node_modules").ok()
        assert not (place / "node_modules/left").exists()
    finally:
        subprocess.run(["umount", "--lazy", place], check=True)


def test_what_the_kernel_left_of_a_killed_step_goes_with_the_plan(furnished: World) -> None:
    """A folder that nobody may enter, not even its owner."""
    world = furnished
    plan = world.run(shell("rm -r node_modules/left", "change"))
    sandboxes = plan.sandbox.parent
    inner = sandboxes / "code.layers/work-killed/0/work"
    inner.mkdir(parents=True)
    inner.chmod(0)
    plan("discard", "--yes").ok()
    assert not sandboxes.exists()
    trash = world.agents.data_dir / "trash"
    wait_for(lambda: [path.name for path in trash.iterdir()] == [".lock"])


def test_with_submodules_it_is_told_that_there_is_no_view_and_folders_are_copied(
    world: World,
) -> None:
    project = WithSubmodules(world).project.path
    with (project / ".git/info/exclude").open("a") as ignored:
        ignored.write("node_modules/\n")
    (project / "node_modules").mkdir()
    (project / "node_modules/index.js").write_text("theirs\n")
    told = world.beside / "told"
    path = world.write_action(action(shell(f"cat node_modules/index.js > {told}", "look")))
    used = world.agents("plan", "use", path).ok()
    words = " ".join(used.envelope["messages"])
    assert "steps see the sandbox at a path of its own" in words
    assert "node_modules will be copied into the sandbox: with submodules" in words
    world.agents("plan", "execute", used.data["plan_id"]).ok()
    assert told.read_text() == "theirs\n"


# --- a full disk --------------------------------------------------------------------------------


@pytest.mark.skipif(os.geteuid() != 0, reason="a small disk is mounted, which takes root")
def test_a_full_disk_below_the_layers_fails_the_step_and_nothing_else(furnished: World) -> None:
    world, modules = furnished, furnished.project.path / "node_modules"
    (modules / "large").write_bytes(b"x" * 4_000_000)
    before = state(modules)
    place = world.agents.data_dir / "sandboxes"
    place.mkdir(mode=0o700, exist_ok=True)
    size = "size=3m,mode=700"
    if subprocess.run(["mount", "-t", "tmpfs", "-o", size, "none", place], check=False).returncode:
        pytest.skip("no tmpfs can be mounted here")
    try:
        plan = world.use(
            shell("echo 1 > node_modules/new; rm -r node_modules/left", "fits"),
            shell("echo more >> node_modules/large", "does not fit"),
        )
        assert plan.execute().code == 1
        assert "No space left" in plan("errors").ok().out
        upper = plan.sandbox / "node_modules"
        plan.rollback("after shell fits").ok()
        assert sorted(path.name for path in upper.iterdir()) == ["left", "new"]
        assert state(modules) == before
        world.agents("store", "verify").ok()
        plan("discard", "--yes").ok()
    finally:
        subprocess.run(["umount", "--lazy", place], check=True)


# --- where namespaces are refused ---------------------------------------------------------------


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the filter has its numbers")
def test_a_run_where_namespaces_are_refused_says_once_what_is_done_instead(
    furnished: World,
) -> None:
    """As whoever runs the tests: root, or an ordinary user."""
    world, modules = furnished, furnished.project.path / "node_modules"
    large = world.project.path / "odd large"
    large.mkdir()
    for number in range(1100):
        (large / str(number)).touch()
    before = state(modules)
    argv = [*machines.refusing_namespaces(), str(COMMAND), "run", "--keep"]
    work = ["--", "sh", "-c", "rm -r node_modules/left; ls > own.txt"]
    done = subprocess.run(
        [*argv, *work],
        cwd=world.project.path,
        env=world.agents.environ,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    told = done.stdout + done.stderr
    assert told.count("node_modules will be copied into the sandbox") == 1
    assert told.count("odd large will not be in the sandbox") == 1
    assert "include: [odd large]" in told
    assert state(modules) == before
    plan = PlanHandle(world.agents, world.agents("plan", "status").ok().data["plan_id"])
    names = (plan.sandbox / "own.txt").read_text().splitlines()
    assert "node_modules" in names and "odd large" not in names
    assert not (plan.sandbox / "node_modules/left").exists()
    world.agents("undo").ok()
    assert (plan.sandbox / "node_modules/left/index.js").exists()
