"""Submodules that the project has checked out are there in its sandboxes, each with a repository of
its own; others are empty, and `plan use` says so."""

from pathlib import Path

import pytest
from git_world import PLAN, Project, World, world

from cleveragents.domain.errors import SandboxError

__all__ = ["world"]
ALLOW = ("-c", "protocol.file.allow=always")


def add(project: Project, source: Project, place: str, *options: str) -> Project:
    project.git(*ALLOW, "submodule", "--quiet", "add", *options, str(source.path), place)
    return Project(project.path / place)


def with_submodules(world: World) -> tuple[Project, Project, Project]:
    """The project, its submodule, and the one inside of that."""
    innermost, library, project = (world.project(n) for n in ("innermost", "library", "project"))
    add(library, innermost, "inner")
    library.commit("with inner")
    lib = add(project, library, "deps/lib")
    lib.git(*ALLOW, "submodule", "--quiet", "update", "--init")
    project.commit("with submodules")
    return project, lib, Project(lib.path / "inner")


def notices(world: World, project: Project) -> list[str]:
    found = world.registry.inspect(world.spec(project.path), PLAN, include_uncommitted=False)
    return [notice for notice in found.notices if "submodule" in notice]


def test_what_is_checked_out_is_in_the_sandbox_on_every_level(world: World) -> None:
    project, lib, inner = with_submodules(world)
    lib.git("tag", "v1")
    before = project.repository(), project.everything(), lib.everything()
    resource, sandbox = world.sandbox(project)
    assert (project.repository(), project.everything(), lib.everything()) == before
    assert notices(world, project) == []
    for path, user in (("deps/lib", lib), ("deps/lib/inner", inner)):
        there = Project(sandbox.path / path)
        assert there.read("a.py") == user.read("a.py")
        assert there.head == user.head
        assert there.status() == ""
        assert there.git("symbolic-ref", "-q", "HEAD", check=False) == ""
        assert there.git_dir.is_relative_to(resource.sandbox_path + ".git")
        assert there.git("remote") == ""
    assert Project(sandbox.path / "deps/lib").git("describe", "--tags") == "v1"
    status = sandbox.git("submodule", "status", "--recursive").splitlines()
    assert [line[0] for line in status] == [" ", " "]
    assert world.registry.diff(resource).files == ()


def test_nothing_that_a_step_does_inside_reaches_the_users_submodule(world: World) -> None:
    project, lib, _ = with_submodules(world)
    before = project.repository(), lib.everything()
    _, sandbox = world.sandbox(project)
    there = Project(sandbox.path / "deps/lib")
    there.commit("inside", a__py="changed\n")
    there.git("branch", "more")
    there.git("tag", "-a", "-m", "x", "v2")
    there.git("config", "user.name", "Somebody")
    there.git("gc", "-q", "--prune=now")
    sandbox.git("submodule", "--quiet", "deinit", "--all", "--force")
    assert (project.repository(), lib.everything()) == before


def test_what_is_needed_is_pinned_in_each_until_the_sandbox_goes(world: World) -> None:
    project, lib, inner = with_submodules(world)
    resource, _ = world.sandbox(project)
    assert len(lib.our_refs()) == len(inner.our_refs()) == 1
    world.registry.remove(resource)
    assert project.our_refs() == lib.our_refs() == inner.our_refs() == []


def test_a_submodule_that_is_not_checked_out_is_empty_and_told(world: World) -> None:
    project, _, _ = with_submodules(world)
    project.git("submodule", "--quiet", "deinit", "--all")
    (told,) = notices(world, project)
    assert "deps/lib is not checked out in the project, and empty in the sandbox" in told
    assert "submodule update --init --recursive" in told
    _, sandbox = world.sandbox(project)
    assert list((sandbox.path / "deps/lib").iterdir()) == []


def test_a_commit_that_was_not_fetched_is_told(world: World) -> None:
    project, lib, _ = with_submodules(world)
    nowhere = "1" * 40
    project.git("update-index", "--cacheinfo", f"160000,{nowhere},deps/lib")
    project.git("commit", "-qm", "moved on")
    (told,) = notices(world, project)
    assert "deps/lib is without the commit that the project names" in told
    _, sandbox = world.sandbox(project)
    assert list((sandbox.path / "deps/lib").iterdir()) == []
    assert lib.our_refs() == []


