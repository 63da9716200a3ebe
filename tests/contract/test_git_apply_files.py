"""Applying to git: files of every kind arrive, in checkouts of every kind."""

import os
import shutil
import stat
from pathlib import Path

import pytest
from git_world import Project, World, hook_ran, hostile, world
from tests.support.runners import git_views

from cleveragents.domain.apply import ApplyOptions
from cleveragents.infrastructure.sandbox.git.apply.prepare import GitApply
from cleveragents.infrastructure.sandbox.git.repository.pins import Pins
from cleveragents.infrastructure.snapshots.tree.engine import TreeEngine

__all__ = ["world"]


def test_modes_links_swaps_and_odd_names_arrive(world: World) -> None:
    project = world.project(tool="t\n", file="f\n", tolink="x\n")
    project.write("dir/deep/inner", "i\n")
    project.write("old/only", "o\n")
    project.commit()
    (project.path / "dir/empty").mkdir()
    resource, sandbox = world.sandbox(project)
    (sandbox.path / "tool").chmod(0o755)
    (sandbox.path / "file").unlink()
    sandbox.write("file/inside", "i\n")
    shutil.rmtree(sandbox.path / "dir")
    sandbox.write("dir", "now a file\n")
    (sandbox.path / "tolink").unlink()
    (sandbox.path / "tolink").symlink_to("nowhere")
    shutil.rmtree(sandbox.path / "old")
    for name in ("with space", "ü/ö", "new\nline", "-dash", ":(top)x*"):
        sandbox.write(name, name)
    world.apply(resource)
    assert project.status() == ""
    assert (project.path / "tool").stat().st_mode & stat.S_IXUSR
    assert project.read("file/inside") == "i\n"
    assert project.read("dir") == "now a file\n"
    assert (project.path / "tolink").readlink() == Path("nowhere")
    assert not (project.path / "old").exists()
    assert project.read("new\nline") == "new\nline"


def test_line_ends_and_filters_are_those_of_the_users_checkout(world: World) -> None:
    project = world.project(a__txt="x\n")
    project.git("config", "core.autocrlf", "true")
    project.git("config", "filter.upper.smudge", "tr a-z A-Z")
    project.git("config", "filter.upper.clean", "tr A-Z a-z")
    project.write("loud.txt", "hello\n")
    project.commit(__gitattributes="loud.txt filter=upper\n")
    resource, sandbox = world.sandbox(project)
    sandbox.write(".gitattributes", "loud.txt filter=upper\nsoon.txt filter=upper\n")
    sandbox.write("soon.txt", "ALSO\r\n")
    sandbox.write("a.txt", "x\r\ny\r\n")
    world.apply(resource)
    assert project.git("show", "HEAD:soon.txt") == "also"
    assert project.git("show", "HEAD:a.txt") == "x\ny"
    assert (project.path / "soon.txt").read_bytes() == b"ALSO\r\n"
    assert (project.path / "a.txt").read_bytes() == b"x\r\ny\r\n"
    assert project.status() == ""


@pytest.mark.parametrize("commit", [True, False])
def test_a_file_that_was_never_normalised_can_be_changed(world: World, *, commit: bool) -> None:
    project = world.project()
    project.write("crlf.txt", "never\r\nnormalised\r\n")
    project.commit()
    project.commit("attributes", __gitattributes="*.txt text\n")
    project.git("reset", "-q", "--soft", "HEAD~1")
    project.git("reset", "-q", "crlf.txt")
    project.git("commit", "-qm", "attributes only")
    assert "\r" in project.git("show", "HEAD:crlf.txt")
    resource, sandbox = world.sandbox(project)
    sandbox.write("crlf.txt", "new\r\n")
    world.apply(resource, commit=commit)
    assert project.read("crlf.txt").replace("\r", "") == "new\n"


