"""Work inside of submodules: brought into the project whole, or refused with the sandbox kept."""

import pytest
from tests.support.submodules import ALLOW, COMMIT_DEEP, COMMIT_INSIDE, WithSubmodules
from tests.support.world import PlanHandle, World, action, shell


@pytest.fixture
def project(world: World) -> WithSubmodules:
    return WithSubmodules(world)


def refused(project: WithSubmodules, plan: PlanHandle, *names: str) -> None:
    """Nothing of the user's has changed, and the work is still there."""
    before = project.state()
    answer = plan("apply", "--yes")
    assert answer.code == 1, answer
    assert answer.error["code"] == "apply-refused"
    assert all(name in answer.error["message"] for name in names), answer.error
    assert project.state() == before
    assert plan.sandbox.is_dir()
    assert plan.status["state"] == "constrained"


WORK = {
    "committed": COMMIT_INSIDE,
    "committed in the project too": f"{COMMIT_INSIDE}; cd ../..; git commit -qam moved",
    "committed deep inside": COMMIT_DEEP,
    "committed deep inside only": "cd deps/lib/inner; echo x > inner.txt; git commit -qam x",
    "edited": "echo edited > deps/lib/lib.txt",
    "untracked": "echo untracked > deps/lib/untracked",
    "untracked deep inside": "echo untracked > deps/lib/inner/untracked",
}


def test_a_step_finds_the_submodules_of_the_project(project: WithSubmodules) -> None:
    before = project.state()
    plan = project.world.run(shell("cat deps/lib/lib.txt deps/lib/inner/inner.txt > both"))
    assert (plan.sandbox / "both").read_text() == "one\none\n"
    assert plan("diff").data["files"] == [{"path": "both", "change": "+2 -0", "status": "added"}]
    plan("apply", "--yes").ok()
    assert project.project.read("both") == "one\none\n"
    assert {**before, "project": None} == {**project.state(), "project": None}


def test_a_submodule_that_the_project_has_not_checked_out_is_told(project: WithSubmodules) -> None:
    project.project.git("submodule", "--quiet", "deinit", "--all")
    path = project.world.write_action(action(shell("ls -A deps/lib > seen")))
    used = project.world.agents("plan", "use", path).ok()
    assert any("deps/lib is not checked out" in line for line in used.envelope["messages"])


@pytest.mark.parametrize("work", WORK.values(), ids=list(WORK))
def test_work_inside_of_a_submodule_is_not_lost(project: WithSubmodules, work: str) -> None:
    plan = project.world.run(shell(f"echo top > top.txt; {work}"))
    refused(project, plan, "deps/lib")


def test_an_added_submodule_is_not_half_applied(project: WithSubmodules) -> None:
    command = f"git {ALLOW} submodule --quiet add {project.innermost.path} more"
    refused(project, project.world.run(shell(command)), "more")


def test_a_repository_made_in_a_folder_is_not_left_out(project: WithSubmodules) -> None:
    refused(project, project.world.run(shell(f"git clone -q {project.library.path} more")), "more")
