"""Which sandboxes that no plan knows any more hold work that is nowhere else."""

import shutil
from pathlib import Path

import pytest
from git_world import Project, World, world
from test_git_submodules import with_submodules

from cleveragents.infrastructure.sandbox.leftovers import SandboxLeftovers

__all__ = ["world"]


def _holds_work(world: World, sandbox: Path) -> bool:
    """As it is judged once nobody knows of it."""
    left = SandboxLeftovers(world.adapters.bench)
    (found,) = [each for each in left.found([]) if Path(each.path) == sandbox]
    (judged,) = left.judged([found])
    return bool(judged.precious)


def test_what_is_a_link_or_empty_holds_nothing(world: World) -> None:
    resource, _ = world.sandbox(world.project())
    sandbox = Path(resource.sandbox_path)
    assert not _holds_work(world, sandbox)
    shutil.rmtree(sandbox)
    sandbox.mkdir()
    assert not _holds_work(world, sandbox)
    sandbox.rmdir()
    sandbox.symlink_to(world.root)
    assert not _holds_work(world, sandbox)


def test_work_whose_project_is_gone_may_be_the_only_copy(world: World) -> None:
    project = world.project()
    resource, _ = world.sandbox(project)
    shutil.rmtree(project.git_dir)
    assert _holds_work(world, Path(resource.sandbox_path))


@pytest.mark.parametrize("how", ["commit", "new"])
def test_work_inside_of_a_submodule_is_work(world: World, how: str) -> None:
    project, _, _ = with_submodules(world)
    resource, sandbox = world.sandbox(project)
    assert not _holds_work(world, Path(resource.sandbox_path))
    there = Project(sandbox.path / "deps/lib")
    if how == "commit":
        there.commit("inside", a__py="changed\n")
        there.git("checkout", "-q", "HEAD^")
        there.git("branch", "mine", "HEAD@{1}")
    else:
        (there.git_dir / "objects/info/alternates").unlink()
    assert _holds_work(world, Path(resource.sandbox_path))


def test_a_file_among_the_plans_is_none_of_them(world: World) -> None:
    resource, _ = world.sandbox(world.project())
    (world.sandboxes / "note").write_text("mine\n")
    (world.sandboxes / "no plan").mkdir()
    (world.sandboxes / "no plan/code").mkdir()
    found = SandboxLeftovers(world.adapters.bench).found([])
    assert {each.path for each in found} == {resource.sandbox_path}