def test_a_hostile_set_up_does_not_stop_an_apply(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = world.project()
    resource, sandbox = world.sandbox(project)
    sandbox.write("a.py", "plan\n")
    sandbox.write("new.txt", "mixed\r\nends\n")
    hostile(world, project, monkeypatch)
    commit = world.apply(resource)
    assert not hook_ran(world)
    assert project.git("cat-file", "commit", commit).count("gpgsig") == 0
    assert project.head == commit


def test_ignored_files_are_never_committed(world: World) -> None:
    project = world.project(__gitignore="*.log\n")
    project.write("needed.log", "x")
    resource, sandbox = world.sandbox(project, include=("needed.log",))
    sandbox.write("run.log", "x")
    sandbox.git("add", "-f", "run.log")
    sandbox.write("a.py", "plan\n")
    prepared = world.prepare(resource)
    assert prepared.diff.left_behind == ("run.log",)
    world.carry_out(resource, prepared)
    assert project.git("ls-tree", "-r", "--name-only", "HEAD").split() == [".gitignore", "a.py"]


def test_submodules_survive_an_apply(world: World) -> None:
    library = world.project("library")
    project = world.project()
    project.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add",
                str(library.path), "deps/lib")  # fmt: skip
    project.commit("with a submodule")
    link = project.git("rev-parse", "HEAD:deps/lib")
    resource, sandbox = world.sandbox(project)
    sandbox.write("a.py", "plan\n")
    project.write("deps/lib/a.py", "dirty inside\n")
    world.apply(resource)
    assert project.git("rev-parse", "HEAD:deps/lib") == link
    assert project.read("deps/lib/a.py") == "dirty inside\n"
    assert project.status() == " M deps/lib"


def test_a_plan_may_remove_a_submodule(world: World) -> None:
    library = world.project("library")
    project = world.project()
    project.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add",
                str(library.path), "lib")  # fmt: skip
    project.commit("with a submodule")
    resource, sandbox = world.sandbox(project)
    sandbox.git("rm", "-q", "lib")
    world.apply(resource)
    assert project.git("ls-tree", "--name-only", "HEAD").split() == [".gitmodules", "a.py", "b.py"]
    assert project.read("lib/a.py") == "one\ntwo\nthree\n", "its files are the user's"


def test_a_sparse_checkout_takes_a_result(world: World) -> None:
    project = world.project(top="t\n")
    for name in ("in/x", "out/y", "out/z"):
        project.write(name, "old\n")
    project.commit()
    project.git("sparse-checkout", "set", "in")
    resource, sandbox = world.sandbox(project)
    sandbox.write("in/x", "new\n")
    sandbox.write("out/y", "new\n")
    world.apply(resource)
    assert project.status() == ""
    assert project.git("show", "HEAD:out/y") == "new"
    assert project.git("show", "HEAD:out/z") == "old"


def test_an_apply_works_across_file_systems(world: World) -> None:
    shm = Path("/dev/shm")
    if not shm.is_dir() or shm.stat().st_dev == world.root.stat().st_dev:
        pytest.skip("needs a second file system")
    project = world.project()
    resource, sandbox = world.sandbox(project)
    sandbox.write("a.py", "plan\n")
    (sandbox.path / "link").symlink_to("a.py")
    scratch = shm / f"cleveragents-test-{os.getpid()}"
    try:
        engine = world.adapters.of(resource).snapshots
        assert isinstance(engine, TreeEngine)
        far = GitApply(str(scratch), Pins(lambda: "here"), git_views(scratch), engine)
        far.carry_out(resource, far.prepare_apply(resource, ApplyOptions(message="far")))
    finally:
        shutil.rmtree(scratch)
    assert project.status() == ""
    assert sorted(p.name for p in project.files()) == ["a.py", "b.py", "link"]


def test_a_user_in_a_linked_worktree_gets_the_commit_there(world: World) -> None:
    main = world.project()
    main.git("worktree", "add", "-q", str(world.root / "linked"), "-b", "feature")
    linked = Project(world.root / "linked")
    resource, sandbox = world.sandbox(linked)
    sandbox.write("a.py", "plan\n")
    before = main.everything()["files"]
    commit = world.apply(resource)
    assert main.git("rev-parse", "feature") == commit
    assert linked.status() == ""
    assert main.everything()["files"] == before
