"""The diff of a git sandbox: every change of every kind, and nothing else."""

import os
import shutil
from pathlib import Path

import pytest
from git_world import Project, World, changed, world
from msgspec.structs import replace

from cleveragents.domain.changes import FileDiff
from cleveragents.infrastructure.sandbox.git.command import Git
from cleveragents.infrastructure.sandbox.git.trees import GitTrees

__all__ = ["world"]

NASTY = ("with space.txt", "ünï/ço dé.txt", "new\nline.txt", "-dash.txt", ":(top)glob*.txt")


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
    assert world.registry.left_behind(resource) == diff.left_behind
    for began in (None, "no snapshot of ours"):
        assert world.registry.only_here(replace(resource, base_snapshot=began)) == diff.left_behind


def test_what_is_left_behind_is_told_without_reading_the_rest(world: World) -> None:
    project = world.project(a__py="1\n", __gitignore="*.log\nkept/\n")
    project.write("kept/tracked", "t\n")
    project.git("add", "-f", "kept/tracked")
    project.commit()
    resource, sandbox = world.sandbox(project)
    sandbox.write("a.py", "2\n")
    sandbox.write("new", "n\n")
    sandbox.write("kept/tracked", "changed\n")
    assert world.registry.left_behind(resource) == world.registry.diff(resource).left_behind == ()

    sandbox.write("forced.log", "f\n")
    sandbox.git("add", "-f", "forced.log")
    sandbox.commit("into the agent's own index and history")
    sandbox.write("kept/own", "o\n")
    told = world.registry.left_behind(resource)
    assert told == world.registry.diff(resource).left_behind
    assert told == ("forced.log", "kept/own")
    assert list(world.scratch.iterdir()) == []


@pytest.mark.parametrize("further", [0, 120], ids=["few", "many"])
def test_files_of_a_tree_come_out_as_its_attributes_say(
    world: World, tmp_path: Path, further: int
) -> None:
    """Whether the index behind it holds all of the tree, or only what has to do with them."""
    project = world.project(plain="1\n")
    project.write("deep/in/.gitattributes", "*.txt eol=crlf\n")
    project.write(".gitattributes", "*.bin -text\n*.txt text\n")
    names = [f"deep/in/{name}" for name in NASTY] + [f"many/{n}.txt" for n in range(further)]
    for name in names:
        project.write(name, "a\nb\n")
    project.commit()
    target = tmp_path / "target"
    target.mkdir()
    paths = [os.fsencode(name) for name in names]
    trees = GitTrees(str(world.scratch))
    trees.materialise(Git(str(project.path)), "HEAD", paths, target)
    found = {str(p.relative_to(target)): p.read_bytes() for p in target.rglob("*") if p.is_file()}
    assert found == {
        name: b"a\r\nb\r\n" if name.startswith("deep/in/") else b"a\nb\n" for name in names
    }


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
    assert sandbox.read("deps/lib/a.py") == "one\ntwo\nthree\n"
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
