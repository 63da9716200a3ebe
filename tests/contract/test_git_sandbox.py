import os
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from git_world import OTHER_PLAN, PLAN, Project, World, changed, hook_ran, hostile, world

from cleveragents.application.ports import Sandboxes
from cleveragents.domain.action import ResourceSpec, ResourceType
from cleveragents.domain.changes import FileDiff
from cleveragents.domain.errors import (
    GitUnavailableError,
    ResourceError,
    SandboxError,
    SandboxMissingError,
)
from cleveragents.domain.sandbox import PlanResource
from cleveragents.infrastructure.sandbox.git import Git, GitError
from cleveragents.infrastructure.sandbox.sandboxes import SandboxRegistry

__all__ = ["world"]

NASTY = ("with space.txt", "ünï/ço dé.txt", "new\nline.txt", "-dash.txt", ":(top)glob*.txt")


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
    error = _refused(world, project.path)
    assert "dubious ownership" in error.message
    assert f"safe.directory {project.path}" in error.hint


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
    assert found.details["head"] == project.head
    assert found.details["branch"] == "main"
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
    assert found.details["branch"] is None
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


# --- create, check, remove ----------------------------------------------------------------------


def test_the_registry_meets_the_port_and_knows_its_types(world: World) -> None:
    port: Sandboxes = world.registry
    assert port.path_for(PLAN, "code", ResourceType.GIT_CHECKOUT) == str(
        world.sandboxes / PLAN / "code"
    )
    spec = ResourceSpec(name="db", type=ResourceType.POSTGRES, location="postgresql://x")
    with pytest.raises(ResourceError) as caught:
        port.inspect(spec, PLAN, include_uncommitted=False)
    assert "postgres" in caught.value.message
    assert "git-checkout" in caught.value.hint


def test_a_sandbox_is_a_checkout_of_the_base_on_the_plans_branch(world: World) -> None:
    project = world.project()
    base = project.head
    resource = world.inspected(project)
    project.commit("later", later="x\n")
    before = project.everything()
    world.registry.create(resource)
    sandbox = Project(Path(resource.sandbox_path))
    assert project.everything() == before
    assert sandbox.head == base
    assert sandbox.git("symbolic-ref", "HEAD") == f"refs/heads/cleveragents/plan-{PLAN}"
    assert sandbox.status() == ""
    assert Path(resource.sandbox_path).parent.stat().st_mode & 0o777 == 0o700
    world.registry.check(resource)


