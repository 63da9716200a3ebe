"""What was carried out in a checkout is taken back to the byte, but for what is the user's now."""

from pathlib import Path

import pytest
from git_world import Project, World, world

from cleveragents.domain.apply import PreparedApply
from cleveragents.domain.errors import ApplyConflictError, ApplyEditsKeptError, ApplyRefusedError
from cleveragents.domain.resource import PlanResource
from cleveragents.infrastructure.sandbox.git.command import Git

__all__ = ["world"]

Begun = tuple[Project, PlanResource, PreparedApply]


def _begun(world: World, **options) -> Begun:
    """An apply of everything that can happen to a file, prepared."""
    project = world.project(a__py="a\n", b__py="b\n", mine="m\n", x="file\n", same="s\n")
    project.write("folder/inner/file", "f\n")
    project.write("private/only", "p\n")
    (project.path / "private").chmod(0o700)
    (project.path / "to-a").symlink_to("a.py")
    project.commit("more")
    (project.path / "b.py").chmod(0o600)
    resource, sandbox = world.sandbox(project)
    sandbox.write("a.py", "plan a\n")
    (sandbox.path / "b.py").chmod(0o755)
    sandbox.write("new/deep/file", "new\n")
    (sandbox.path / "private/only").unlink()
    (sandbox.path / "x").unlink()
    sandbox.write("x/inside", "file became folder\n")
    sandbox.git("rm", "-rq", "folder")
    sandbox.write("folder", "folder became file\n")
    (sandbox.path / "to-a").unlink()
    sandbox.write("to-a", "no link any more\n")
    project.write("mine", "not committed\n")
    project.write("staged", "staged\n")
    project.git("add", "staged")
    return project, resource, world.prepare(resource, **options)


def _facts(project: Project) -> dict[str, object]:
    """All but the reflog, which keeps both moves."""
    return {key: value for key, value in project.everything().items() if key != "reflog"}


@pytest.mark.parametrize("options", [{}, {"commit": False}, {"branch": "plans/one"}])
def test_everything_is_as_it_was_and_it_can_be_done_again(world: World, options) -> None:
    project, resource, prepared = _begun(world, **options)
    before = _facts(project)
    ref = world.registry.carry_out(resource, prepared)
    assert world.registry.revert(resource, prepared) == ()
    assert world.registry.revert(resource, prepared) == ()
    world.registry.finish(resource, prepared)
    assert _facts(project) == before
    assert world.carry_out(resource, prepared) == ref
    assert _facts(project) != before


def test_before_it_was_carried_out_there_is_nothing_to_take_back(world: World) -> None:
    project, resource, prepared = _begun(world)
    before = _facts(project)
    assert world.registry.revert(resource, prepared) == ()
    world.registry.finish(resource, prepared)
    assert _facts(project) == before


def test_an_empty_result_leaves_no_pin(world: World) -> None:
    project = world.project()
    resource, _ = world.sandbox(project)
    prepared = world.prepare(resource)
    refs = project.our_refs()
    world.registry.carry_out(resource, prepared)
    assert world.registry.revert(resource, prepared) == ()
    assert project.our_refs() == refs


@pytest.mark.parametrize("commit", [True, False])
def test_files_that_the_user_changed_on_top_stay_and_are_named(
    world: World, *, commit: bool
) -> None:
    project, resource, prepared = _begun(world, commit=commit)
    before = _facts(project)
    world.registry.carry_out(resource, prepared)
    project.write("a.py", "mine on top\n")
    (project.path / "folder").unlink()
    project.write("folder/inner/file", "mine too\n")
    project.write("x/mine", "in a folder that came\n")
    assert world.registry.revert(resource, prepared) == ("a.py", "folder/inner/file", "x")
    assert project.read("a.py") == "mine on top\n"
    assert project.read("folder/inner/file") == "mine too\n"
    assert project.read("x/mine") == "in a folder that came\n"
    assert project.read("b.py") == "b\n"
    assert not (project.path / "new").exists()
    assert (project.head, project.git("diff", "--cached", "--name-only")) == (
        str(before["branches"]).split()[1].strip("']"),
        "staged",
    )


def test_what_was_staged_since_stays_staged(world: World) -> None:
    project, resource, prepared = _begun(world)
    head = project.head
    world.registry.carry_out(resource, prepared)
    project.git("add", "mine")
    assert world.registry.revert(resource, prepared) == ()
    assert project.head == head
    assert project.git("diff", "--cached", "--name-only").split() == ["mine", "staged"]
    assert project.git("diff", "--name-only") == ""


