"""Submodules that a plan adds, moves or removes: with their repositories, or not at all."""

from pathlib import Path

import pytest
from tests.support.submodules import ALLOW, INNER, LIB, WithSubmodules, git_in
from tests.support.world import PlanHandle, World, shell


@pytest.fixture
def project(world: World, submodules: WithSubmodules) -> WithSubmodules:
    return WithSubmodules(world, submodules)


def add(project: WithSubmodules, more: str = "") -> str:
    return f"git {ALLOW} submodule --quiet add {project.innermost.path} more/it{more}"


INSIDE = " && cd more/it && echo two > inner.txt && git commit -qam inside"


def filled(project: WithSubmodules, *options: str) -> None:
    """From what is in the project alone."""
    project.project.git("submodule", "--quiet", "update", "--init", *options)
    status = project.project.git("status", "--porcelain", "--ignore-submodules=none")
    assert status == "", status


def refused(project: WithSubmodules, plan: PlanHandle, *options: str) -> dict[str, str]:
    before = project.state()
    answer = plan("apply", "--yes", *options)
    assert answer.code == 1, answer
    assert project.state() == before
    assert project.traces() == []
    assert plan.sandbox.is_dir()
    return answer.error


def test_an_added_submodule_comes_with_its_repository(project: WithSubmodules) -> None:
    plan = project.world.run(shell(add(project, INSIDE)))
    made = git_in(plan.sandbox / "more/it", "rev-parse", "HEAD")
    answer = plan("apply", "--yes").ok()
    assert {file["path"] for file in answer.data["files"]} == {".gitmodules", "more/it"}
    assert "git submodule update --init more/it" in str(answer.envelope["messages"])
    assert project.link("more/it") == made
    assert not plan.sandbox.exists()
    assert project.traces() == []
    assert project.project.git("status", "--porcelain") == ""
    project.innermost.path.rename(project.world.top / "unplugged")
    try:
        filled(project)
    finally:
        (project.world.top / "unplugged").rename(project.innermost.path)
    it = project.project.path / "more/it"
    assert (git_in(it, "rev-parse", "HEAD"), (it / "inner.txt").read_text()) == (made, "two\n")
    assert git_in(it, "remote", "get-url", "origin") == str(project.innermost.path)
    git_in(it, "fsck", "--strict")


def test_a_committed_addition_counts_as_much_as_a_staged_one(project: WithSubmodules) -> None:
    plan = project.world.run(shell(add(project, " && git commit -qm added")))
    plan("apply", "--yes").ok()
    filled(project)


def test_an_added_submodule_comes_with_those_inside_of_it(project: WithSubmodules) -> None:
    command = (
        f"git {ALLOW} submodule --quiet add {project.library.path} more"
        f" && git -C more {ALLOW} submodule --quiet update --init"
        " && cd more/inner && echo 2 > inner.txt && git commit -qam in"
        " && cd .. && git commit -qam out"
    )
    plan = project.world.run(shell(command))
    plan("apply", "--yes").ok()
    filled(project, "--recursive", "more")
    assert (project.project.path / "more/inner/inner.txt").read_text() == "2\n"


def test_a_submodule_added_inside_of_another_comes_along(project: WithSubmodules) -> None:
    command = (
        f"cd deps/lib && git {ALLOW} submodule --quiet add {project.innermost.path} second"
        " && git commit -qm second"
    )
    plan = project.world.run(shell(command))
    plan("apply", "--yes").ok()
    assert project.link() == project.lib.head
    project.lib.git("submodule", "--quiet", "update", "--init", "second")
    assert project.lib.git("status", "--porcelain") == ""


def test_a_shallow_clone_can_be_added(project: WithSubmodules) -> None:
    project.innermost.commit("another")
    command = f"git {ALLOW} submodule --quiet add --depth 1 file://{project.innermost.path} more"
    plan = project.world.run(shell(command))
    plan("apply", "--yes").ok()
    filled(project)


def test_on_a_branch_it_is_added_too(project: WithSubmodules) -> None:
    plan = project.world.run(shell(add(project)))
    plan("apply", "--yes", "--branch", "result").ok()
    assert not (project.project.path / "more").exists()
    project.project.git("checkout", "-q", "result")
    filled(project)


def test_a_moved_submodule_keeps_its_repository(project: WithSubmodules) -> None:
    command = "git mv deps/lib library && cd library && echo 2 > lib.txt && git commit -qam in"
    plan = project.world.run(shell(command))
    made = git_in(plan.sandbox / "library", "rev-parse", "HEAD")
    plan("apply", "--yes").ok()
    assert project.link("library") == made
    assert project.project.git("ls-tree", "HEAD", "deps/") == ""
    assert project.lib.read("lib.txt") == "one\n", "the old folder is the user's"
    assert [path.name for path in (project.project.git_dir / "modules").iterdir()] == ["deps"]
    project.project.git("submodule", "--quiet", "update", "--init", "--recursive", "library")
    assert (project.project.path / "library/lib.txt").read_text() == "2\n"


def test_the_folder_of_a_removed_submodule_stays(project: WithSubmodules) -> None:
    plan = project.world.run(shell("git rm -q deps/lib"))
    error = refused(project, plan, "--no-commit")
    assert "removes the submodule deps/lib, which only a commit can do" in error["message"]
    answer = plan("apply", "--yes").ok()
    assert "deps/lib is removed; its folder stays" in str(answer.envelope["messages"])
    assert project.project.git("ls-tree", "HEAD", "deps/") == ""
    assert project.lib.read("lib.txt") == "one\n"


def test_what_is_not_committed_in_an_added_one_is_refused(project: WithSubmodules) -> None:
    plan = project.world.run(shell(add(project, "; echo x > more/it/untracked")))
    assert "more/it" in refused(project, plan)["message"]


def test_only_a_commit_can_add_a_submodule(project: WithSubmodules) -> None:
    plan = project.world.run(shell(add(project)))
    error = refused(project, plan, "--no-commit")
    assert "which only a commit can hold" in error["message"]
    plan("apply", "--yes").ok()


def test_files_of_the_users_in_its_place_are_a_conflict(project: WithSubmodules) -> None:
    plan = project.world.run(shell(add(project)))
    project.project.write("more/it/mine", "mine\n")
    assert refused(project, plan)["code"] == "apply-conflict"


def test_a_conflict_elsewhere_leaves_no_repository_behind(project: WithSubmodules) -> None:
    plan = project.world.run(shell(add(project, "; echo x > README.md")))
    project.project.write("README.md", "mine\n")
    assert refused(project, plan)["code"] == "apply-conflict"
    assert not (project.project.git_dir / "modules/more").exists()


def test_a_name_that_leads_elsewhere_is_refused(project: WithSubmodules) -> None:
    outside = project.world.beside / "outside"
    name = "../../../" + "../" * 20 + str(outside)
    plan = project.world.run(
        shell(
            f"git clone -q {project.innermost.path} more && "
            f"printf '[submodule \"{name}\"]\\n\\tpath = more\\n\\turl = ./x\\n' >> .gitmodules"
        )
    )
    assert "more" in refused(project, plan)["message"]
    assert not outside.exists()
    assert not list(Path(project.world.beside).iterdir())


def test_an_unused_inner_one_is_no_obstacle(project: WithSubmodules) -> None:
    plan = project.world.run(shell("git submodule --quiet deinit --force deps/lib; echo x > x"))
    assert not (plan.sandbox / INNER).exists()
    plan("apply", "--yes").ok()
    assert project.link(LIB) == project.lib.head