def test_the_users_changes_inside_are_not_taken_along_and_told(world: World) -> None:
    project, lib, _ = with_submodules(world)
    lib.write("untracked", "x")
    (told,) = notices(world, project)
    assert "deps/lib is changed inside, which is not part of this plan" in told
    _, sandbox = world.sandbox(project, uncommitted=True)
    assert not (sandbox.path / "deps/lib/untracked").exists()


def test_with_uncommitted_work_the_commit_that_is_checked_out_counts(world: World) -> None:
    project, lib, _ = with_submodules(world)
    moved = lib.commit("mine", a__py="mine\n")
    _, sandbox = world.sandbox(project, uncommitted=True)
    there = Project(sandbox.path / "deps/lib")
    assert (there.head, there.read("a.py"), there.status()) == (moved, "mine\n", "")


def test_a_damaged_submodule_is_told(world: World) -> None:
    project, lib, _ = with_submodules(world)
    (lib.path / ".git").write_text("gitdir: nowhere\n")
    (told,) = notices(world, project)
    assert "nothing that git can use" in told


def test_settings_of_the_submodule_hold_in_the_sandbox(world: World) -> None:
    project, lib, _ = with_submodules(world)
    lib.git("config", "core.autocrlf", "true")
    _, sandbox = world.sandbox(project)
    assert (sandbox.path / "deps/lib/a.py").read_bytes() == b"one\r\ntwo\r\nthree\r\n"
    assert Project(sandbox.path / "deps/lib").status() == ""


@pytest.mark.parametrize("place", ["with space", 'with"quote', "back\\slash", "#hash", "ünï/çode"])
def test_submodules_with_strange_names(world: World, place: str) -> None:
    library, project = world.project("library"), world.project("project")
    add(project, library, place)
    project.commit("with a submodule")
    _, sandbox = world.sandbox(project)
    there = Project(sandbox.path / place)
    assert (there.head, there.status()) == (library.head, "")


def test_a_repository_that_was_added_as_it_is(world: World) -> None:
    """Neither `.gitmodules` nor `.git/modules` know of it."""
    project = world.project("project")
    nested = Project(project.path / "nested")
    nested.path.mkdir()
    nested.git("init", "-q")
    nested.commit("first", n="n\n")
    project.commit("with a nested repository")
    _, sandbox = world.sandbox(project)
    there = Project(sandbox.path / "nested")
    assert (there.head, there.read("n"), there.status()) == (nested.head, "n\n", "")


def test_a_linked_worktree_has_submodules_of_its_own(world: World) -> None:
    project, _, _ = with_submodules(world)
    linked = Project(world.root / "linked")
    project.git("worktree", "add", "-q", str(linked.path), "-b", "feature")
    linked.git(*ALLOW, "submodule", "--quiet", "update", "--init")
    _, sandbox = world.sandbox(linked)
    assert (sandbox.path / "deps/lib/a.py").exists()
    assert Project(sandbox.path / "deps/lib").status() == ""


def test_a_submodule_that_goes_before_the_sandbox_is_made_is_named(world: World) -> None:
    project, _, _ = with_submodules(world)
    resource = world.inspected(project)
    project.git("submodule", "--quiet", "deinit", "--all", "--force")
    world.registry.create(resource)
    assert (Path(resource.sandbox_path) / "deps/lib/inner/a.py").exists()
    (project.git_dir / "modules").rename(world.root / "away")
    with pytest.raises(SandboxError) as caught:
        world.registry.create(resource)
    assert "the submodule deps/lib" in caught.value.message
    assert not Path(resource.sandbox_path).exists()


def test_a_step_can_clone_its_own_sandbox(world: World) -> None:
    project, _, _ = with_submodules(world)
    _, sandbox = world.sandbox(project)
    for place in (".", "deps/lib"):
        copy = Project(world.root / "copy" / place)
        sandbox.git("clone", "-q", str(sandbox.path / place), str(copy.path))
        assert copy.git("log", "--format=%s", "-1")