def test_commits_on_top_are_never_moved(world: World) -> None:
    project, resource, prepared = _begun(world)
    world.registry.carry_out(resource, prepared)
    project.commit("on top")
    before = _facts(project)
    (told,) = world.registry.revert(resource, prepared)
    assert "main" in told
    assert _facts(project) == before


def test_another_branch_that_is_checked_out_by_now_is_left_alone(world: World) -> None:
    project, resource, prepared = _begun(world)
    start = project.head
    world.registry.carry_out(resource, prepared)
    project.git("stash", "-q", "-u")
    project.git("checkout", "-q", "-b", "elsewhere")
    files = _facts(project)["files"]
    assert world.registry.revert(resource, prepared) == ()
    assert project.git("rev-parse", "main") == start
    assert _facts(project)["files"] == files


def test_a_branch_that_somebody_moved_on_stays(world: World) -> None:
    project, resource, prepared = _begun(world, branch="plans/one")
    world.registry.carry_out(resource, prepared)
    project.git("branch", "-f", "plans/one", "main")
    assert world.registry.revert(resource, prepared) == ("the branch plans/one",)
    project.git("branch", "-D", "plans/one")
    assert world.registry.revert(resource, prepared) == ()


def test_files_that_were_committed_by_the_user_stay(world: World) -> None:
    project, resource, prepared = _begun(world, commit=False)
    world.registry.carry_out(resource, prepared)
    project.commit("took it over")
    before = _facts(project)
    (told,) = world.registry.revert(resource, prepared)
    assert "moved on" in told
    assert _facts(project) == before


def test_another_git_command_at_work_is_waited_for(world: World) -> None:
    project, resource, prepared = _begun(world)
    before = _facts(project)
    world.registry.carry_out(resource, prepared)
    lock = project.git_dir / "index.lock"
    lock.write_text("")
    with pytest.raises(ApplyRefusedError):
        world.registry.revert(resource, prepared)
    lock.unlink()
    assert world.registry.revert(resource, prepared) == ()
    world.registry.finish(resource, prepared)
    assert _facts(project) == before


def test_a_file_typed_on_top_while_the_apply_fails_is_kept_and_named(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    project, resource, prepared = _begun(world)
    real = Git.run

    def refuse(self: Git, *args: str, **options):
        if args[0] == "update-ref" and "refs/heads/main" in args:
            project.write("a.py", "typed\n")
            args = ("update-ref", "refs/heads/main", "0" * 40, "1" * 40)
        return real(self, *args, **options)

    monkeypatch.setattr(Git, "run", refuse)
    with pytest.raises(ApplyEditsKeptError) as caught:
        world.registry.carry_out(resource, prepared)
    assert caught.value.files == ("a.py",)
    assert project.read("a.py") == "typed\n"
    assert project.read("x") == "file\n"


def test_a_project_that_is_gone_needs_no_settling(world: World) -> None:
    project, resource, prepared = _begun(world)
    world.registry.carry_out(resource, prepared)
    project.path.rename(world.root / "elsewhere")
    world.registry.finish(resource, prepared)
    assert not Path(resource.location).exists()


# --- what cannot be merged ----------------------------------------------------------------------


def test_binary_files_changed_on_both_sides_are_a_conflict_by_name(world: World) -> None:
    project = world.project()
    project.write("data.bin", bytes(range(256)))
    project.commit()
    resource, sandbox = world.sandbox(project)
    sandbox.write("data.bin", bytes(range(255, -1, -1)))
    project.write("data.bin", bytes(256))
    project.commit("moved on")
    before = project.everything()
    with pytest.raises(ApplyConflictError) as caught:
        world.apply(resource)
    assert caught.value.files == ("data.bin",)
    assert project.everything() == before


def test_a_mode_on_one_side_and_content_on_the_other_are_merged(world: World) -> None:
    project = world.project(a__py="one\n")
    resource, sandbox = world.sandbox(project)
    (sandbox.path / "a.py").chmod(0o755)
    project.commit("moved on", a__py="two\n")
    world.apply(resource)
    assert project.read("a.py") == "two\n"
    assert (project.path / "a.py").stat().st_mode & 0o111
    assert project.status() == ""


def test_a_mode_that_the_user_changed_and_did_not_commit_is_a_conflict(world: World) -> None:
    project = world.project(a__py="one\n")
    resource, sandbox = world.sandbox(project)
    sandbox.write("a.py", "two\n")
    (project.path / "a.py").chmod(0o755)
    before = project.everything()
    with pytest.raises(ApplyConflictError) as caught:
        world.apply(resource)
    assert caught.value.files == ("a.py",)
    assert project.everything() == before
