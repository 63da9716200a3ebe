"""Sandboxes of git checkouts: made, made again, found missing, removed; others' work stays."""

import os
import shutil
from pathlib import Path

import pytest
from git_world import OTHER_PLAN, PLAN, Project, World, changed, hook_ran, hostile, world
from msgspec.structs import replace
from tests.support.runners import adapters_in

from cleveragents.application.ports.runtime import Sandboxes
from cleveragents.domain.action import ResourceSpec
from cleveragents.domain.errors import ResourceError, SandboxError, SandboxMissingError
from cleveragents.domain.resource import PlanResource
from cleveragents.domain.resource_kinds import GIT_CHECKOUT, POSTGRES
from cleveragents.infrastructure.sandbox.sandboxes import SandboxesByType

__all__ = ["world"]


def test_the_registry_meets_the_port_and_knows_its_types(world: World) -> None:
    port: Sandboxes = world.registry
    assert port.path_for(PLAN, "code", GIT_CHECKOUT.type) == str(world.sandboxes / PLAN / "code")
    spec = ResourceSpec(name="db", type=POSTGRES.type, location="postgresql://x")
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


def test_the_registry_makes_its_folders_when_they_are_needed(world: World) -> None:
    project = world.project()
    registry = SandboxesByType(adapters_in(world.root / "x", world.workers))
    assert not (world.root / "x").exists()
    found = registry.inspect(world.spec(project.path), PLAN, include_uncommitted=True)
    assert found.base == project.head
