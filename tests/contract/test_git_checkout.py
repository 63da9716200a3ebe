"""Before a git sandbox: git itself, the user's checkout, and which work comes along."""

import os
import subprocess
from pathlib import Path

import pytest
from git_world import PLAN, Project, World, changed, world

from cleveragents.domain.errors import (
    GitUnavailableError,
    RepositoryNotTrustedError,
    ResourceError,
    SandboxError,
)
from cleveragents.infrastructure.sandbox.git.command import Git, GitError

__all__ = ["world"]


def _refused(world: World, path: Path) -> ResourceError:
    with pytest.raises(ResourceError) as caught:
        world.registry.inspect(world.spec(path), PLAN, include_uncommitted=False)
    assert caught.value.hint
    return caught.value


# --- git ----------------------------------------------------------------------------------------


def test_a_failing_command_raises_with_what_git_said(world: World) -> None:
    project = world.project()
    with pytest.raises(GitError) as caught:
        Git(str(project.path)).run("rev-parse", "--verify", "nonsense")
    assert "rev-parse" in caught.value.message
    assert "Needed a single revision" in caught.value.message
    assert isinstance(caught.value, SandboxError)
    assert not Git(str(project.path)).succeeds("rev-parse", "--verify", "nonsense")


def test_input_environment_and_bytes_that_are_not_utf8_go_through(world: World) -> None:
    git = Git(str(world.project().path))
    blob = git.run("hash-object", "-w", "--stdin", input=b"\xff\n").stdout.decode().strip()
    assert git.text("cat-file", "blob", blob) == "\udcff"
    assert (
        git.with_env({"GIT_AUTHOR_NAME": "N", "GIT_AUTHOR_EMAIL": "e"})
        .text("var", "GIT_AUTHOR_IDENT")
        .startswith("N <e>")
    )


