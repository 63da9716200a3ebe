"""What was changed in ignored folders, told, compared with the user's, and noted beside them."""

import os
from pathlib import Path

import pytest

from cleveragents.domain.errors import SnapshotFailedError
from cleveragents.infrastructure.files.entry import Entry, Kind
from cleveragents.infrastructure.files.excludes import excludes
from cleveragents.infrastructure.files.layers.known_layers import (
    beside,
    branch_layers,
    copied_folders,
    is_noted,
    known_layers,
    note_copied,
    note_layers,
)
from cleveragents.infrastructure.files.layers.overlay_marks import OPAQUE
from cleveragents.infrastructure.files.rooted_folder import RootedFolder
from cleveragents.infrastructure.sandbox.git.apply.ignored import GitPaths
from cleveragents.infrastructure.sandbox.project_view import ignored_changes, instead
from cleveragents.infrastructure.sandbox.project_view.ignored_changes import (
    IgnoredChanges,
    LayerComparison,
    without_untouched,
)
from cleveragents.infrastructure.sandbox.project_view.instead import (
    Instead,
    instead_of_layer,
    notice_of,
)
from cleveragents.infrastructure.sandbox.project_view.project_views import has_modules, settle


@pytest.fixture
def project(tmp_path: Path) -> Path:
    made = tmp_path / "project"
    (made / "mods/deep").mkdir(parents=True)
    (made / "mods/a.js").write_text("a\n")
    (made / "mods/deep/b.js").write_text("b\n")
    (made / "mods/keep.log").write_text("log\n")
    return made


def compared(project: Path, *upper: Entry, newer: bool = False) -> IgnoredChanges:
    with RootedFolder(str(project)) as user:
        found = LayerComparison(user, excludes(["*.log"]), lambda _path, _status: newer)
        return found.run(upper)


FOLDER = Entry(b"mods", Kind.DIR, 0o755)


# --- against the user's -------------------------------------------------------------------------


def test_a_whiteout_takes_a_whole_folder_but_not_what_is_excluded(project: Path) -> None:
    found = compared(
        project,
        FOLDER,
        Entry(b"mods/deep", Kind.WHITEOUT),
        Entry(b"mods/keep.log", Kind.WHITEOUT),
        Entry(b"mods/none", Kind.WHITEOUT),
    )

    assert {path for path, item in found.differences.items() if item.new is None} == {
        b"mods/deep",
        b"mods/deep/b.js",
    }
    assert not found.refused


def test_an_opaque_folder_hides_all_that_it_does_not_have(project: Path) -> None:
    opaque = Entry(b"mods", Kind.DIR, 0o755 | OPAQUE)

    found = compared(project, opaque, Entry(b"mods/deep", Kind.DIR, 0o755))

    gone = {path for path, item in found.differences.items() if item.new is None}
    assert gone == {b"mods/a.js", b"mods/deep/b.js"}


def test_an_opaque_folder_in_the_place_of_a_file_hides_nothing(project: Path) -> None:
    opaque = Entry(b"mods/a.js", Kind.DIR, 0o755 | OPAQUE)

    found = compared(project, FOLDER, opaque)

    assert set(found.differences) == {b"mods/a.js"}
    assert found.differences[b"mods/a.js"].new == Entry(b"mods/a.js", Kind.DIR, 0o755)


def test_a_pipe_in_a_folder_that_is_to_go_is_refused(project: Path) -> None:
    os.mkfifo(project / "mods/deep/pipe")

    found = compared(project, FOLDER, Entry(b"mods/deep", Kind.WHITEOUT))

    assert found.refused == {b"mods/deep/pipe"}


