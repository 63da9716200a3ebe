"""A sandbox's own repository: what of the user's is in it, and that nothing leads back."""

import os
import subprocess
from pathlib import Path

import pytest
from git_world import PLAN, Project, World, changed, hook_ran, world

from cleveragents.domain.errors import SandboxError

__all__ = ["world"]

REACHING_OUT = [
    "echo x > a.py; git stash -q",
    "git config user.name Somebody; git config --unset user.email; git config alias.x status",
    "git branch -f other HEAD^; git branch -D topic; git branch -m main trunk",
    "git tag -f v1 HEAD^; git tag -d v2; git tag mine",
    "git gc -q --prune=now; git repack -adfq; git pack-refs --all; git prune",
    "git reflog expire --expire=now --all; git worktree add -q another; git worktree prune",
    "git remote add origin /nowhere; git notes add -m n; git replace HEAD HEAD^",
    "git checkout -q --orphan new; git rm -qrf .; git commit -q --allow-empty -m x",
    "git reset -q --hard HEAD^; git update-ref -d refs/heads/main; git update-ref -d HEAD",
    "git submodule init; git sparse-checkout set x; git bisect start HEAD HEAD^",
    'rm -rf "$(git rev-parse --git-dir)/refs" "$(git rev-parse --git-dir)/objects"; git init -q',
]


def _rich(world: World) -> Project:
    project = world.project()
    project.commit("second", c__py="c\n")
    project.git("branch", "topic")
    project.git("branch", "other")
    project.git("tag", "v1")
    project.git("tag", "-a", "-m", "two", "v2")
    project.git("update-ref", "refs/remotes/origin/main", "HEAD^")
    project.git("symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/main")
    project.git("config", "remote.origin.url", str(world.root / "origin"))
    project.git("config", "user.email", "here@example.com")
    project.write("a.py", "stashed\n")
    project.git("stash", "-q")
    return project


@pytest.mark.parametrize("command", REACHING_OUT)
def test_git_commands_in_a_sandbox_leave_the_users_repository_alone(
    world: World, command: str
) -> None:
    project = _rich(world)
    before = project.repository()
    resource, sandbox = world.sandbox(project)
    first = world.snapshots.capture(resource)
    subprocess.run(["/bin/sh", "-c", command], cwd=sandbox.path, capture_output=True, check=False)
    world.snapshots.capture(resource)
    world.registry.diff(resource)
    world.snapshots.restore(resource, first.ref)
    assert sandbox.head == resource.base
    assert sandbox.git("stash", "list") == ""
    assert sandbox.git("describe", "--tags") == "v2"
    assert project.repository() == before
    world.registry.remove(resource)
    assert project.repository() == before
    assert project.our_refs() == []
    assert list(world.sandboxes.iterdir()) == []


def test_names_of_the_user_can_be_looked_at(world: World) -> None:
    project = _rich(world)
    _, sandbox = world.sandbox(project)
    sandbox.commit("agent", d__py="d\n")
    assert sandbox.git("log", "--format=%s", "main..") == "agent"
    assert sandbox.git("log", "--format=%s", "v1").splitlines() == ["second", "start"]
    assert sandbox.git("describe").startswith("v2-1-g")
    assert sandbox.git("rev-parse", "--abbrev-ref", "origin/HEAD") == "origin/main"
    assert sandbox.git("for-each-ref", "refs/stash") == ""
    assert sandbox.git("fsck", "--strict", "--no-dangling") == ""
    assert sandbox.git("config", "user.email") == "here@example.com"


def test_there_is_no_remote_to_push_to(world: World) -> None:
    project = _rich(world)
    Project(world.root).git("init", "-q", "--bare", "origin")
    _, sandbox = world.sandbox(project)
    assert sandbox.git("remote") == ""
    for words in (["push"], ["push", "origin", "HEAD"], ["fetch", "origin"], ["pull"]):
        assert sandbox.git(*words, check=False) == ""
    assert Project(world.root / "origin").git("for-each-ref") == ""