def test_without_git_the_error_says_so(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    project = world.project()
    monkeypatch.setenv("PATH", str(world.root))
    with pytest.raises(GitUnavailableError):
        Git(str(project.path)).run("status")


@pytest.mark.parametrize("says", ["git version 2.37.9", "git version 1.9", "something else"])
def test_a_git_that_is_too_old_is_refused(
    world: World, monkeypatch: pytest.MonkeyPatch, says: str
) -> None:
    project = world.project()
    old = world.root / "git"
    old.write_text(f"#!/bin/sh\necho {says}\n")
    old.chmod(0o755)
    monkeypatch.setenv("PATH", str(world.root))
    with pytest.raises(GitUnavailableError):
        Git(str(project.path)).run("status")


def test_the_repository_of_somebody_else_comes_with_the_way_to_trust_it(world: World) -> None:
    project = world.project()
    if os.geteuid() != 0:
        pytest.skip("only root can give a folder away")
    for path in (project.path, project.path / ".git"):
        os.chown(path, 12345, 12345)
    with pytest.raises(RepositoryNotTrustedError) as refused:
        world.registry.inspect(world.spec(project.path), PLAN, include_uncommitted=False)
    assert "dubious ownership" in refused.value.message
    assert f"safe.directory {project.path}" in refused.value.hint


# --- inspect ------------------------------------------------------------------------------------


def test_what_is_not_the_top_of_a_checkout_is_refused_with_the_next_thing_to_type(
    world: World,
) -> None:
    project = world.project()
    project.write("sub/file", "x")
    plain = world.root / "plain"
    plain.mkdir()
    empty = Project(world.root / "empty")
    empty.path.mkdir()
    empty.git("init", "-q")
    bare = world.root / "bare.git"
    subprocess.run(["git", "init", "-q", "--bare", str(bare)], check=True)
    assert "does not exist" in _refused(world, world.root / "nowhere").message
    assert "not a folder" in _refused(world, project.path / "a.py").message
    assert "git init" in _refused(world, plain).hint
    assert "bare" in _refused(world, bare).message
    assert "git commit" in _refused(world, empty.path).hint
    assert _refused(world, project.path / "sub").hint == f"use path {project.path}"
    for inside in (".git", ".git/refs"):
        assert _refused(world, project.path / inside).hint == f"use path {project.path}"
    assert project.our_refs() == []


def test_a_folder_that_may_not_be_read_is_refused(world: World) -> None:
    project = world.project()
    if os.geteuid() == 0:
        pytest.skip("root may read everything")
    project.path.chmod(0)
    try:
        assert "cannot be read" in _refused(world, project.path).message
    finally:
        project.path.chmod(0o755)


def test_the_base_is_head_and_outlives_a_rewound_branch_and_gc(world: World) -> None:
    project = world.project()
    project.commit("second", c="c\n")
    found = world.inspected(project)
    assert found.base == project.head
    assert found.details["included_uncommitted"] is False
    assert found.details["git_dir"] == str(project.path / ".git")
    project.git("reset", "-q", "--hard", "HEAD~1")
    project.git("reflog", "expire", "--expire=now", "--all")
    project.git("gc", "-q", "--prune=now")
    assert project.git("cat-file", "-t", found.base) == "commit"


def test_a_link_to_a_repository_stands_for_it(world: World) -> None:
    project = world.project()
    (world.root / "link").symlink_to(project.path)
    found = world.inspected(Project(world.root / "link"))
    assert found.location == str(project.path)


def test_uncommitted_work_is_named_when_it_stays_out(world: World) -> None:
    project = world.project()
    spec = world.spec(project.path)
    project.write("a.py", "changed\n")
    one = world.registry.inspect(spec, PLAN, include_uncommitted=False)
    assert one.notices == (
        "1 file with uncommitted work is not part of this plan (a.py): "
        "add --include-uncommitted to take it along",
    )
    for number in range(4):
        project.write(f"new{number}.py", "")
    many = world.registry.inspect(spec, PLAN, include_uncommitted=False)
    assert many.notices == (
        "5 files with uncommitted work are not part of this plan (a.py, new0.py, new1.py, …): "
        "add --include-uncommitted to take them along",
    )
    assert many.base == project.head


def test_a_detached_head_is_fine_with_a_notice(world: World) -> None:
    project = world.project()
    project.git("checkout", "-q", "--detach")
    found = world.registry.inspect(world.spec(project.path), PLAN, include_uncommitted=False)
    assert "--branch" in found.notices[0]


def test_uncommitted_work_can_be_taken_along(world: World) -> None:
    project = world.project(a__py="a\n", b__py="b\n", gone="g\n", __gitignore="*.log\n")
    project.write("a.py", "staged\n")
    project.git("add", "a.py")
    project.write("a.py", "not staged\n")
    project.write("new.py", "new\n")
    project.write("noise.log", "log\n")
    (project.path / "gone").unlink()
    before = project.everything()
    resource, sandbox = world.sandbox(project, uncommitted=True)
    assert project.everything() == before
    assert resource.base != project.head
    assert resource.details["included_uncommitted"] is True
    assert sandbox.read("a.py") == "not staged\n"
    assert sandbox.read("new.py") == "new\n"
    assert not (sandbox.path / "gone").exists()
    assert not (sandbox.path / "noise.log").exists()
    who = project.git("log", "-1", "--format=%an <%ae> %cn <%ce> %P", resource.base)
    us = "CleverAgents <noreply@localhost>"
    assert who == f"{us} {us} {project.head}"
    assert world.registry.diff(resource).files == ()


def test_taking_nothing_along_leaves_head_as_the_base(world: World) -> None:
    project = world.project()
    found = world.inspected(project, uncommitted=True)
    assert found.base == project.head
    assert found.details["included_uncommitted"] is False


def test_an_edit_of_the_same_size_in_the_same_moment_is_taken_along(world: World) -> None:
    project = world.project(a__py="one\n")
    found = (project.path / "a.py").stat()
    project.write("a.py", "two\n")
    os.utime(project.path / "a.py", ns=(found.st_atime_ns, found.st_mtime_ns))
    _, sandbox = world.sandbox(project, uncommitted=True)
    assert sandbox.read("a.py") == "two\n"


def test_nested_repositories_do_not_stop_uncommitted_work_from_coming(world: World) -> None:
    project = world.project()
    for name in ("unborn", "born"):
        nested = Project(project.path / name)
        nested.path.mkdir()
        nested.git("init", "-q")
        nested.write("f", "f")
    nested.commit()
    project.write("c.py", "c\n")
    found = world.registry.inspect(world.spec(project.path), PLAN, include_uncommitted=True)
    files = project.git("ls-tree", "-r", "--name-only", found.base).split()
    assert files == ["a.py", "b.py", "c.py"]
    assert any("born/" in notice for notice in found.notices)


def test_a_lock_on_the_users_index_does_not_matter(world: World) -> None:
    project = world.project()
    project.write("a.py", "changed\n")
    (project.path / ".git/index.lock").write_text("")
    resource, sandbox = world.sandbox(project, uncommitted=True)
    assert sandbox.read("a.py") == "changed\n"
    sandbox.write("b.py", "plan\n")
    assert changed(world.registry.diff(resource)) == {"b.py": "modified"}


def test_a_checkout_without_an_index_file_can_be_used(world: World) -> None:
    project = world.project()
    (project.path / ".git/index").unlink()
    found = world.inspected(project, uncommitted=True)
    assert found.base == project.head
