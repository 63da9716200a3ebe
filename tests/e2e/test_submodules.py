"""Work inside of submodules: brought into the project whole, or refused with the sandbox kept."""

import pytest
from tests.support.submodules import ALLOW, COMMIT_DEEP, COMMIT_INSIDE, WithSubmodules
from tests.support.world import PlanHandle, World, shell

POPULATE = f"git {ALLOW} submodule --quiet update --init --recursive"


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


@pytest.mark.parametrize("work", WORK.values(), ids=list(WORK))
def test_work_inside_of_a_submodule_is_not_lost(project: WithSubmodules, work: str) -> None:
    plan = project.world.run(shell(f"{POPULATE} && echo top > top.txt; {work}"))
    refused(project, plan, "deps/lib")


def test_an_added_submodule_is_not_half_applied(project: WithSubmodules) -> None:
    command = f"git {ALLOW} submodule --quiet add {project.innermost.path} more"
    refused(project, project.world.run(shell(command)), "more")


def test_a_repository_made_in_a_folder_is_not_left_out(project: WithSubmodules) -> None:
    refused(project, project.world.run(shell(f"git clone -q {project.library.path} more")), "more")
