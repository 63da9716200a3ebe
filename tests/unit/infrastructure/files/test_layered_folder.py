"""A layer while nothing is mounted: what shows, what is copied up, and what leaves a whiteout."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from cleveragents.infrastructure.files.layers.layered_folder import LayeredFolder
from cleveragents.infrastructure.files.layers.overlay_marks import is_whiteout
from cleveragents.infrastructure.files.rooted_folder import RootedFolder


class Layers:
    """The user's folder `mods` below, and the sandbox's above it."""

    def __init__(self, top: Path, anchor: RootedFolder) -> None:
        self.lower, self.upper = top / "project", top / "sandbox"
        (self.lower / "mods/left").mkdir(parents=True)
        (self.lower / "mods/left/a.js").write_text("a\n")
        (self.lower / "mods/left/a.js").chmod(0o755)
        (self.lower / "mods/b.js").write_text("b\n")
        (self.lower / "mods/link").symlink_to("b.js")
        (self.upper / "mods").mkdir()
        self.folder = LayeredFolder(anchor, str(self.lower), ["mods"])


@pytest.fixture
def layers(tmp_path: Path) -> Iterator[Layers]:
    (tmp_path / "sandbox").mkdir()
    with RootedFolder(str(tmp_path / "sandbox")) as anchor:
        yield Layers(tmp_path, anchor)


def test_what_is_not_above_shows_from_below(layers: Layers) -> None:
    folder = layers.folder

    assert folder.shows_lower(b"mods/b.js")
    assert folder.names(b"mods") == {b"left": True, b"b.js": False, b"link": False}
    assert not folder.is_there(b"mods/none.js")
    assert folder.below(b"other/b.js") is None


def test_what_is_covered_is_gone_and_the_file_below_stays(layers: Layers) -> None:
    layers.folder.cover(b"mods/b.js")
    layers.folder.cover(b"mods/none.js")

    assert not layers.folder.is_there(b"mods/b.js")
    assert b"b.js" not in layers.folder.names(b"mods")
    assert is_whiteout(os.lstat(layers.upper / "mods/b.js"))
    assert (layers.lower / "mods/b.js").read_text() == "b\n"
    assert not (layers.upper / "mods/none.js").exists()


def test_what_is_uncovered_has_room_again(layers: Layers) -> None:
    layers.folder.cover(b"mods/b.js")
    layers.folder.uncover(b"mods/b.js")
    assert not (layers.upper / "mods/b.js").exists()

    layers.folder.cover(b"mods/b.js")
    layers.folder.make_room(b"mods/b.js")
    assert not os.path.lexists(layers.upper / "mods/b.js")


def test_room_for_a_file_has_the_mode_of_the_one_below(layers: Layers) -> None:
    layers.folder.make_room(b"mods/left/a.js")

    made = layers.upper / "mods/left/a.js"
    assert (made.stat().st_mode & 0o777, made.read_text()) == (0o755, "")


def test_there_is_no_room_for_a_file_where_a_folder_shows(layers: Layers) -> None:
    with pytest.raises(IsADirectoryError):
        layers.folder.make_room(b"mods/left")


def test_a_folder_is_copied_up_with_all_that_is_in_it(layers: Layers) -> None:
    layers.folder.copy_up(b"mods")

    assert (layers.upper / "mods/left/a.js").read_text() == "a\n"
    assert (layers.upper / "mods/link").readlink() == Path("b.js")

    (layers.upper / "mods/b.js").write_text("changed\n")
    layers.folder.copy_up(b"mods")
    assert (layers.upper / "mods/b.js").read_text() == "changed\n"


def test_a_folder_made_anew_does_not_show_the_one_that_was_there(layers: Layers) -> None:
    layers.folder.cover(b"mods/left")
    layers.folder.make_room(b"mods/left/new.js")

    assert layers.folder.names(b"mods/left") == {}
    assert not layers.folder.is_there(b"mods/left/a.js")


def test_a_folder_that_was_moved_there_is_closed(layers: Layers) -> None:
    (layers.upper / "mods/left").mkdir()
    assert layers.folder.is_there(b"mods/left/a.js")

    layers.folder.close_folder(b"mods/left")

    assert not layers.folder.is_there(b"mods/left/a.js")


def test_a_file_above_hides_the_folder_below(layers: Layers) -> None:
    (layers.upper / "mods/left").write_text("a file\n")

    assert layers.folder.names(b"mods/left") == {}
    assert layers.folder.below(b"mods/left/a.js") is None


def test_a_link_below_leads_nowhere(layers: Layers) -> None:
    (layers.lower / "mods/out").symlink_to(layers.lower.parent)

    assert layers.folder.below(b"mods/out/project") is None


def test_a_name_that_no_file_system_takes_is_an_error_and_not_missing(layers: Layers) -> None:
    with pytest.raises(OSError, match="too long"):
        layers.folder.upper(b"mods/" + b"x" * 300)
