"""Applying to git: uncommitted work of the user is kept, and what stands in the way refused."""

import os
import shutil
from collections.abc import Callable

import pytest
from git_world import OTHER_PLAN, Project, World, changed, untouched_after, world
from msgspec.structs import replace

from cleveragents.domain.errors import (
    ApplyConflictError,
    ApplyRefusedError,
    ProjectMissingError,
    SandboxMissingError,
)

__all__ = ["world"]


# --- uncommitted work of the user ---------------------------------------------------------------


def test_uncommitted_work_elsewhere_stays_to_the_byte(world: World) -> None:
    project = world.project(a__py="a\n", staged="s\n", edited="e\n", gone="g\n")
    resource, sandbox = world.sandbox(project)
    sandbox.write("a.py", "plan\n")
    sandbox.write("added", "plan\n")
    project.write("staged", "staged\n")
    project.git("add", "staged")
    project.write("staged", "and edited\n")
    project.write("edited", "edited\n")
    project.write("untracked", "u\n")
    (project.path / "gone").unlink()
    project.git("rm", "-q", "--cached", "gone")
    status, staged = project.status(), project.git("diff", "--cached")
    mine = {name: project.read(name) for name in ("staged", "edited", "untracked")}
    times = {name: (project.path / name).stat().st_mtime_ns for name in mine}
    world.apply(resource)
    assert project.status() == status
    assert project.git("diff", "--cached") == staged
    assert {name: project.read(name) for name in mine} == mine
    assert {name: (project.path / name).stat().st_mtime_ns for name in mine} == times
    assert project.git("show", "--stat", "--format=", "--name-only").split() == ["a.py", "added"]


def _edit(project: Project) -> None:
    project.write("a.py", "mine\n")


def _stage(project: Project) -> None:
    project.write("a.py", "mine\n")
    project.git("add", "a.py")
    project.write("a.py", "a\n")


def _delete(project: Project) -> None:
    (project.path / "a.py").unlink()


def _hide(project: Project) -> None:
    project.git("update-index", "--assume-unchanged", "a.py")
    project.write("a.py", "mine\n")


def _same_size_and_time(project: Project) -> None:
    project.git("config", "core.trustctime", "false")
    project.git("config", "core.checkStat", "minimal")
    path = project.path / "a.py"
    os.utime(path, (10**9, 10**9))
    project.git("update-index", "--refresh")
    path.write_text("m\n")
    os.utime(path, (10**9, 10**9))
    assert project.status() == "", "git itself does not see it"


def _folder(project: Project) -> None:
    (project.path / "a.py").unlink()
    project.write("a.py/inside", "mine\n")


def _link(project: Project) -> None:
    (project.path / "a.py").unlink()
    (project.path / "a.py").symlink_to("/etc/passwd")


@pytest.mark.parametrize("commit", [True, False])
@pytest.mark.parametrize(
    "work", [_edit, _stage, _delete, _hide, _same_size_and_time, _folder, _link]
)
def test_uncommitted_work_in_a_file_of_the_plan_is_a_conflict(
    world: World, work: Callable[[Project], None], *, commit: bool
) -> None:
    project = world.project(a__py="a\n", b__py="b\n")
    resource, sandbox = world.sandbox(project)
    sandbox.write("a.py", "plan\n")
    sandbox.write("b.py", "plan\n")
    work(project)
    error = untouched_after(world, project, resource, ApplyConflictError, commit=commit)
    assert isinstance(error, ApplyConflictError)
    assert error.files == ("a.py",)


def _untracked(project: Project) -> str:
    project.write("new.py", "mine\n")
    return "new.py"


def _parent_is_a_file(project: Project) -> str:
    project.write("dir", "mine\n")
    return "dir/new.py"


def _parent_is_a_link(project: Project) -> str:
    (project.path / "dir").symlink_to("/tmp")
    return "dir/new.py"


def _folder_in_the_way(project: Project) -> str:
    project.write("new.py/mine", "mine\n")
    return "new.py"


def _pipe(project: Project) -> str:
    os.mkfifo(project.path / "new.py")
    return "new.py"


@pytest.mark.parametrize("commit", [True, False])
@pytest.mark.parametrize(
    "work",
    [_untracked, _parent_is_a_file, _parent_is_a_link, _folder_in_the_way, _pipe],
)
def test_an_untracked_file_in_the_way_is_a_conflict(
    world: World, work: Callable[[Project], str], *, commit: bool
) -> None:
    project = world.project()
    resource, sandbox = world.sandbox(project)
    sandbox.write("new.py", "plan\n")
    sandbox.write("dir/new.py", "plan\n")
    in_the_way = work(project)
    error = untouched_after(world, project, resource, ApplyConflictError, commit=commit)
    assert isinstance(error, ApplyConflictError)
    assert any(name.startswith(in_the_way.split("/")[0]) for name in error.files)


def test_an_ignored_file_of_the_user_is_never_overwritten(world: World) -> None:
    project = world.project(__gitignore="secret\n")
    resource, sandbox = world.sandbox(project)
    sandbox.write(".gitignore", "nothing\n")
    sandbox.write("secret", "plan\n")
    project.write("secret", "mine\n")
    error = untouched_after(world, project, resource, ApplyConflictError)
    assert isinstance(error, ApplyConflictError)
    assert error.files == ("secret",)


