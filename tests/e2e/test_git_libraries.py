"""What reads repositories by other means than git reads that of a sandbox too."""

import shlex
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import dulwich.objects
import dulwich.porcelain
import dulwich.repo
import git
import pygit2
import pytest
from tests.support.agents import Agents
from tests.support.children import child
from tests.support.children import run as children_of
from tests.support.world import PlanHandle, World, action, shell

Seen = Mapping[str, Any]


def by_gitpython(path: str) -> Seen:
    repo = git.Repo(path)
    return {
        "head": repo.head.commit.hexsha,
        "branch": repo.active_branch.name,
        "branches": {branch.name: branch.commit.hexsha for branch in repo.branches},
        "tags": {tag.name: tag.commit.hexsha for tag in repo.tags},
        "log": [commit.hexsha for commit in repo.iter_commits()],
        "committed": (repo.head.commit.tree / "file.txt").data_stream.read(),
        "changed": sorted(str(item.a_path) for item in repo.index.diff(None)),
        "untracked": repo.untracked_files,
    }


def by_dulwich(path: str) -> Seen:
    with dulwich.repo.Repo(path) as repo:
        found, status = repo.get_refs(), dulwich.porcelain.status(repo)
        heads = {n.removeprefix(b"refs/heads/"): v for n, v in found.items() if b"/heads/" in n}
        tags = {n: repo.get_peeled(n) for n in found if n.startswith(b"refs/tags/")}
        return {
            "head": repo.head().decode(),
            "branch": dulwich.porcelain.active_branch(repo).decode(),
            "branches": {name.decode(): oid.decode() for name, oid in heads.items()},
            "tags": {n.decode().removeprefix("refs/tags/"): v.decode() for n, v in tags.items()},
            "log": [entry.commit.id.decode() for entry in repo.get_walker()],
            "committed": _blob_by_dulwich(repo),
            "changed": sorted(name.decode() for name in status.unstaged),
            "untracked": sorted(name.decode() for name in map(_bytes, status.untracked)),
        }


def _blob_by_dulwich(repo: dulwich.repo.Repo) -> bytes:
    commit = repo[repo.head()]
    assert isinstance(commit, dulwich.objects.Commit)
    tree = repo[commit.tree]
    assert isinstance(tree, dulwich.objects.Tree)
    return repo[tree[b"file.txt"][1]].as_raw_string()


def _bytes(name: str | bytes) -> bytes:
    return name.encode() if isinstance(name, str) else name


def by_libgit2(path: str) -> Seen:
    repo = pygit2.Repository(path)
    status = repo.status()
    tags = [name.removeprefix("refs/tags/") for name in repo.references if "refs/tags/" in name]
    blob = repo[repo.head.peel(pygit2.Commit).tree["file.txt"].id]
    assert isinstance(blob, pygit2.Blob)
    return {
        "head": str(repo.head.target),
        "branch": repo.head.shorthand,
        "branches": {name: str(repo.branches[name].target) for name in repo.branches.local},
        "tags": {name: str(repo.revparse_single(name).peel(pygit2.Commit).id) for name in tags},
        "log": [str(commit.id) for commit in repo.walk(repo.head.target)],
        "committed": blob.data,
        "changed": sorted(n for n, s in status.items() if s & pygit2.enums.FileStatus.WT_MODIFIED),
        "untracked": sorted(n for n, s in status.items() if s & pygit2.enums.FileStatus.WT_NEW),
    }


LIBRARIES = {"GitPython": by_gitpython, "dulwich": by_dulwich, "libgit2": by_libgit2}


def by_git(world: World, path: Path) -> Seen:
    """The truth."""

    def said(*args: str) -> str:
        return world.project.git("-C", str(path), *args)

    def listed(kind: str) -> dict[str, str]:
        names = said("for-each-ref", "--format=%(refname:lstrip=2)", kind).split()
        return {name: said("rev-parse", f"{kind}/{name}^{{commit}}") for name in names}

    return {
        "head": said("rev-parse", "HEAD"),
        "branch": said("branch", "--show-current"),
        "branches": listed("refs/heads"),
        "tags": listed("refs/tags"),
        "log": said("log", "--format=%H").split(),
        "committed": (said("show", "HEAD:file.txt") + "\n").encode(),
        "changed": said("diff", "--name-only").split(),
        "untracked": said("ls-files", "--others", "--exclude-standard").split(),
    }