def test_nothing_of_the_users_changes_in_a_hostile_set_up(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = world.project()
    project.commit("start", a__txt="line\n")
    project.write("a.txt", "stashed\n")
    project.git("stash")
    project.write("b.py", "staged\n")
    project.git("add", "b.py")
    project.write("b.py", "edited\r\nmixed\n")
    project.write("untracked.txt", "u\r\nmixed\n")
    hostile(world, project, monkeypatch)
    before = project.everything()
    resource, sandbox = world.sandbox(project, uncommitted=True)
    sandbox.write("a.txt", "plan\r\nmixed\n")
    diff = world.registry.diff(resource)
    assert changed(diff) == {"a.txt": "modified"}
    assert diff.patch.startswith("diff --git a/a.txt b/a.txt")
    world.registry.check(resource)
    world.registry.remove(resource)
    assert project.everything() == before
    assert project.our_refs() == []
    assert not hook_ran(world)


def test_creating_twice_replaces_what_an_interrupted_creation_left(world: World) -> None:
    project = world.project()
    resource, sandbox = world.sandbox(project)
    sandbox.write("half", "done")
    (sandbox.path / ".git").unlink()
    world.registry.create(resource)
    assert not (sandbox.path / "half").exists()
    assert sandbox.status() == ""
    assert sandbox.head == resource.base


@pytest.mark.parametrize("left", ["folder", "repository", "file", "link"])
def test_each_leftover_of_a_creation_alone_is_no_obstacle(world: World, left: str) -> None:
    project = world.project()
    resource = world.inspected(project)
    path = Path(resource.sandbox_path)
    path.parent.mkdir(parents=True)
    precious = world.root / "precious"
    precious.mkdir()
    (precious / "file").write_text("kept")
    if left == "folder":
        path.mkdir()
        (path / "file").write_text("x")
        path.chmod(0o500)
    elif left == "repository":
        world.registry.create(resource)
        shutil.rmtree(path)
    elif left == "file":
        path.write_text("x")
    else:
        path.symlink_to(precious)
    world.registry.create(resource)
    assert Project(path).status() == ""
    assert (precious / "file").read_text() == "kept"


def test_worktrees_and_branches_of_others_stay(world: World) -> None:
    project = world.project()
    away = world.root / "away"
    project.git("worktree", "add", "-q", str(away), "-b", "mine")
    shutil.move(away, world.root / "unplugged")
    other, _ = world.sandbox(project, plan_id=OTHER_PLAN)
    resource, _ = world.sandbox(project)
    world.registry.create(resource)
    world.registry.remove(resource)
    world.registry.check(other)
    shutil.move(world.root / "unplugged", away)
    assert Project(away).status() == ""


def test_a_folder_outside_the_sandboxes_is_never_removed(world: World) -> None:
    project = world.project()
    resource = world.inspected(project)
    precious = world.root / "precious"
    precious.mkdir()
    (precious / "file").write_text("kept")
    wrong = _moved(resource, precious)
    with pytest.raises(SandboxError):
        world.registry.create(wrong)
    assert (precious / "file").read_text() == "kept"


def _moved(resource: PlanResource, path: Path) -> PlanResource:
    return replace(resource, sandbox_path=str(path))


def test_two_resources_of_one_repository_have_a_sandbox_each(world: World) -> None:
    project = world.project()
    one = world.inspected(project, name="one")
    two = world.inspected(project, name="two")
    world.registry.create(one)
    world.registry.create(two)
    Project(Path(one.sandbox_path)).git("tag", "mine")
    assert Project(Path(two.sandbox_path)).git("tag") == ""
    assert project.refs("refs/heads/cleveragents") == []
    world.registry.remove(one)
    world.registry.check(two)
    assert len(project.our_refs()) == 1
    world.registry.remove(two)
    assert project.our_refs() == []


def test_a_user_who_works_in_a_linked_worktree_can_plan_there(world: World) -> None:
    main = world.project()
    main.git("worktree", "add", "-q", str(world.root / "linked"), "-b", "feature")
    linked = Project(world.root / "linked")
    before = linked.everything()
    resource, sandbox = world.sandbox(linked)
    sandbox.write("a.py", "plan\n")
    assert changed(world.registry.diff(resource)) == {"a.py": "modified"}
    assert linked.everything() == before
    assert resource.details["git_dir"] == str(main.path / ".git")
    world.registry.remove(resource)
    assert main.our_refs() == []


def test_included_paths_come_along_as_they_are(world: World) -> None:
    ignored = ".env\nnode_modules/\ndeep/cache\nempty/\n"
    project = world.project(__gitignore=ignored, a__py="a\n")
    secret = project.write(".env", "KEY=1")
    secret.chmod(0o600)
    os.utime(secret, ns=(10**18, 10**18))
    tool = project.write("node_modules/bin/tool", "#!")
    tool.chmod(0o755)
    (project.path / "node_modules/link").symlink_to("../somewhere/else")
    (project.path / "node_modules/bin").chmod(0o555)
    project.write("deep/cache/x", "x")
    (project.path / "empty").mkdir()
    os.mkfifo(project.path / "node_modules/pipe")
    include = (".env", "node_modules", "deep/cache", "empty", "a.py")
    project.write("a.py", "not committed\n")
    resource, sandbox = world.sandbox(project, include=include)
    copy = sandbox.path / ".env"
    assert copy.read_text() == "KEY=1"
    assert copy.stat().st_mode & 0o777 == 0o600
    assert copy.stat().st_mtime_ns == 10**18
    assert (sandbox.path / "node_modules/bin/tool").stat().st_mode & 0o777 == 0o755
    assert (sandbox.path / "node_modules/bin").stat().st_mode & 0o777 == 0o555
    assert (sandbox.path / "node_modules/link").readlink() == Path("../somewhere/else")
    assert (sandbox.path / "deep/cache/x").read_text() == "x"
    assert (sandbox.path / "empty").is_dir()
    assert sandbox.read("a.py") == "a\n", "the checkout's own file wins"
    assert world.registry.diff(resource).left_behind == ()


def test_read_only_folders_are_removed_too(world: World) -> None:
    resource, sandbox = world.sandbox(world.project())
    sandbox.write("cache/deep/file", "x").parent.chmod(0o555)
    (sandbox.path / "cache").chmod(0o555)
    world.registry.remove(resource)
    assert not sandbox.path.exists()


@pytest.mark.parametrize("bad", ["../outside", "/etc/passwd", "a/../../b", "missing", ".git/config",
                                 ".", "out/passwd"])  # fmt: skip
def test_an_include_that_is_missing_or_leads_out_is_refused(world: World, bad: str) -> None:
    project = world.project()
    (world.root / "outside").write_text("secret")
    (project.path / "out").symlink_to("/etc")
    with pytest.raises(ResourceError) as caught:
        world.inspected(project, include=(bad,))
    assert repr(bad) in caught.value.message
    assert project.our_refs() == []


def test_a_failed_creation_leaves_nothing(world: World) -> None:
    project = world.project(__gitignore=".env\n")
    secret = project.write(".env", "x")
    resource = world.inspected(project, include=(".env",))
    secret.unlink()
    with pytest.raises(ResourceError):
        world.registry.create(resource)
    project.git("config", "filter.broken.clean", "cat")
    project.git("config", "filter.broken.smudge", "false")
    project.git("config", "filter.broken.required", "true")
    project.commit(__gitattributes="* filter=broken\n")
    broken = world.inspected(project)
    with pytest.raises(SandboxError):
        world.registry.create(broken)
    assert not Path(broken.sandbox_path).exists()
    assert not Path(f"{broken.sandbox_path}.git").exists()


def test_a_sandbox_that_is_gone_or_not_ours_is_missing(world: World) -> None:
    project = world.project()
    resource, sandbox = world.sandbox(project)
    aside = world.root / "aside"
    shutil.move(sandbox.path, aside)
    for make in (lambda: None, lambda: sandbox.path.symlink_to(aside)):
        make()
        with pytest.raises(SandboxMissingError):
            world.registry.check(resource)
        with pytest.raises(SandboxMissingError):
            world.registry.diff(resource)
    sandbox.path.unlink()
    sandbox.path.write_text("a file")
    with pytest.raises(SandboxMissingError):
        world.registry.check(resource)
    sandbox.path.unlink()
    shutil.move(aside, sandbox.path)
    world.registry.check(resource)
    # The repository alone can be put back, by a rollback.
    shutil.rmtree(f"{sandbox.path}.git")
    world.registry.check(resource)


@pytest.mark.parametrize("damage", ["deleted", "garbage", "folder"])
def test_a_damaged_git_pointer_is_not_a_missing_sandbox(world: World, damage: str) -> None:
    project = world.project()
    resource, sandbox = world.sandbox(project)
    sandbox.write("a.py", "plan\n")
    (sandbox.path / ".git").unlink()
    if damage == "garbage":
        (sandbox.path / ".git").write_text("gitdir: /nowhere\n")
    if damage == "folder":
        sandbox.git("init", "-q")
    world.registry.check(resource)
    assert changed(world.registry.diff(resource)) == {"a.py": "modified"}


def test_removing_takes_everything_of_ours_and_may_be_repeated(world: World) -> None:
    project = world.project()
    before = project.everything()
    resource, sandbox = world.sandbox(project)
    sandbox.git("checkout", "-q", "--detach")
    world.registry.remove(resource)
    world.registry.remove(resource)
    assert project.our_refs() == []
    assert project.everything() == before
    assert not (world.sandboxes / PLAN).exists()
    again, sandbox = world.sandbox(project)
    shutil.rmtree(project.path)
    world.registry.remove(again)
    world.registry.release(again)
    assert not sandbox.path.exists()


def test_releasing_lets_go_of_the_base(world: World) -> None:
    project = world.project()
    resource = world.inspected(project)
    assert len(project.our_refs()) == 1
    world.registry.release(resource)
    world.registry.release(resource)
    assert project.our_refs() == []
    resource, sandbox = world.sandbox(project)
    world.registry.release(resource)
    assert project.our_refs() == []
    assert sandbox.head == resource.base, "the sandbox itself stays"


# --- diff ---------------------------------------------------------------------------------------


def test_the_diff_is_the_folder_against_the_base_whatever_the_agent_committed(
    world: World,
) -> None:
    project = world.project(a__py="1\n2\n3\n", b__py="b\n", c__bin="c")
    resource, sandbox = world.sandbox(project)
    sandbox.write("a.py", "1\nzwei\n3\n4\n")
    sandbox.commit("the agent's own commit")
    (sandbox.path / "b.py").rename(sandbox.path / "moved.py")
    sandbox.write("c.bin", b"\0\xff")
    sandbox.write("staged", "s\n")
    sandbox.git("add", "staged")
    sandbox.git("update-index", "--assume-unchanged", "c.bin")
    index = (sandbox.git_dir / "index").read_bytes()
    before = project.everything()
    diff = world.registry.diff(resource)
    assert {(f.path, f.kind.value, f.insertions, f.deletions) for f in diff.files} == {
        ("a.py", "modified", 2, 1),
        ("b.py", "deleted", 0, 1),
        ("c.bin", "modified", None, None),
        ("moved.py", "added", 1, 0),
        ("staged", "added", 1, 0),
    }
    assert isinstance(diff.files[0], FileDiff)
    assert "+zwei" in diff.patch
    assert (sandbox.git_dir / "index").read_bytes() == index
    assert project.everything() == before
    assert list(world.scratch.iterdir()) == []


def test_names_of_every_kind_are_in_the_diff(world: World) -> None:
    project = world.project(**{"x": "x"})
    for name in NASTY:
        project.write(name, "old\n")
    project.commit()
    resource, sandbox = world.sandbox(project)
    for name in NASTY:
        sandbox.write(name, "new\n")
    Path(os.fsdecode(os.fsencode(sandbox.path) + b"/b\xffd")).write_text("x")
    diff = world.registry.diff(resource)
    assert changed(diff) == {**dict.fromkeys(NASTY, "modified"), "b\\xffd": "added"}


def test_modes_links_and_swaps_of_file_and_folder_are_changes(world: World) -> None:
    project = world.project(file="f\n", tool="t\n", folder_x="y\n")
    project.write("dir/inner", "i\n")
    project.commit()
    resource, sandbox = world.sandbox(project)
    (sandbox.path / "tool").chmod(0o755)
    (sandbox.path / "file").unlink()
    sandbox.write("file/inside", "i\n")
    shutil.rmtree(sandbox.path / "dir")
    sandbox.write("dir", "now a file\n")
    (sandbox.path / "link").symlink_to("/etc/passwd")
    assert changed(world.registry.diff(resource)) == {
        "tool": "modified",
        "file": "deleted",
        "file/inside": "added",
        "dir/inner": "deleted",
        "dir": "added",
        "link": "added",
    }


def test_ignored_files_stay_behind_and_are_named(world: World) -> None:
    project = world.project(__gitignore="*.log\nbuild/\nvendor/\n", a__py="a\n")
    project.write("vendor/lib/x", "x")
    project.write("old.log", "x")
    resource, sandbox = world.sandbox(project, include=("vendor/lib",))
    sandbox.write("run.log", "log")
    sandbox.write("build/deep/one", "1")
    sandbox.write("build/two", "2")
    sandbox.write("vendor/new", "n")
    sandbox.write("vendor/lib/y", "y")
    nested = Project(sandbox.path / "cloned")
    nested.path.mkdir()
    nested.git("init", "-q")
    diff = world.registry.diff(resource)
    assert diff.files == ()
    assert diff.left_behind == ("build/", "cloned/", "run.log", "vendor/new")


def test_submodules_survive(world: World) -> None:
    library = world.project("library")
    project = world.project()
    project.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add",
                str(library.path), "deps/lib")  # fmt: skip
    project.commit("with a submodule")
    project.write("deps/lib/a.py", "dirty inside\n")
    before = project.everything()
    resource, sandbox = world.sandbox(project, uncommitted=True)
    assert resource.base == project.head
    assert list((sandbox.path / "deps/lib").iterdir()) == []
    sandbox.write("b.py", "plan\n")
    assert changed(world.registry.diff(resource)) == {"b.py": "modified"}
    assert project.everything() == before


