import json
import os
import shutil
import stat
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from git_world import OTHER_PLAN, PLAN, Project, World, changed, hook_ran, hostile, world
from tests.support.kill_points import THOROUGH

from cleveragents.domain.applying import ApplyOptions, PreparedApply
from cleveragents.domain.errors import (
    ApplyConflictError,
    ApplyRefusedError,
    PlanError,
    SandboxMissingError,
)
from cleveragents.domain.sandbox import PlanResource
from cleveragents.infrastructure.sandbox import git
from cleveragents.infrastructure.sandbox.git_apply import GitApply

__all__ = ["world"]

MODES = {"commit": {}, "branch": {"branch": "result"}, "no commit": {"commit": False}}


def _untouched_after(
    world: World, project: Project, resource: PlanResource, error: type[PlanError], **options
) -> PlanError:
    """Preparing raises, and has changed nothing of the user's."""
    before = project.everything()
    with pytest.raises(error) as caught:
        world.prepare(resource, **options)
    assert project.everything() == before
    assert caught.value.hint
    return caught.value


# --- the three ways -----------------------------------------------------------------------------


def test_the_result_is_one_commit_of_the_user_on_their_branch(world: World) -> None:
    project = world.project()
    start = project.head
    resource, sandbox = world.sandbox(project)
    sandbox.write("a.py", "one\nTWO\nthree\n")
    sandbox.commit("agents commit too")
    sandbox.write("sub/new.py", "new\n")
    (sandbox.path / "b.py").unlink()
    before = project.everything()
    prepared = world.prepare(resource)
    assert project.everything() == before
    assert json.loads(json.dumps(dict(prepared.token))) == prepared.token
    assert changed(prepared.diff) == {"a.py": "modified", "b.py": "deleted", "sub/new.py": "added"}
    commit = world.carry_out(resource, prepared)
    assert project.head == commit
    assert project.git("rev-parse", "HEAD^") == start
    who = project.git("log", "-1", "--format=%an %ae %cn %ce %B")
    assert who == "Uma User uma@example.com Uma User uma@example.com the plan's work"
    assert project.git("symbolic-ref", "HEAD") == "refs/heads/main"
    assert project.status() == ""
    assert project.read("a.py") == "one\nTWO\nthree\n"
    assert f"cleveragents: apply plan {PLAN}" in project.git("reflog", "-1")
    assert changed(world.registry.applied_diff(resource, commit)) == changed(prepared.diff)
    assert project.everything()["strays"] == before["strays"]


