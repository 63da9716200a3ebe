"""Plans over several resources: one rollback takes all back, a conflict in one stops all."""

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.support.agents import Answer
from tests.support.trees import Tree, tree_of
from tests.support.world import PlanHandle, Step, World

FILL = {
    "assets": {"logo.svg": "<svg/>\n", "img/one.png": "\x89PNG", "notes.txt": "one\ntwo\n"},
    "media": {"song.txt": "la\n", "deep/er/file": "x"},
}
WORK = {
    "code": ("echo 2 > src/app.py; rm src/old.py", "mkdir hollow; chmod 600 README.md; git add -A"),
    "assets": (
        "rm same; echo '<svg>new</svg>' > logo.svg; rm -r img; echo file > img; mkdir .git empty",
        "ln -s nowhere dangling; chmod 600 notes.txt; printf x > 'new\nline'; echo h > .git/HEAD",
    ),
    "media": (
        "rm same; echo lala > song.txt; mv deep moved",
        "rm -r moved; mkdir deep; echo y > deep/er",
    ),
}


class Several:
    """A checkout and two folders beside it, and plans that work in all of them."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.places = {"code": world.project.path}
        for name, files in FILL.items():
            self.places[name] = world.top / name
            for path, content in files.items():
                file = world.top / name / path
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(content.encode("latin-1"))
            # What git keeps for the checkout has to be stored for the folders.
            shutil.copyfile(world.project.path / "README.md", self.places[name] / "same")

    def use(self, names: Sequence[str]) -> PlanHandle:
        """Two rounds, in each of which every resource is changed by a step of its own."""
        types = {name: "fs-directory" for name in FILL} | {"code": "git-checkout"}
        resources = {n: {"type": types[n], "path": str(self.places[n])} for n in names}
        steps = [_shell(n, WORK[n][turn], f"{n} {turn}") for turn in (0, 1) for n in names]
        return self.world.use(*steps, resources=resources)

    def run(self, names: Sequence[str]) -> PlanHandle:
        plan = self.use(names)
        plan.execute().ok()
        return plan

    def projects(self) -> dict[str, Tree]:
        return {name: _tree(path) for name, path in self.places.items()}

    def truth(self, names: Sequence[str]) -> list[dict[str, Tree]]:
        """By other means: copies of the projects after none, one and both rounds of commands."""
        trees = [{n: self._replayed(n, done) for n in names if n != "code"} for done in (0, 1, 2)]
        if "code" in names:
            for before, tree in zip(trees, self.world.replay(WORK["code"]), strict=True):
                before["code"] = tree
        return trees

    def _replayed(self, name: str, rounds: int) -> Tree:
        copy = self.world.top / f"copy of {name} {rounds}"
        subprocess.run(["cp", "-a", str(self.places[name]), str(copy)], check=True)
        for command in WORK[name][:rounds]:
            subprocess.run(["/bin/sh", "-ec", command], cwd=copy, check=True)
        return _tree(copy)

    def apply(self, plan: PlanHandle) -> Answer:
        return self.world.agents("plan", "apply", "--yes", plan.id)


def _shell(resource: str, command: str, name: str) -> Step:
    arguments: dict[str, Any] = {"resource": resource, "command": command}
    return {"name": name, "tool": "shell", "with": arguments}


def _tree(path: Path) -> Tree:
    """With the top `.git` of a plain folder, which is content there."""
    inner = path / ".git"
    beside = {b".git/" + name: entry for name, entry in tree_of(inner).items()}
    return {**tree_of(path), **(beside if inner.is_dir() and path.name != "project" else {})}


def sandboxes(plan: PlanHandle) -> dict[str, Tree]:
    return {item["resource"]: _tree(Path(item["path"])) for item in plan.status["sandboxes"]}


@pytest.fixture
def several(world: World) -> Several:
    return Several(world)


TOGETHER = (("code", "assets"), ("assets", "media"), ("code", "assets", "media"))


@pytest.mark.parametrize("names", TOGETHER)
def test_one_rollback_takes_every_resource_back_to_the_same_moment(
    several: Several, names: tuple[str, ...]
) -> None:
    projects = several.projects()
    plan = several.run(names)
    first, _, last = several.truth(names)
    assert sandboxes(plan) == last
    groups = plan.groups
    start = plan.rollback(groups[0].group_id).ok()
    assert sandboxes(plan) == first
    reverted = {change["file"].split(":")[0] for change in start.data["changes_reverted"]}
    assert reverted == set(names)
    plan.rollback(groups[-1].group_id).ok()
    assert sandboxes(plan) == last
    assert several.projects() == projects


def test_a_rollback_to_the_middle_leaves_each_resource_where_it_was_then(several: Several) -> None:
    names = ("code", "assets", "media")
    _, between, last = several.truth(names)
    plan = several.run(names)
    middle = next(g for g in plan.groups if g.step_index == len(names))
    plan.rollback(middle.group_id).ok()
    assert sandboxes(plan) == between
    plan.execute().ok()  # and goes on from there
    assert sandboxes(plan) == last


def test_apply_brings_every_result_to_its_project(several: Several) -> None:
    plan = several.run(("code", "assets", "media"))
    wanted = sandboxes(plan)
    answer = several.apply(plan).ok()
    after = several.projects()
    assert (after["assets"], after["media"]) == (wanted["assets"], wanted["media"])
    assert several.world.project.read("src/app.py") == "2\n"
    refs = {item["resource"]: item["ref"] for item in answer.data["results"]}
    assert refs["code"] == several.world.project.head
    assert refs["assets"].startswith("folder:sha256:")
    assert {path.split(":")[0] for path in _paths(plan("diff").ok())} >= {"assets", "media"}
    assert not any((several.world.agents.data_dir / "sandboxes").iterdir())


@pytest.mark.parametrize("moved", ["code", "assets", "media"])
def test_a_conflict_in_one_leaves_all_projects_as_they_were(several: Several, moved: str) -> None:
    plan = several.run(("code", "assets", "media"))
    file = {"code": "src/app.py", "assets": "logo.svg", "media": "song.txt"}[moved]
    (several.places[moved] / file).write_text("mine\n")
    head, before = several.world.project.head, several.projects()
    answer = several.apply(plan)
    assert (answer.code, answer.error["code"]) == (1, "apply-conflict")
    assert file in answer.error["message"]
    assert (several.world.project.head, several.projects()) == (head, before)
    assert plan.status["state"] == "constrained"


def test_after_a_conflict_is_settled_the_same_plan_can_be_applied(several: Several) -> None:
    plan = several.run(("assets", "media"))
    wanted = sandboxes(plan)
    place = several.places["media"] / "song.txt"
    place.write_text("mine\n")
    assert several.apply(plan).code == 1
    place.write_text("la\n")
    several.apply(plan).ok()
    assert {name: several.projects()[name] for name in wanted} == wanted


def test_file_tools_work_in_a_folder(several: Several) -> None:
    place = several.places["assets"]

    def step(tool: str, **arguments: Any) -> Step:
        return {"name": tool, "tool": tool, "with": arguments}

    plan = several.world.run(
        step("file.write", path="a/b.txt", content="one\n"),
        step("file.edit", path="notes.txt", old="two", new="three"),
        step("file.move", path="logo.svg", to="img/logo.svg"),
        step("file.delete", path="img/one.png"),
        step("file.read", path="notes.txt"),
        step("file.list", recursive=True),
        step("file.search", pattern="three"),
        resources={"assets": {"type": "fs-directory", "path": str(place)}},
    )
    several.apply(plan).ok()
    found = {path: entry[2] for path, entry in tree_of(place).items() if entry[0] == "file"}
    assert found.pop(b"same")
    assert found == {
        b"a/b.txt": b"one\n",
        b"notes.txt": b"one\nthree\n",
        b"img/logo.svg": b"<svg/>\n",
    }


def _paths(answer: Answer) -> list[str]:
    return [file["path"] for file in answer.data["files"]]