def test_filters_and_line_ends_of_the_user_apply_in_the_sandbox(world: World) -> None:
    project = world.project(a__py="x\n")
    project.git("config", "core.autocrlf", "true")
    project.git("config", "filter.upper.smudge", "tr a-z A-Z")
    project.git("config", "filter.upper.clean", "tr A-Z a-z")
    project.write("loud.txt", "hello\n")
    project.commit(__gitattributes="loud.txt filter=upper\n")
    resource, sandbox = world.sandbox(project)
    assert (sandbox.path / "a.py").read_bytes() == b"x\r\n"
    assert sandbox.read("loud.txt") == "HELLO\r\n"
    assert world.registry.diff(resource).files == ()
    sandbox.write("loud.txt", "HELLO\r\nWORLD\r\n")
    diff = world.registry.diff(resource)
    assert changed(diff) == {"loud.txt": "modified"}
    assert "+world\n" in diff.patch


def test_a_file_that_only_filters_would_change_is_not_a_change(world: World) -> None:
    project = world.project(a__txt="x\n")
    project.write("crlf.txt", "never\r\nnormalised\r\n")
    project.write("touched.txt", "also\r\nnot\r\n")
    project.commit()
    project.write(".gitattributes", "*.txt text\n")
    project.git("add", ".gitattributes")
    project.git("commit", "-qm", "attributes")
    resource, sandbox = world.sandbox(project)
    assert world.registry.diff(resource).files == ()
    sandbox.write("touched.txt", "also\r\nnew\r\n")
    assert changed(world.registry.diff(resource)) == {"touched.txt": "modified"}


