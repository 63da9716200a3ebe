"""Undo after an apply that changed submodules: they go back with the project, or all is refused."""

import pytest
from tests.support.agents import Answer
from tests.support.submodules import (
    ALLOW,
    COMMIT_DEEP,
    COMMIT_INSIDE,
    LIB,
    WithSubmodules,
    git_in,
)
from tests.support.trees import tree_of
from tests.support.world import World, shell


@pytest.fixture
def project(world: World, submodules: WithSubmodules) -> WithSubmodules:
    return WithSubmodules(world, submodules)


def looks(project: WithSubmodules) -> list[object]:
    """Files everywhere, and where each repository stands."""
    repositories = (project.project, project.lib, project.inner)
    found = [(one.head, one.git("status", "--porcelain")) for one in repositories]
    return [tree_of(project.project.path), *found, project.project.refs()]


def blocked(answer: Answer) -> str:
    assert (answer.code, answer.error["code"]) == (1, "undo-blocked"), answer
    return answer.error["message"]


@pytest.mark.parametrize("command", [COMMIT_INSIDE, COMMIT_DEEP])
@pytest.mark.parametrize("options", [(), ("--no-commit",)])
def test_submodules_go_back_and_come_again(
    project: WithSubmodules, command: str, options: tuple[str, ...]
) -> None:
    agents = project.world.agents
    plan = project.world.run(shell(command), shell("echo top > top.txt"))
    before = looks(project)
    plan("apply", "--yes", *options).ok()
    after = looks(project)
    for _ in range(2):
        agents("undo", "--yes").ok()
        assert looks(project) == before
        agents("redo", "--yes").ok()
        assert looks(project) == after
    project.whole()


def test_work_in_a_submodule_since_is_in_the_way(project: WithSubmodules) -> None:
    plan = project.world.run(shell(COMMIT_INSIDE))
    plan("apply", "--yes").ok()
    (project.lib.path / "lib.txt").write_text("mine\n")
    before = looks(project)
    assert "deps/lib/lib.txt" in blocked(project.world.agents("undo", "--yes"))
    project.lib.git("commit", "-qam", "mine")
    assert f"the submodule {LIB}" in blocked(project.world.agents("undo", "--yes"))
    project.lib.git("reset", "-q", "--soft", "HEAD^")
    project.lib.git("reset", "-q")
    assert looks(project) == before


def test_a_commit_with_submodules_that_others_have_is_refused(project: WithSubmodules) -> None:
    plan = project.world.run(shell(COMMIT_INSIDE))
    plan("apply", "--yes").ok()
    project.project.git("tag", "release")
    before = looks(project)
    assert f"the submodule {LIB}" in blocked(project.world.agents("undo", "--yes"))
    assert looks(project) == before


def test_a_new_submodule_goes_with_its_repository_and_comes_again(
    project: WithSubmodules,
) -> None:
    agents, made = project.world.agents, project.project.git_dir / "modules/more/it"
    add = f"git {ALLOW} submodule --quiet add {project.innermost.path} more/it"
    plan = project.world.run(shell(add))
    before = looks(project)
    plan("apply", "--yes").ok()
    after = looks(project)
    for _ in range(2):
        agents("undo", "--yes").ok()
        assert looks(project) == before
        assert not made.exists()
        agents("redo", "--yes").ok()
        assert looks(project) == after
        assert made.is_dir()
    project.project.git(*ALLOW.split(), "submodule", "--quiet", "update", "--init", "more/it")
    assert "the submodule more/it" in blocked(agents("undo", "--yes"))
    git_in(project.project.path / "more/it", "fsck", "--strict")
