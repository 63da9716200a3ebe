"""Programs of others that work on a repository do so in the sandbox of a plan, as steps of it."""

import os
from pathlib import Path

import pytest
from tests.support.neighbours import places, program
from tests.support.world import PlanHandle, World, action, shell

HOOKS = "repos: [{repo: local, hooks: [{id: x, name: x, entry: grep -q new, language: system}]}]"
SIMPLE_GIT = """
import { simpleGit } from "simple-git"
const git = simpleGit(process.cwd())
const status = await git.status()
await git.add("new.txt")
await git.commit("by simple-git")
console.log(status.current, status.not_added, (await git.tags()).all, (await git.log()).total)
"""
# What each is started with, what it says, and the last commit then.
STEPS = {
    "gh": (
        "git remote add origin https://github.com/o/r.git;"
        " GH_TOKEN=none gh repo set-default --view 2>&1",
        "No default remote repository has been set",  # without a remote it says that there is none
        "first",
    ),
    "git-cliff": ("git-cliff --offline --unreleased 2>&1", "## [unreleased]", "first"),
    "pre-commit": (
        f'echo "{HOOKS}" > .pre-commit-config.yaml; git add -A; pre-commit install;'
        " git commit -m 'by its hook' 2>&1",
        "Passed",
        "by its hook",
    ),
}


def run(world: World, command: str) -> PlanHandle:
    world.project.write("file.txt", "first\n")
    world.project.commit("first")
    world.project.git("tag", "-a", "-m", "about it", "v1.0.0")
    world.project.write("file.txt", "second\n")
    world.project.commit("feat: first")
    path = os.pathsep.join([*map(str, places()), os.environ["PATH"]])
    agents = world.agents.having(PATH=path)
    steps = (shell("echo new > new.txt", "edit"), shell(command, "use it"))
    used = agents("plan", "use", world.write_action(action(*steps))).ok().data["plan_id"]
    plan = PlanHandle(agents, used)
    plan.execute().ok()
    return plan


def said(plan: PlanHandle) -> str:
    return plan("artifacts").ok().data["artifacts"][-1]["output"]


@pytest.mark.parametrize("name", STEPS)
def test_it_reads_the_sandbox_as_any_repository(world: World, name: str) -> None:
    program(name)
    command, words, subject = STEPS[name]
    plan = run(world, command)
    assert words in said(plan)
    log = world.project.git("-C", str(plan.sandbox), "log", "-1", "--format=%s")
    assert log in (subject, f"feat: {subject}")


def test_what_editors_use_of_node(world: World) -> None:
    """simple-git, as plugins of editors have it, and with it git of the machine."""
    node = [place for place in places() if (place.parent / "simple-git").is_dir()]
    if not node:
        pytest.skip("simple-git is not installed here; `nox -s neighbours` installs it")
    script = Path(node[0].parent.parent, "use-simple-git.mjs")
    script.write_text(SIMPLE_GIT)
    plan = run(world, f"node {script}")
    branch, *rest = said(plan).split(" ", 1)
    assert branch.startswith("cleveragents/plan-")
    assert "[ 'new.txt' ] [ 'v1.0.0' ]" in rest[0]
    assert world.project.git("-C", str(plan.sandbox), "log", "-1", "--format=%s") == "by simple-git"