def test_a_sparse_checkout_loses_nothing(world: World) -> None:
    project = world.project(top="t\n")
    for name in ("in/x", "out/y", "out/z"):
        project.write(name, "old\n")
    project.commit()
    project.git("sparse-checkout", "set", "in")
    config = (project.path / ".git/config").read_bytes()
    resource, sandbox = world.sandbox(project)
    assert world.registry.diff(resource).files == ()
    sandbox.write("in/x", "new\n")
    sandbox.write("out/new", "new\n")
    sandbox.write("out/y", "new\n")
    assert changed(world.registry.diff(resource)) == {
        "in/x": "modified",
        "out/new": "added",
        "out/y": "modified",
    }
    assert (project.path / ".git/config").read_bytes() == config


def test_a_split_index_gets_no_new_shared_part(world: World) -> None:
    project = world.project()
    project.git("config", "core.splitIndex", "true")
    project.write("c", "c\n")
    project.git("add", "c")
    project.git("update-index", "--split-index")
    project.write("d", "d\n")
    before, shared = project.everything(), _shared_indexes(project)
    resource, sandbox = world.sandbox(project, uncommitted=True)
    sandbox.write("e", "e\n")
    sandbox.git("add", "e")
    assert changed(world.registry.diff(resource)) == {"e": "added"}
    assert _shared_indexes(project) == shared
    assert project.everything() == before


def _shared_indexes(project: Project) -> set[Path]:
    return set(project.git_dir.rglob("sharedindex*"))


def test_the_registry_makes_its_folders_when_they_are_needed(world: World) -> None:
    project = world.project()
    registry = SandboxRegistry(
        str(world.root / "x/y"),
        str(world.root / "x/z"),
        world.snapshots.folders,
        world.snapshots.databases,
    )
    assert not (world.root / "x").exists()
    found = registry.inspect(world.spec(project.path), PLAN, include_uncommitted=True)
    assert found.base == project.head
