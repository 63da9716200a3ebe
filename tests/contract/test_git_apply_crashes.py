"""Applying to git: what was killed or failed on the way is finished, or put back."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from git_world import PLAN, Project, World, world
from tests.support.kill_points import THOROUGH

from cleveragents.domain.apply import PreparedApply
from cleveragents.domain.errors import ApplyRefusedError
from cleveragents.domain.resource import PlanResource
from cleveragents.infrastructure.sandbox.git import command as git

__all__ = ["world"]


def _ready(world: World, **options) -> tuple[Project, PlanResource, PreparedApply]:
    project = world.project(a__py="a\n", b__py="b\n", gone="g\n", mine="m\n")
    resource, sandbox = world.sandbox(project)
    sandbox.write("a.py", "plan a\n")
    sandbox.write("b.py", "plan b\n")
    sandbox.write("new/file", "new\n")
    (sandbox.path / "gone").unlink()
    project.write("mine", "not committed\n")
    return project, resource, world.prepare(resource, **options)


def _arrived(project: Project) -> bool:
    return (
        project.read("a.py") == "plan a\n"
        and project.read("b.py") == "plan b\n"
        and project.read("new/file") == "new\n"
        and not (project.path / "gone").exists()
        and project.read("mine") == "not committed\n"
    )


def test_repeating_a_finished_apply_changes_nothing(world: World) -> None:
    project, resource, prepared = _ready(world)
    commit = world.carry_out(resource, prepared)
    after = project.everything()
    assert world.carry_out(resource, prepared) == commit
    assert project.everything() == after
    project.commit("work goes on")
    after = project.everything()
    assert world.carry_out(resource, prepared) == commit
    assert project.everything() == after


def test_an_apply_killed_between_files_is_finished(world: World) -> None:
    project, resource, prepared = _ready(world)
    project.write("a.py", "plan a\n")
    (project.path / "gone").unlink()
    (project.git_dir / "index.lock").write_text(f"cleveragents apply of plan {PLAN}")
    commit = world.carry_out(resource, prepared)
    assert _arrived(project)
    assert project.head == commit
    assert project.status() == " M mine"
    assert not (project.git_dir / "index.lock").exists()


def test_an_apply_killed_before_the_branch_moved_is_finished(world: World) -> None:
    project, resource, prepared = _ready(world)
    start = project.head
    commit = world.carry_out(resource, prepared)
    project.git("update-ref", "refs/heads/main", start)
    index = (project.git_dir / "index").read_bytes()
    assert world.carry_out(resource, prepared) == commit
    assert project.head == commit
    assert project.status() == " M mine"
    assert len((project.git_dir / "index").read_bytes()) == len(index)


def test_an_index_that_a_power_cut_has_left_behind_the_branch_catches_up(world: World) -> None:
    project, resource, prepared = _ready(world)
    world.registry.carry_out(resource, prepared)
    index = project.git_dir / "index"
    after, (before,) = index.read_bytes(), project.git_dir.glob("cleveragents-apply-*/index-before")
    index.write_bytes(before.read_bytes())
    assert project.status() != " M mine"
    world.carry_out(resource, prepared)
    assert index.read_bytes() == after
    assert project.status() == " M mine"


def test_an_empty_lock_from_before_the_machine_was_started_is_in_nobodys_way(world: World) -> None:
    project, resource, prepared = _ready(world)
    lock = project.git_dir / "index.lock"
    lock.touch()
    with pytest.raises(ApplyRefusedError):  # a git command of today's may have just made it
        world.carry_out(resource, prepared)
    os.utime(lock, (1, 1))
    world.carry_out(resource, prepared)
    assert _arrived(project)
    assert not lock.exists()


def test_a_lock_left_by_a_killed_apply_goes_when_it_was_done(world: World) -> None:
    project, resource, prepared = _ready(world)
    world.carry_out(resource, prepared)
    (project.git_dir / "index.lock").write_text(f"cleveragents apply of plan {PLAN}")
    world.carry_out(resource, prepared)
    assert not (project.git_dir / "index.lock").exists()


def test_an_apply_without_a_commit_is_finished_too(world: World) -> None:
    project, resource, prepared = _ready(world, commit=False)
    project.write("a.py", "plan a\n")
    (project.path / "gone").unlink()
    ref = world.carry_out(resource, prepared)
    assert ref.startswith("tree:")
    assert _arrived(project)


@pytest.mark.parametrize("commit", [True, False])
def test_a_failure_on_the_way_puts_everything_back(
    world: World, *, commit: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    project, resource, prepared = _ready(world, commit=commit)
    before = project.everything()
    real = os.rename

    def full(source: bytes, target: bytes, **folders: int) -> None:
        if target == b"file":
            raise OSError(28, "No space left on device")
        real(source, target, **folders)

    monkeypatch.setattr(os, "rename", full)
    with pytest.raises(ApplyRefusedError):
        world.carry_out(resource, prepared)
    assert project.everything() == before
    monkeypatch.setattr(os, "rename", real)
    world.carry_out(resource, prepared)
    assert _arrived(project)


def test_a_branch_that_cannot_move_puts_everything_back(world: World) -> None:
    project, resource, prepared = _ready(world)
    before = project.everything()
    lock = project.git_dir / "refs/heads/main.lock"
    lock.write_text("")
    with pytest.raises(ApplyRefusedError):
        world.carry_out(resource, prepared)
    lock.unlink()
    after = project.everything()
    assert after == before
    world.carry_out(resource, prepared)
    assert _arrived(project)
    assert project.status() == " M mine"


@pytest.mark.parametrize("commit", [True, False])
def test_an_apply_killed_at_any_moment_is_finished_by_repeating_it(
    world: World, *, commit: bool
) -> None:
    project, resource, prepared = _ready(world, commit=commit)
    start = project.head
    moment, died = 0, True
    while died:
        moment += min(THOROUGH, 4)
        died = _killed_at(moment, lambda: world.carry_out(resource, prepared))
        ref = world.carry_out(resource, prepared)
        assert _arrived(project), moment
        assert project.head == (ref if commit else start), moment
        assert not commit or project.status() == " M mine", moment
        assert not list(project.git_dir.glob("index.*")), moment
        project.git("reset", "-q", "--hard", start)
        shutil.rmtree(project.path / "new", ignore_errors=True)
        project.write("mine", "not committed\n")
    assert moment > 20


def _killed_at(moment: int, work: Callable[[], object]) -> bool:
    """Run in a child that dies before its n-th change of a file; False if it got to the end."""
    child = os.fork()
    if child == 0:
        left = iter(range(moment - 1))

        def deadly(real: Callable[..., object]) -> Callable[..., object]:
            def call(*args: object, **options: object) -> object:
                if next(left, None) is None:
                    os._exit(9)
                return real(*args, **options)

            return call

        for name in ("replace", "unlink", "mkdir", "rmdir"):
            setattr(Path, name, deadly(getattr(Path, name)))
        for name in ("rename", "unlink", "mkdir", "rmdir", "link"):
            setattr(os, name, deadly(getattr(os, name)))
        for name in ("copy2", "copymode"):
            setattr(shutil, name, deadly(getattr(shutil, name)))
        os.open = deadly(os.open)  # type: ignore[assignment]
        git.Git.run = deadly(git.Git.run)  # type: ignore[method-assign]
        work()
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9


def test_gc_between_prepare_and_carry_out_loses_nothing(world: World) -> None:
    project, resource, prepared = _ready(world)
    project.git("gc", "-q", "--prune=now")
    world.carry_out(resource, prepared)
    assert _arrived(project)
