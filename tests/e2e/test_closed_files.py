"""Files and folders that their owner may not read: they are content like any other."""

import os
import stat
import subprocess
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from tests.support.children import children, spawn
from tests.support.refusals import refused
from tests.support.rights import Restrained, stopped_by_modes, without_namespaces
from tests.support.trees import Tree, tree_of
from tests.support.world import PlanHandle, Step, World, action, shell, write

CLOSE = (
    "chmod 000 secret; chmod 200 blind; chmod 000 in/box; chmod 100 x1; chmod 300 x3; chmod 400 r4;"
    "chmod 000 a1/b2/c; chmod 000 a1/b2 a1"
)
MAKE = (
    "echo s > secret; echo b > blind; mkdir -p in/box/deep x1 x3 r4/in a1/b2; echo v > in/box/v;"
    "ln -s v in/box/l; echo 1 > x1/f; echo 3 > x3/f; echo 4 > r4/in/f; echo c > a1/b2/c;"
)
OPEN = "chmod 700 a1 a1/b2 in/box x1 x3 r4; chmod 600 a1/b2/c secret blind;"
CHANGE = f"{OPEN} for f in secret blind in/box/v x1/f x3/f r4/in/f a1/b2/c; do echo new > $f; done;"
NAMES = ("secret", "blind", "in/box", "x1", "x3", "r4", "a1", "a1/b2", "a1/b2/c")
MEANS = {"helper": stopped_by_modes, "lent": without_namespaces}
FILES = {"code": {"type": "fs-directory", "path": "../files"}}


@pytest.fixture(autouse=True)
def removable(world: World) -> Generator[None]:
    """Once the test is over."""
    yield
    do("chmod -R u+rwX .", world.top)


@pytest.fixture(params=MEANS)
def weak(world: World, request: pytest.FixtureRequest) -> Restrained:
    return Restrained(world.agents, MEANS[request.param]())


def use(world: World, weak: Restrained, *steps: Step, **keys: Any) -> PlanHandle:
    """Confinement is not what is looked at here, and not to be had without namespaces."""
    path = world.write_action(action(*steps, **{"confinement": "off", **keys}))
    return PlanHandle(weak, weak("plan", "use", path).ok().data["plan_id"])


def do(command: str, where: Path) -> None:
    subprocess.run(["/bin/sh", "-ec", command], cwd=where, check=True)


def closed_in(tree: Tree) -> set[str]:
    needed = {"file": stat.S_IRUSR, "folder": stat.S_IRUSR | stat.S_IXUSR}
    return {
        os.fsdecode(path)
        for path, (kind, mode, _) in tree.items()
        if kind in needed and mode & needed[kind] != needed[kind]
    }


def test_a_plan_goes_there_and_back(world: World, weak: Restrained) -> None:
    plan = use(world, weak, write("a", "a\n"), shell(MAKE + CLOSE, "close"), write("b", "b\n"))
    plan.execute().ok()
    closed = plan.tree()
    assert closed_in(closed) == set(NAMES)
    assert closed[b"a1/b2/c"] == ("file", 0, b"c\n")
    plan.rollback("after file.write a").ok()
    assert closed_in(plan.tree()) == set()
    plan.rollback("after file.write b").ok()
    assert plan.tree() == closed
    plan("checkpoint", "verify").ok()
    lent = plan.sandbox.parent.glob("*.lent")
    assert [note for note in lent if note.stat().st_size] == []


def test_what_changed_and_was_closed_again_is_captured_by_a_new_process(
    world: World, weak: Restrained
) -> None:
    plan = use(world, weak, shell(MAKE + CLOSE, "close"))
    plan.execute().ok()
    do(CHANGE + CLOSE, plan.sandbox)
    changed = plan.tree()
    plan("checkpoint", "create", "{}", "--label", "changed").ok()
    do(OPEN + "echo once more > secret", plan.sandbox)
    plan.rollback("changed").ok()
    assert plan.tree() == changed