def test_settings_that_decide_bytes_come_along_and_nothing_else(world: World) -> None:
    project = world.project()
    extra = world.root / "extra"
    extra.write_text("[user]\n\temail = work@example.com\n[core]\n\teol = crlf\n")
    project.git("config", "--global", f"includeIf.gitdir:{project.path}/.path", str(extra))
    nasty = 'cat # "quoted" \\ back\tslash ; and\nline'
    taken = {
        "core.autocrlf": "input",
        "core.ignorecase": "true",
        'filter.odd "name\\.with.dots.smudge': nasty,
        "merge.own.driver": "true",
        "i18n.commitencoding": "latin1",
    }
    left = {
        "core.hooksPath": "/nowhere",
        "core.sshCommand": "false",
        "alias.st": "status",
        "credential.helper": "store",
        "remote.origin.url": "/nowhere",
        "branch.main.remote": "origin",
        "url./nowhere.insteadOf": "https://",
        "include.path": str(world.root / "included"),
        "commit.gpgsign": "true",
    }
    (world.root / "included").write_text("[user]\n\tname = Included\n")
    for key, value in {**taken, **left}.items():
        project.git("config", key, value)
    with (project.path / ".git/config").open("a") as config:
        config.write('[filter "bare"]\n\trequired\n')
    project.write(".git/info/attributes", "*.odd -text\n")
    project.write(".git/info/exclude", "*.skip\n")
    _, sandbox = world.sandbox(project)
    sandbox.write("x.skip", "x")
    for key, value in taken.items():
        assert sandbox.git("config", "--local", key) == value
    assert sandbox.git("config", "--bool", "filter.bare.required") == "true"
    assert sandbox.git("config", "user.name") == "Included"
    for key in left.keys() - {"core.hooksPath"}:
        assert sandbox.git("config", "--local", key, check=False) == ""
    assert sandbox.git("config", "core.hooksPath") == "/dev/null"
    assert sandbox.git("check-attr", "text", "a.odd") == "a.odd: text: unset"
    assert sandbox.status() == ""


def test_an_identity_by_folder_holds_in_the_sandbox(world: World) -> None:
    project = world.project()
    extra = world.root / "extra"
    extra.write_text("[user]\n\temail = work@example.com\n")
    project.git("config", "--global", f"includeIf.gitdir:{project.path}/.path", str(extra))
    _, sandbox = world.sandbox(project)
    sandbox.commit("agent", d__py="d\n")
    assert sandbox.git("log", "-1", "--format=%ae") == "work@example.com"


@pytest.mark.parametrize("where", ["local", "global"])
def test_hooks_of_the_user_do_not_run_in_a_sandbox(world: World, where: str) -> None:
    project = world.project()
    hooks = project.path / ".git/hooks" if where == "local" else world.root / "hooks"
    hooks.mkdir(exist_ok=True)
    for name in ("pre-commit", "post-checkout", "reference-transaction"):
        (hooks / name).write_text(f"#!/bin/sh\ntouch '{world.root}/hook-ran'\n")
        (hooks / name).chmod(0o755)
    if where == "global":
        project.git("config", "--global", "core.hooksPath", str(hooks))
    _, sandbox = world.sandbox(project)
    sandbox.write("a.py", "agent\n")
    sandbox.git("commit", "-qam", "agent")
    sandbox.git("checkout", "-q", "-b", "other")
    assert not hook_ran(world)


def test_what_a_step_sets_as_a_filter_is_not_run_by_us(world: World) -> None:
    project = world.project()
    resource, sandbox = world.sandbox(project)
    planted = f"touch '{world.root}/hook-ran'; cat"
    sandbox.git("config", "filter.planted.clean", planted)
    sandbox.git("config", "filter.planted.smudge", planted)
    sandbox.git("config", "core.fsmonitor", planted)
    sandbox.git("config", "diff.external", planted)
    sandbox.write(".gitattributes", "* filter=planted\n")
    sandbox.write("a.py", "agent\n")
    first = world.snapshots.capture(resource)
    assert changed(world.registry.diff(resource)) == {
        "a.py": "modified",
        ".gitattributes": "added",
    }
    world.snapshots.restore(resource, first.ref)
    world.apply(resource)
    assert project.read("a.py") == "agent\n"
    assert not hook_ran(world)


def test_a_gc_of_the_user_does_no_harm(world: World) -> None:
    project = world.project()
    project.commit("to be rewound", c__py="c\n")
    resource, sandbox = world.sandbox(project)
    project.git("reset", "-q", "--hard", "HEAD~1")
    project.git("reflog", "expire", "--expire=now", "--all")
    project.git("gc", "-q", "--prune=now")
    assert sandbox.git("status", "--porcelain") == ""
    assert sandbox.git("fsck", "--connectivity-only") == ""
    sandbox.write("c.py", "agent\n")
    assert changed(world.registry.diff(resource)) == {"c.py": "modified"}


# --- repositories of every kind -----------------------------------------------------------------


def _there_and_back(world: World, project: Project) -> None:
    """A sandbox, work with a commit in it, a snapshot, a gc, a rollback, and an apply."""
    before = project.everything()
    resource, sandbox = world.sandbox(project)
    first = world.snapshots.capture(resource)
    assert sandbox.status() == ""
    sandbox.commit("agent", a__py="agent\n")
    second = world.snapshots.capture(resource)
    world.snapshots.restore(resource, first.ref)
    assert (sandbox.head, sandbox.status()) == (resource.base, "")
    sandbox.git("reflog", "expire", "--expire=now", "--all")
    sandbox.git("gc", "-q", "--prune=now")
    world.snapshots.restore(resource, second.ref)
    assert sandbox.git("log", "-1", "--format=%s") == "agent"
    assert changed(world.registry.diff(resource)) == {"a.py": "modified"}
    assert project.everything() == before
    world.apply(resource)
    assert project.read("a.py") == "agent\n"
    world.registry.remove(resource)
    assert project.refs("refs/cleveragents") == []
    project.git("fsck", "--connectivity-only")