def test_what_the_user_has_changed_or_what_cannot_be_read_is_refused(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    new = Entry(b"mods/a.js", Kind.LINK, 0o777, target=b"elsewhere")
    assert compared(project, FOLDER, new, newer=True).refused == {b"mods/a.js"}

    def failing(*_given: object) -> None:
        raise SnapshotFailedError("mods/a.js cannot be read", "ls -l mods")

    monkeypatch.setattr(ignored_changes, "read_path", failing)
    found = compared(project, new)
    assert found.refused == {b"mods/a.js"}
    assert not found.differences


def test_only_what_is_wanted_comes_with_the_folders_above_it(project: Path) -> None:
    made = Entry(b"mods/new", Kind.DIR, 0o755)
    file = Entry(b"mods/new/x", Kind.LINK, 0o777, target=b"y")
    found = compared(project, made, file, Entry(b"mods/a.js", Kind.WHITEOUT))

    assert set(found.within(b"mods/new/x").differences) == {b"mods/new", b"mods/new/x"}
    assert set(found.within(b"mods/a.js").differences) == {b"mods/a.js"}


def test_what_git_brings_itself_or_is_somebody_elses_is_not_ignored() -> None:
    paths = GitPaths(tracked=frozenset({b"src/a"}), foreign=(b"lib",))

    ignored = [p for p in (b"src/a", b"src/b", b"lib", b"lib/x", b"library") if paths.is_ignored(p)]

    assert ignored == [b"src/b", b"library"]
    assert paths.is_above_some(b"src")
    assert not paths.is_above_some(b"sr")


# --- what is noted and told ---------------------------------------------------------------------


def test_a_child_has_the_layers_of_its_parent_as_far_as_there_are_any(tmp_path: Path) -> None:
    parent, child, other = (str(tmp_path / name) for name in ("parent", "child", "other"))
    note_layers(parent, ["mods"])
    branch_layers(parent, child)
    assert known_layers(child) == ["mods"]
    assert copied_folders(child) == []
    note_copied(parent, ["cache"])
    branch_layers(parent, other)
    assert copied_folders(other) == ["cache"]


def test_a_list_that_cannot_be_read_is_none(tmp_path: Path) -> None:
    sandbox = str(tmp_path / "sandbox")
    Path(f"{beside(sandbox)}/known").mkdir(parents=True)

    assert known_layers(sandbox) == []
    assert is_noted(sandbox)


def test_layers_are_told_only_if_they_were_changed(tmp_path: Path) -> None:
    sandbox = str(tmp_path / "sandbox")
    for name in ("touched", "untouched"):
        Path(f"{sandbox}/{name}/folder").mkdir(parents=True)
    Path(sandbox, "touched/folder/new").touch()
    note_layers(sandbox, ["touched", "untouched", "gone"])

    told = without_untouched(sandbox, ["touched/", "untouched/", "gone/", "x.log"])

    assert told == ["touched/ (1 written)", "x.log"]


# --- where there can be none --------------------------------------------------------------------


def test_a_folder_is_shared_copied_or_left_out(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def clones(*_given: object) -> int:
        return 0

    def refuses(*_given: object) -> int:
        raise OSError(95, "Operation not supported")

    folder = str(project / "mods")
    monkeypatch.setattr(instead.fcntl, "ioctl", clones)
    assert instead_of_layer(folder, str(tmp_path)) is Instead.SHARED
    monkeypatch.setattr(instead.fcntl, "ioctl", refuses)
    assert instead_of_layer(folder, str(tmp_path)) is Instead.COPIED
    monkeypatch.setattr(instead, "_MOST_FILES", 2)
    assert instead_of_layer(folder, str(tmp_path)) is Instead.LEFT_OUT


def test_each_way_is_told_once() -> None:
    told = notice_of([("a", Instead.COPIED), ("b", Instead.LEFT_OUT), ("c", Instead.COPIED)], "why")

    assert told[0] == "a, c will be copied into the sandbox: why"
    assert "'include: [b]'" in told[1]
    assert len(told) == 2


# --- submodules that a step added ---------------------------------------------------------------


def module(sandbox: Path, name: str, config: str | None) -> Path:
    made = Path(f"{sandbox}.git/modules/{name}")
    (made / "objects").mkdir(parents=True)
    (made / "HEAD").write_text("ref: refs/heads/main\n")
    if config is not None:
        (made / "config").write_text(config)
    return made


def test_only_submodules_that_are_said_to_be_at_home_are_settled(tmp_path: Path) -> None:
    sandbox, home = tmp_path / "sandbox", "/home/of/it"
    sandbox.mkdir()
    assert not has_modules(str(sandbox))
    bare = module(sandbox, "bare", None)
    plain = module(sandbox, "plain", "[core]\n\tbare = false\n")
    away = module(sandbox, "away", '[core]\n\tworktree = "/else/where"\n')
    gone = module(sandbox, "gone", f'[core]\n\tworktree = "{home}/gone"\n')
    there = module(sandbox, "there", f'[core]\n\tworktree = "{home}/there"\n')
    (sandbox / "there").mkdir()
    (sandbox / "there/.git").write_text(f"gitdir: {home}/.git/modules/there\n")

    settle(str(sandbox), home)

    assert has_modules(str(sandbox))
    assert not (bare / "config").exists()
    assert "worktree" not in (plain / "config").read_text()
    assert "/else/where" in (away / "config").read_text()
    assert os.path.relpath(sandbox / "gone", gone) in (gone / "config").read_text()
    assert os.path.relpath(sandbox / "there", there) in (there / "config").read_text()
    pointer = (sandbox / "there/.git").read_text()
    assert pointer == f"gitdir: {os.path.relpath(there, sandbox / 'there')}\n"