def test_children_have_what_is_closed_and_bring_it_home(world: World, weak: Restrained) -> None:
    more = "echo k > kept; chmod 000 kept; mkdir own; echo o > own/o; chmod 0 own"
    step = {"name": "k", "tool": "shell", "with": {"resource": "code", "command": more}}
    plan = use(
        world,
        weak,
        shell(MAKE + CLOSE, "close"),
        spawn({"name": "kid", "steps": [step]}, parallel=False),
    )
    plan.execute().ok()
    assert children(plan)["kid"]["outcome"] == "merged"
    tree = plan.tree()
    assert closed_in(tree) == {*NAMES, "kept", "own"}
    assert (tree[b"kept"], tree[b"own/o"][2]) == (("file", 0, b"k\n"), b"o\n")


@pytest.fixture
def files(world: World) -> Path:
    made = world.top / "files"
    made.mkdir()
    do(MAKE + CLOSE, made)
    return made


def looks(top: Path) -> dict[str, tuple[int, int]]:
    """What a change of a mode, even one that was taken back, shows in."""
    found = {name: top / name for name in ("", "secret", "blind", "in/box", "x1", "x3", "r4", "a1")}
    return {n: (p.lstat().st_mode, p.lstat().st_ctime_ns) for n, p in found.items()}


def test_a_folder_of_the_users_is_copied_as_it_is_and_left_alone(world: World, files: Path) -> None:
    weak = Restrained(world.agents, stopped_by_modes())
    if os.geteuid() == 0:
        weak = Restrained(world.agents, [])  # without its rights, root gets no namespace either
    tree, before = tree_of(files), looks(files)
    plan = use(world, weak, shell("echo x > x", "work"), resources=FILES)
    plan.execute().ok()
    plan.rollback("start").ok()
    assert plan.tree() == tree
    assert looks(files) == before


def test_where_nothing_opens_them_without_a_change_the_users_own_are_refused_by_name(
    world: World, files: Path
) -> None:
    before = looks(files)
    weak = Restrained(world.agents, without_namespaces())
    path = world.write_action(action(shell("true"), resources=FILES, confinement="off"))
    said = refused(weak("plan", "use", path), "resource-unusable")
    assert "cannot be" in said
    assert "exclude" in said
    assert looks(files) == before


def test_changes_of_closed_files_are_shown_and_applied(world: World, files: Path) -> None:
    weak = Restrained(world.agents, [] if os.geteuid() == 0 else stopped_by_modes())
    more = "mkdir made; echo m > made/m; chmod 0 made/m made; chmod 700 x1; chmod 600 secret"
    plan = use(world, weak, shell(f"{CHANGE}{CLOSE}; {more}", "work"), resources=FILES)
    plan.execute().ok()
    wanted = plan.tree()
    diff = plan("diff").ok().data
    assert {file["path"] for file in diff["files"]} >= {"secret", "blind", "in/box/v", "made/m"}
    assert "+new" in diff["patch"]
    plan("apply", "--yes").ok()
    assert tree_of(files) == wanted


@pytest.mark.skipif(os.geteuid() == 0, reason="no mode stops root's git")
@pytest.mark.parametrize("close", ["chmod 000 src", "mkdir new; echo n > new/n; chmod 000 new"])
def test_what_git_cannot_look_into_is_refused_and_not_left_out_of_an_apply(
    world: World, close: str
) -> None:
    weak = Restrained(world.agents, stopped_by_modes())
    plan = use(world, weak, shell(f"echo x > src/app.py; {close}", "close"))
    plan.execute().ok()
    head = world.project.git("rev-parse", "HEAD")
    for words in (("diff",), ("apply", "--yes")):
        said = refused(plan(*words), "sandbox-failed")
        assert "Permission denied" in said
        assert "chmod" in said
    assert world.project.git("rev-parse", "HEAD") == head
    do("chmod -R u+rwX .", plan.sandbox)
    plan("apply", "--yes").ok()
    assert (world.project.path / "src" / "app.py").read_text() == "x\n"