def furnish(world: World) -> None:
    """Branches, tags of both kinds, one of a tag, packed and not, and a folder of its own."""
    project = world.project
    project.write("file.txt", "first\n")
    project.commit("first")
    project.git("tag", "plain")
    project.git("tag", "-a", "-m", "about it", "annotated")
    project.git("tag", "-a", "-m", "about that", "twice", "annotated")
    project.git("branch", "topic/one")
    project.git("pack-refs", "--all")
    project.write("file.txt", "second\n")
    project.commit("second")
    project.git("tag", "-a", "-m", "not packed", "later")


WORK = (
    shell("echo third > file.txt; echo new > new.txt", name="edit"),
    shell(
        "git tag -a -m 'made here' made && git branch mine && git add -A && git commit -qm third",
        name="commit",
    ),
    shell("echo fourth > file.txt; echo more > more.txt", name="edit again"),
)


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_sandbox_is_a_repository_like_any_other(world: World, library: str) -> None:
    furnish(world)
    plan = world.use(*WORK)
    plan.execute().ok()
    for moment in ("after shell edit again", "decision 2: commit", "decision 3: edit again"):
        plan.rollback(moment).ok()
        seen = by_git(world, plan.sandbox)
        assert "annotated" in seen["tags"], "the truth has what is compared"
        assert LIBRARIES[library](str(plan.sandbox)) == seen, moment


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("name", ["co:lon", "#hash", "a space", "ünï", 'quo"te', "back\\slash"])
def test_wherever_the_users_repository_is(world: World, library: str, name: str) -> None:
    furnish(world)
    place = world.top / name
    shutil.move(world.project.path, place)
    world.project.path = place
    there = Agents(world.home, place)
    path = world.write_action(action(WORK[0]))
    plan = PlanHandle(there, there("plan", "use", path).ok().data["plan_id"])
    plan.execute().ok()
    assert LIBRARIES[library](str(plan.sandbox)) == by_git(world, plan.sandbox)


COMMITS = {
    "GitPython": "import git; r = git.Repo('.'); r.index.add(['own.txt']); r.index.commit('by it')",
    "dulwich": "from dulwich import porcelain as p; p.add('.', ['own.txt']);"
    " p.commit('.', message=b'by it')",
    "libgit2": "import pygit2 as g; r = g.Repository('.'); r.index.add('own.txt'); r.index.write();"
    " s = g.Signature('A', 'a@example.com'); r.create_commit('HEAD', s, s, 'by it',"
    " r.index.write_tree(), [r.head.target])",
}


def committing(library: str) -> str:
    return f'echo own > own.txt; {shlex.quote(sys.executable)} -c "{COMMITS[library]}"'


@pytest.mark.parametrize("library", COMMITS)
def test_what_a_library_commits_inside_is_a_commit_of_the_plan(world: World, library: str) -> None:
    furnish(world)
    plan = world.use(WORK[0], shell(committing(library), name="commit"), WORK[2])
    plan.execute().ok()
    subjects = world.project.git("-C", str(plan.sandbox), "log", "--format=%s")
    assert subjects.splitlines()[:2] == ["by it", "second"]
    plan.rollback("decision 2: commit").ok()
    assert LIBRARIES[library](str(plan.sandbox)) == by_git(world, plan.sandbox)
    plan("resume").ok()
    plan("apply", "--yes").ok()
    assert world.project.read("own.txt") == "own\n"


@pytest.mark.parametrize("library", COMMITS)
def test_a_child_plan_may_use_it_as_well(world: World, library: str) -> None:
    furnish(world)
    plan = children_of(world, child("one", committing(library)))
    assert (plan.sandbox / "own.txt").read_text() == "own\n"