def test_work_taken_along_may_be_built_upon_without_a_commit(world: World) -> None:
    project = world.project(a__py="a\n", b__py="b\n")
    project.write("a.py", "mine\n")
    project.write("new.py", "mine too\n")
    resource, sandbox = world.sandbox(project, uncommitted=True)
    sandbox.write("a.py", "mine\nand the plan's\n")
    sandbox.write("new.py", "mine too\nand the plan's\n")
    untouched_after(world, project, resource, ApplyConflictError)
    ref = world.apply(resource, commit=False)
    assert project.read("a.py") == "mine\nand the plan's\n"
    assert project.read("new.py") == "mine too\nand the plan's\n"
    assert changed(world.applied_diff(resource, ref)) == {
        "a.py": "modified",
        "new.py": "modified",
    }


def test_work_taken_along_and_changed_since_is_a_conflict(world: World) -> None:
    project = world.project(a__py="1\n2\n3\n4\n5\n6\n7\n8\n")
    project.write("a.py", "1\n2\n3\n4\n5\n6\n7\nmine\n")
    resource, sandbox = world.sandbox(project, uncommitted=True)
    sandbox.write("a.py", "plan\n2\n3\n4\n5\n6\n7\nmine\n")
    project.write("a.py", "1\n2\n3\n4\n5\n6\n7\nmine, later\n")
    untouched_after(world, project, resource, ApplyConflictError, commit=False)


def test_work_taken_along_and_committed_since_merges(world: World) -> None:
    project = world.project(a__py="a\n")
    project.write("a.py", "mine\n")
    resource, sandbox = world.sandbox(project, uncommitted=True)
    sandbox.write("a.py", "mine\nplan\n")
    project.commit("my work")
    world.apply(resource)
    assert project.git("show", "--format=", "--numstat") == "1\t0\ta.py"
    assert project.status() == ""


# --- refusals -----------------------------------------------------------------------------------


def test_a_detached_head_needs_a_branch(world: World) -> None:
    project = world.project()
    resource, sandbox = world.sandbox(project)
    sandbox.write("a.py", "plan\n")
    project.git("checkout", "-q", "--detach")
    error = untouched_after(world, project, resource, ApplyRefusedError)
    assert "--branch" in error.hint
    world.apply(resource, branch="result")
    world.apply(resource, commit=False)
    assert project.read("a.py") == "plan\n"


def test_without_an_identity_a_commit_is_refused(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = world.project()
    resource, sandbox = world.sandbox(project)
    sandbox.write("a.py", "plan\n")
    (world.home / ".gitconfig").write_text("")
    monkeypatch.delenv("EMAIL", raising=False)
    for options in ({}, {"branch": "result"}):
        error = untouched_after(world, project, resource, ApplyRefusedError, **options)
        assert "user.email" in error.hint
        assert "--no-commit" in error.hint
    world.apply(resource, commit=False)
    assert project.read("a.py") == "plan\n"


@pytest.mark.parametrize("what", ["merge", "rebase", "cherry-pick", "revert", "bisect"])
def test_nothing_is_applied_in_the_middle_of_something(world: World, what: str) -> None:
    project = world.project()
    resource, sandbox = world.sandbox(project)
    sandbox.write("b.py", "plan\n")
    project.git("checkout", "-q", "-b", "other")
    other = project.commit("other", a__py="other\n")
    project.git("checkout", "-q", "main")
    project.commit("main", a__py="main\n")
    if what == "bisect":
        project.git("bisect", "start")
    elif what == "revert":
        project.git("revert", "--no-edit", other, check=False)
    else:
        project.git(what, other, check=False)
    for commit in (True, False):
        error = untouched_after(world, project, resource, ApplyRefusedError, commit=commit)
        assert what in error.message
    world.apply(resource, branch="result")


def test_a_running_git_command_is_waited_for(world: World) -> None:
    project = world.project()
    resource, sandbox = world.sandbox(project)
    sandbox.write("a.py", "plan\n")
    prepared = world.prepare(resource)
    lock = project.git_dir / "index.lock"
    lock.write_text("")
    error = untouched_after(world, project, resource, ApplyRefusedError)
    assert str(lock) in error.hint
    before = project.everything()
    with pytest.raises(ApplyRefusedError):
        world.carry_out(resource, prepared)
    assert project.everything() == before
    lock.write_text(f"cleveragents apply of plan {OTHER_PLAN}")
    error = untouched_after(world, project, resource, ApplyRefusedError)
    assert error.hint == f"agents plan apply {OTHER_PLAN}"


def test_a_project_or_sandbox_that_is_gone_is_refused(world: World) -> None:
    project = world.project()
    resource, sandbox = world.sandbox(project)
    sandbox.write("a.py", "plan\n")
    with pytest.raises(ProjectMissingError):
        world.prepare(replace(resource, location=str(world.root / "nowhere")))
    project.git("checkout", "-q", "--orphan", "unborn")
    with pytest.raises(ApplyRefusedError):
        world.prepare(resource)
    shutil.rmtree(sandbox.path)
    with pytest.raises(SandboxMissingError):
        world.prepare(resource)
