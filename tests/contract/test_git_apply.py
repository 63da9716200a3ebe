"""Applying to git: one commit, a branch or plain files, merged with what the project did since."""

import json
import os
import threading

import pytest
from git_world import PLAN, World, changed, untouched_after, world
from msgspec import convert

from cleveragents.domain.errors import ApplyConflictError, ApplyRefusedError
from cleveragents.infrastructure.sandbox.git.apply.token import CheckoutToken

__all__ = ["world"]

MODES = {"commit": {}, "branch": {"branch": "result"}, "no commit": {"commit": False}}


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
    stored = json.loads(json.dumps(prepared.token))
    assert convert(stored, CheckoutToken) == convert(prepared.token, CheckoutToken)
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
    assert changed(world.applied_diff(resource, commit)) == changed(prepared.diff)
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
    untouched_after(world, project, resource, ApplyRefusedError, branch=name)


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
    assert changed(world.applied_diff(resource, ref)) == {
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
    assert prepared.token["way"] == "nothing"
    assert prepared.diff.files == ()
    assert prepared.diff.left_behind == ("run.log",)
    ref = world.carry_out(resource, prepared)
    assert ref == project.head
    assert project.everything() == before
    assert world.applied_diff(resource, ref).files == ()


def test_what_the_user_did_already_is_not_done_again(world: World) -> None:
    project = world.project()
    resource, sandbox = world.sandbox(project)
    sandbox.write("a.py", "same\n")
    project.commit("the same by hand", a__py="same\n")
    assert world.prepare(resource).token["way"] == "nothing"


def test_a_branch_without_a_commit_is_refused(world: World) -> None:
    project = world.project()
    resource, _ = world.sandbox(project)
    untouched_after(world, project, resource, ApplyRefusedError, branch="x", commit=False)


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
    assert changed(world.applied_diff(resource, ref)) == {"a.py": "modified"}


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


# On a branch of its own nothing has to be merged: the result begins where the plan did.
@pytest.mark.parametrize("mode", [mode for mode in MODES if mode != "branch"])
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
    error = untouched_after(world, project, resource, ApplyConflictError, **MODES[mode])
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
    # A filter runs after the look at the files and before the first of them is replaced; it waits.
    pipe = world.root / "pipe"
    os.mkfifo(pipe)
    project.git("config", "filter.slow.smudge", f"cat '{pipe}'; cat")
    (project.git_dir / "info/attributes").write_text("a.py filter=slow\n")
    before = project.everything()

    def save() -> None:
        with pipe.open("wb"):
            project.write("b.py", "saved")

    somebody = threading.Thread(target=save)
    somebody.start()
    with pytest.raises(ApplyConflictError) as caught:
        world.carry_out(resource, prepared)
    somebody.join()
    assert caught.value.files == ("b.py",)
    assert project.read("a.py") == "one\ntwo\nthree\n"
    assert project.read("b.py") == "saved"
    assert project.head == prepared.token["head"]
    assert project.everything()["index"] == before["index"]