def _cloned(world: World, source: Project, *options: str) -> Project:
    copy = world.root / "copy"
    source.git("-c", "protocol.file.allow=always", "clone", "-q", *options,
               f"file://{source.path}", str(copy))  # fmt: skip
    return Project(copy)


def test_a_shallow_clone(world: World) -> None:
    source = world.project("source")
    source.commit("second", c="c\n")
    source.commit("third", d="d\n")
    project = _cloned(world, source, "--depth=1")
    _there_and_back(world, project)
    assert project.git("rev-parse", "--is-shallow-repository") == "true"


def test_a_repository_with_sha256_objects(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_DEFAULT_HASH", "sha256")
    path = world.root / "sha256"
    path.mkdir()
    subprocess.run(["git", "init", "-q", "--object-format=sha256", str(path)], check=True)
    project = Project(path)
    project.commit("start", a__py="a\n")
    assert len(project.head) == 64
    _there_and_back(world, project)


def test_a_repository_that_borrows_from_one_that_borrows(world: World) -> None:
    source = world.project("source")
    for number, name in enumerate(("one", "two", "three")):
        source.git("clone", "-q", "--shared", ".", str(world.root / name))
        source = Project(world.root / name)
        source.commit(str(number), **{name: "x\n"})
    _there_and_back(world, source)


def test_a_linked_worktree(world: World) -> None:
    main = world.project()
    main.git("worktree", "add", "-q", str(world.root / "linked"), "-b", "feature")
    _there_and_back(world, Project(world.root / "linked"))
    assert len(main.git("worktree", "list").splitlines()) == 2


def test_a_submodule_as_the_project(world: World) -> None:
    library, outer = world.project("library"), world.project("outer")
    outer.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add",
              str(library.path), "lib")  # fmt: skip
    _there_and_back(world, Project(outer.path / "lib"))


def test_a_partial_clone_has_what_is_checked_out(world: World) -> None:
    source = world.project("source")
    source.git("config", "uploadpack.allowFilter", "true")
    source.commit("second", a__py="two\n")
    project = _cloned(world, source, "--filter=blob:none")
    found = world.registry.inspect(world.spec(project.path), PLAN, include_uncommitted=False)
    assert any("partial clone" in notice for notice in found.notices)
    _there_and_back(world, project)


def test_a_partial_clone_without_its_files_says_how_to_get_them(world: World) -> None:
    source = world.project("source")
    source.git("config", "uploadpack.allowFilter", "true")
    project = _cloned(world, source, "--filter=blob:none", "--no-checkout")
    resource = world.inspected(project)
    source.path.rename(world.root / "unplugged")
    with pytest.raises(SandboxError) as caught:
        world.registry.create(resource)
    assert "partial clone" in caught.value.message
    assert "fetch --refetch" in caught.value.hint
    (world.root / "unplugged").rename(source.path)
    project.git("fetch", "-q", "--refetch", "--no-filter")
    world.registry.create(resource)
    world.registry.check(resource)


@pytest.mark.parametrize("name", ["new\nline", '"quoted"', "#hash", "co:lon", "back\\slash\\n",
                                  "tr ailing\n", "\tünï"])  # fmt: skip
def test_a_repository_at_a_strange_path(world: World, name: str) -> None:
    _there_and_back(world, world.project(name))


def test_a_repository_at_a_path_that_is_not_utf8(world: World) -> None:
    _there_and_back(world, world.project(os.fsdecode(b"b\xffd")))


def test_branches_that_are_in_the_way_of_the_plans_own(world: World) -> None:
    project = world.project()
    project.git("branch", "cleveragents")
    _there_and_back(world, project)
    assert project.git("rev-parse", "cleveragents")


def test_a_submodule_that_is_not_checked_out_can_be_filled_in_the_sandbox(world: World) -> None:
    library, project = world.project("library"), world.project()
    allow = ("-c", "protocol.file.allow=always")
    project.git(*allow, "submodule", "--quiet", "add", str(library.path), "deps/lib")
    project.commit("with a submodule")
    project.git("submodule", "--quiet", "deinit", "--all")
    before = project.repository()
    resource, sandbox = world.sandbox(project)
    sandbox.git(*allow, "submodule", "--quiet", "update", "--init")
    assert (sandbox.path / "deps/lib/a.py").exists()
    assert world.registry.diff(resource).files == ()
    assert project.repository() == before


def test_a_sandbox_of_a_sandbox_borrows_from_both(world: World) -> None:
    project = world.project()
    parent, inside = world.sandbox(project)
    inside.commit("parent's own", d__py="d\n")
    child = world.inspected(inside, name="child")
    world.registry.create(child)
    sandbox = Project(Path(child.sandbox_path))
    assert sandbox.read("d.py") == "d\n"
    sandbox.write("d.py", "child\n")
    assert changed(world.registry.diff(child)) == {"d.py": "modified"}
    world.registry.remove(child)
    world.registry.check(parent)
    assert inside.status() == ""
