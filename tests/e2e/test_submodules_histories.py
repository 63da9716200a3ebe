"""Submodules through rollbacks, gone repositories, moved projects and child plans."""

import pytest
from tests.support.children import child, spawn
from tests.support.submodules import COMMIT_INSIDE, INNER, LIB, WithSubmodules, git_in
from tests.support.world import PlanHandle, World, shell

SECOND = "cd deps/lib && echo three > lib.txt && git commit -qam second"
FORGET = (
    "cd deps/lib && git checkout -q --detach HEAD~1 && git reflog expire --expire=now --all"
    " && git gc -q --prune=now"
)


@pytest.fixture
def project(world: World, submodules: WithSubmodules) -> WithSubmodules:
    return WithSubmodules(world, submodules)


def inside(plan: PlanHandle, path: str = LIB) -> tuple[str, str, str]:
    place = plan.sandbox / path
    git_in(place, "fsck", "--connectivity-only")
    log = git_in(place, "log", "--format=%s", "-1")
    return log, (place / "lib.txt").read_text(), git_in(place, "status", "--porcelain")


def after(plan: PlanHandle, step: int) -> str:
    return [g for g in plan.groups if g.step_index == step and "after" in g.label][-1].group_id


def test_a_rollback_takes_commits_inside_back_and_can_be_undone(project: WithSubmodules) -> None:
    plan = project.world.run(shell(COMMIT_INSIDE, "one"), shell(SECOND, "two"))
    assert inside(plan) == ("second", "three\n", "")
    plan.rollback(after(plan, 0)).ok()
    assert inside(plan) == ("inside", "two\n", "")
    plan("execute").ok()
    plan("apply", "--yes").ok()
    assert project.lib.git("log", "--format=%s", "-2") == "second\ninside"
    project.whole()


GONE = {
    "forgotten": FORGET,
    "removed": "rm -rf ../code.git/modules deps",
    "the whole repository": "rm -rf ../code.git/*",
    "replaced": "rm -rf deps/lib; git init -q deps/lib",
}


@pytest.mark.parametrize("command", GONE.values(), ids=list(GONE))
def test_commits_inside_survive_what_a_step_does_to_them(
    project: WithSubmodules, command: str
) -> None:
    deep = f"{COMMIT_INSIDE}; cd inner; echo 2 > inner.txt; git commit -qam deep"
    plan = project.world.run(shell(deep, "one"), shell(command, "two"))
    plan.rollback(after(plan, 0)).ok()
    assert inside(plan) == ("inside", "two\n", "M inner")
    assert git_in(plan.sandbox / INNER, "log", "--format=%s", "-1") == "deep"
    project.world.agents("store", "verify").ok()


def test_a_project_that_was_moved_takes_its_submodules_along(project: WithSubmodules) -> None:
    plan = project.world.run(shell(COMMIT_INSIDE, "one"))
    moved = project.world.top / "moved"
    project.project.path.rename(moved)
    agents = project.world.agents.at(moved)
    plan = PlanHandle(agents, plan.id)
    agents("doctor", "--fix", "--yes").ok()
    assert inside(plan) == ("inside", "two\n", "")
    plan("apply", "--yes").ok()
    assert git_in(moved / LIB, "log", "--format=%s", "-1") == "inside"


# --- child plans ----------------------------------------------------------------------------------


def test_a_commit_of_a_child_inside_of_a_submodule_arrives(project: WithSubmodules) -> None:
    plan = project.world.use(
        spawn(child("a", COMMIT_INSIDE), child("b", "echo b > b.txt")), shell("true")
    )
    plan.execute().ok()
    assert inside(plan) == ("inside", "two\n", "")
    plan("apply", "--yes").ok()
    assert project.link() == project.lib.head
    assert project.lib.git("log", "--format=%s", "-1") == "inside"
    assert project.project.git("status", "--porcelain", "--ignore-submodules=none") == ""
    project.whole()


def test_two_children_that_commit_in_one_submodule_are_a_conflict(project: WithSubmodules) -> None:
    other = "cd deps/lib && echo other > other.txt && git add -A && git commit -qm other"
    plan = project.world.use(spawn(child("a", COMMIT_INSIDE), child("b", other)))
    answer = plan.execute()
    assert answer.code == 1
    conflicts = [c for c in plan.status["children"] if c["outcome"] == "conflict"]
    assert [c["name"] for c in conflicts] == ["b"]
    assert "deps/lib" in str(plan.status["children"])
    assert inside(plan) == ("inside", "two\n", "")

    plan("resume", "--theirs").ok()
    (b,) = [c for c in plan.status["children"] if c["name"] == "b"]
    assert (b["outcome"], [lost["path"] for lost in b["overwritten"]]) == ("merged", ["deps/lib"])
    assert inside(plan)[0] == "other"


def test_the_parent_can_be_taken_back_to_before_the_commit_of_a_child(
    project: WithSubmodules,
) -> None:
    plan = project.world.use(shell("true", "first"), spawn(child("a", COMMIT_INSIDE)))
    plan.execute().ok()
    plan.rollback(after(plan, 0)).ok()
    assert inside(plan) == ("with inner", "one\n", "")
    plan.execute().ok()
    assert inside(plan) == ("inside", "two\n", "")