def test_the_identity_of_the_shell_wins(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    project = world.project()
    resource, sandbox = world.sandbox(project)
    sandbox.write("a.py", "x\n")
    monkeypatch.setenv("GIT_AUTHOR_NAME", "Shell")
    monkeypatch.setenv("GIT_AUTHOR_EMAIL", "shell@example.com")
    world.apply(resource)
    assert project.git("log", "-1", "--format=%an %ae %cn") == "Shell shell@example.com Uma User"


def test_a_branch_takes_the_result_and_nothing_else_changes(world: World) -> None:
    project = world.project()
    resource, sandbox = world.sandbox(project)
    sandbox.write("a.py", "plan\n")
    project.write("a.py", "my own work\n")
    (project.path / ".git/index.lock").write_text("")
    before = project.everything()
    prepared = world.prepare(resource, branch="feature/result")
    assert project.everything() == before
    commit = world.carry_out(resource, prepared)
    assert world.carry_out(resource, prepared) == commit
    after = project.everything()
    assert after.pop("branches") != before.pop("branches")
    assert after == before
    assert project.git("rev-parse", "feature/result") == commit
    assert project.git("show", "feature/result:a.py") == "plan"
    assert project.git("rev-parse", f"{commit}^") == project.head


@pytest.mark.parametrize(
    "name", ["main", "taken/below", "bad name", "-x", "a..b", "HEAD", "", "@{"]
)
def test_a_branch_name_that_cannot_be_used_is_refused(world: World, name: str) -> None:
    project = world.project()
    project.git("branch", "taken")
    resource, sandbox = world.sandbox(project)
    sandbox.write("a.py", "plan\n")
    _untouched_after(world, project, resource, ApplyRefusedError, branch=name)


def test_a_branch_that_somebody_made_meanwhile_is_not_moved(world: World) -> None:
    project = world.project()
    resource, sandbox = world.sandbox(project)
    sandbox.write("a.py", "plan\n")
    prepared = world.prepare(resource, branch="result")
    project.git("branch", "result")
    with pytest.raises(ApplyRefusedError):
        world.carry_out(resource, prepared)
    assert project.git("rev-parse", "result") == project.head


def test_without_a_commit_only_files_change(world: World) -> None:
    project = world.project(a__py="one\ntwo\nthree\n", b__py="b\n", gone="g\n")
    resource, sandbox = world.sandbox(project)
    sandbox.write("a.py", "one\nTWO\nthree\n")
    sandbox.write("new/file.py", "new\n")
    (sandbox.path / "gone").unlink()
    project.write("b.py", "my own work\n")
    project.write("mine", "untracked\n")
    before = project.everything()
    prepared = world.prepare(resource, commit=False)
    assert project.everything() == before
    ref = world.carry_out(resource, prepared)
    assert world.carry_out(resource, prepared) == ref
    after = project.everything()
    assert {k for k in after if after[k] != before[k]} == {"files"}
    assert project.status().split("\n") == [" M a.py", " M b.py", " D gone", "?? mine", "?? new/"]
    assert project.read("b.py") == "my own work\n"
    project.git("gc", "-q", "--prune=now")
    world.registry.remove(resource)
    assert changed(world.registry.applied_diff(resource, ref)) == {
        "a.py": "modified",
        "gone": "deleted",
        "new/file.py": "added",
    }


@pytest.mark.parametrize("mode", MODES)
def test_an_empty_result_is_fine(world: World, mode: str) -> None:
    project = world.project(a__py="a\n", __gitignore="*.log\n")
    resource, sandbox = world.sandbox(project)
    sandbox.write("run.log", "ignored")
    project.commit("the user's own last commit", a__py="mine\n")
    project.write("a.py", "dirty\n")
    before = project.everything()
    prepared = world.prepare(resource, **MODES[mode])
    assert prepared.token["kind"] == "nothing"
    assert prepared.diff.files == ()
    assert prepared.diff.left_behind == ("run.log",)
    ref = world.carry_out(resource, prepared)
    assert ref == project.head
    assert project.everything() == before
    assert world.registry.applied_diff(resource, ref).files == ()


def test_what_the_user_did_already_is_not_done_again(world: World) -> None:
    project = world.project()
    resource, sandbox = world.sandbox(project)
    sandbox.write("a.py", "same\n")
    project.commit("the same by hand", a__py="same\n")
    assert world.prepare(resource).token["kind"] == "nothing"


def test_a_branch_without_a_commit_is_refused(world: World) -> None:
    project = world.project()
    resource, _ = world.sandbox(project)
    _untouched_after(world, project, resource, ApplyRefusedError, branch="x", commit=False)


# --- the project moved on -----------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
def test_a_project_that_moved_on_is_merged(world: World, mode: str) -> None:
    project = world.project(a__py="1\n2\n3\n4\n5\n6\n7\n", b__py="b\n")
    resource, sandbox = world.sandbox(project)
    sandbox.write("a.py", "1\n2\n3\n4\n5\n6\nseven\n")
    project.commit("moved on", a__py="one\n2\n3\n4\n5\n6\n7\n", c__py="c\n")
    ref = world.apply(resource, **MODES[mode])
    if mode == "branch":
        project.git("checkout", "-q", "result")
    assert project.read("a.py") == "one\n2\n3\n4\n5\n6\nseven\n"
    assert project.read("c.py") == "c\n"
    assert changed(world.registry.applied_diff(resource, ref)) == {"a.py": "modified"}


@pytest.mark.parametrize("mode", MODES)
def test_a_project_that_was_rewound_is_merged_too(world: World, mode: str) -> None:
    project = world.project(a__py="a\n")
    project.commit("second", b__py="b\n")
    resource, sandbox = world.sandbox(project)
    sandbox.write("a.py", "plan\n")
    project.git("reset", "-q", "--hard", "HEAD~1")
    world.apply(resource, **MODES[mode])
    if mode == "branch":
        project.git("checkout", "-q", "result")
    assert project.read("a.py") == "plan\n"
    assert not (project.path / "b.py").exists()


@pytest.mark.parametrize("mode", MODES)
def test_conflicts_name_the_files_and_change_nothing(world: World, mode: str) -> None:
    names = ["with space.txt", "ünï.txt", "new\nline.txt"]
    project = world.project(a__py="a\n", gone="g\n")
    for name in names:
        project.write(name, "old\n")
    project.commit()
    resource, sandbox = world.sandbox(project)
    for name in names:
        sandbox.write(name, "plan\n")
        project.write(name, "user\n")
    sandbox.write("gone", "changed\n")
    sandbox.write("fine.py", "fine\n")
    (project.path / "gone").unlink()
    project.commit("moved on")
    error = _untouched_after(world, project, resource, ApplyConflictError, **MODES[mode])
    assert isinstance(error, ApplyConflictError)
    assert sorted(error.files) == sorted([*names, "gone"])


def test_a_branch_moved_between_check_and_change_is_left_alone(world: World) -> None:
    project = world.project()
    resource, sandbox = world.sandbox(project)
    sandbox.write("a.py", "plan\n")
    prepared = world.prepare(resource)
    project.git("checkout", "-q", "-b", "elsewhere")
    before = project.everything()
    with pytest.raises(ApplyRefusedError):
        world.carry_out(resource, prepared)
    assert project.everything() == before
    project.git("checkout", "-q", "main")
    project.commit("meanwhile", c__py="c\n")
    before = project.everything()
    with pytest.raises(ApplyRefusedError):
        world.carry_out(resource, prepared)
    assert project.everything() == before


def test_a_file_edited_between_check_and_change_is_a_conflict(world: World) -> None:
    project = world.project()
    resource, sandbox = world.sandbox(project)
    sandbox.write("a.py", "plan\n")
    sandbox.write("b.py", "plan\n")
    for commit in (True, False):
        prepared = world.prepare(resource, commit=commit)
        project.write("b.py", "typed meanwhile\n")
        before = project.everything()
        with pytest.raises(ApplyConflictError) as caught:
            world.carry_out(resource, prepared)
        assert caught.value.files == ("b.py",)
        assert project.everything() == before
        project.write("b.py", "b\n")


def test_a_file_saved_while_the_others_are_written_is_kept(world: World) -> None:
    project = world.project()
    resource, sandbox = world.sandbox(project)
    sandbox.write("a.py", "plan\n")
    sandbox.write("b.py", "plan\n")
    prepared = world.prepare(resource)
    # A filter runs after the look at the files and before the first of them is replaced.
    project.git("config", "filter.slow.smudge", f"printf saved > '{project.path}/b.py'; cat")
    (project.git_dir / "info/attributes").write_text("a.py filter=slow\n")
    before = project.everything()
    with pytest.raises(ApplyConflictError) as caught:
        world.carry_out(resource, prepared)
    assert caught.value.files == ("b.py",)
    assert project.read("a.py") == "one\ntwo\nthree\n"
    assert project.read("b.py") == "saved"
    assert project.head == prepared.token["head"]
    assert project.everything()["index"] == before["index"]


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
    error = _untouched_after(world, project, resource, ApplyConflictError, commit=commit)
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
    error = _untouched_after(world, project, resource, ApplyConflictError, commit=commit)
    assert isinstance(error, ApplyConflictError)
    assert any(name.startswith(in_the_way.split("/")[0]) for name in error.files)


def test_an_ignored_file_of_the_user_is_never_overwritten(world: World) -> None:
    project = world.project(__gitignore="secret\n")
    resource, sandbox = world.sandbox(project)
    sandbox.write(".gitignore", "nothing\n")
    sandbox.write("secret", "plan\n")
    project.write("secret", "mine\n")
    error = _untouched_after(world, project, resource, ApplyConflictError)
    assert isinstance(error, ApplyConflictError)
    assert error.files == ("secret",)


def test_work_taken_along_may_be_built_upon_without_a_commit(world: World) -> None:
    project = world.project(a__py="a\n", b__py="b\n")
    project.write("a.py", "mine\n")
    project.write("new.py", "mine too\n")
    resource, sandbox = world.sandbox(project, uncommitted=True)
    sandbox.write("a.py", "mine\nand the plan's\n")
    sandbox.write("new.py", "mine too\nand the plan's\n")
    _untouched_after(world, project, resource, ApplyConflictError)
    ref = world.apply(resource, commit=False)
    assert project.read("a.py") == "mine\nand the plan's\n"
    assert project.read("new.py") == "mine too\nand the plan's\n"
    assert changed(world.registry.applied_diff(resource, ref)) == {
        "a.py": "modified",
        "new.py": "modified",
    }


def test_work_taken_along_and_changed_since_is_a_conflict(world: World) -> None:
    project = world.project(a__py="1\n2\n3\n4\n5\n6\n7\n8\n")
    project.write("a.py", "1\n2\n3\n4\n5\n6\n7\nmine\n")
    resource, sandbox = world.sandbox(project, uncommitted=True)
    sandbox.write("a.py", "plan\n2\n3\n4\n5\n6\n7\nmine\n")
    project.write("a.py", "1\n2\n3\n4\n5\n6\n7\nmine, later\n")
    _untouched_after(world, project, resource, ApplyConflictError, commit=False)


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
    error = _untouched_after(world, project, resource, ApplyRefusedError)
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
        error = _untouched_after(world, project, resource, ApplyRefusedError, **options)
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
        error = _untouched_after(world, project, resource, ApplyRefusedError, commit=commit)
        assert what in error.message
    world.apply(resource, branch="result")


def test_a_running_git_command_is_waited_for(world: World) -> None:
    project = world.project()
    resource, sandbox = world.sandbox(project)
    sandbox.write("a.py", "plan\n")
    prepared = world.prepare(resource)
    lock = project.git_dir / "index.lock"
    lock.write_text("")
    error = _untouched_after(world, project, resource, ApplyRefusedError)
    assert str(lock) in error.hint
    before = project.everything()
    with pytest.raises(ApplyRefusedError):
        world.carry_out(resource, prepared)
    assert project.everything() == before
    lock.write_text(f"cleveragents apply of plan {OTHER_PLAN}")
    error = _untouched_after(world, project, resource, ApplyRefusedError)
    assert error.hint == f"agents plan apply {OTHER_PLAN}"


def test_a_project_or_sandbox_that_is_gone_is_refused(world: World) -> None:
    project = world.project()
    resource, sandbox = world.sandbox(project)
    sandbox.write("a.py", "plan\n")
    with pytest.raises(ApplyRefusedError):
        world.prepare(replace(resource, location=str(world.root / "nowhere")))
    project.git("checkout", "-q", "--orphan", "unborn")
    with pytest.raises(ApplyRefusedError):
        world.prepare(resource)
    shutil.rmtree(sandbox.path)
    with pytest.raises(SandboxMissingError):
        world.prepare(resource)


# --- what files are like ------------------------------------------------------------------------


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
        far = GitApply(str(scratch))
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


# --- crashes ------------------------------------------------------------------------------------


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
    real = Path.replace

    def full(self: Path, target: Path) -> Path:
        if Path(target).name == "file":
            raise OSError(28, "No space left on device")
        return real(self, target)

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(ApplyRefusedError):
        world.carry_out(resource, prepared)
    assert project.everything() == before
    monkeypatch.setattr(Path, "replace", real)
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
