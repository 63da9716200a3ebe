"""The file tools: what each does to real files."""

import os
import stat
from pathlib import Path
from typing import Any

import pytest
from file_tools_world import SECRET, Sandbox, box

from cleveragents.domain.errors import ToolError

__all__ = ["box"]


# --- reading ------------------------------------------------------------------------------------


def test_read_gives_the_text_and_its_size(box: Sandbox) -> None:
    box.file("src/a.txt", "grüße\r\n")

    result = box("read", "src/a.txt")

    assert result.output == "grüße\r\n"
    assert result.values == {"size": 9}


def test_read_shows_binary_content_in_a_form_that_can_be_stored(box: Sandbox) -> None:
    box.file("a.bin", b"\x00\xff\xfe")

    result = box("read", "a.bin")

    assert result.output == "\x00\\xff\\xfe"
    assert result.values == {"size": 3}


@pytest.mark.parametrize("path", ["missing.txt", "no/folder/a.txt", "folder", ".", "a.txt/b"])
def test_reading_what_is_no_file_is_refused(box: Sandbox, path: str) -> None:
    box.file("a.txt", "")
    (box.root / "folder").mkdir()

    with pytest.raises(ToolError) as caught:
        box("read", path)
    assert path in caught.value.message


# --- writing ------------------------------------------------------------------------------------


def test_write_makes_the_file_and_its_folders(box: Sandbox) -> None:
    result = box("write", "src/deep/a.txt", content="grüße\r\n")

    assert (box.root / "src/deep/a.txt").read_bytes() == "grüße\r\n".encode()
    assert "9 bytes" in result.output


def test_write_replaces_the_whole_content_and_keeps_the_mode(box: Sandbox) -> None:
    file = box.file("run.sh", "a much longer content")
    file.chmod(0o755)

    box("write", "run.sh", content="x")

    assert file.read_text() == "x"
    assert stat.S_IMODE(file.stat().st_mode) == 0o755


@pytest.mark.parametrize("path", [".", "folder", "folder/", "a.txt/b", "a.txt/b/c", "x" * 300])
def test_writing_where_no_file_can_be_is_refused(box: Sandbox, path: str) -> None:
    box.file("a.txt", "kept")
    (box.root / "folder").mkdir()
    before = box.content()

    with pytest.raises(ToolError):
        box("write", path, content="x")
    assert box.content() == before


# --- editing ------------------------------------------------------------------------------------


def test_edit_replaces_the_one_occurrence(box: Sandbox) -> None:
    file = box.file("a.txt", "one two three")

    result = box("edit", "a.txt", old="two", new="zwei")

    assert file.read_text() == "one zwei three"
    assert result.values == {"count": 1}


def test_edit_keeps_crlf_and_every_other_byte(box: Sandbox) -> None:
    file = box.file("a.txt", b"one\r\ntwo\r\n\xff\x00\r\nthree")

    box("edit", "a.txt", old="two", new="zwei\n")

    assert file.read_bytes() == b"one\r\nzwei\n\r\n\xff\x00\r\nthree"


def test_edit_replaces_several_only_if_that_was_asked_for(box: Sandbox) -> None:
    file = box.file("a.txt", "x y x")

    with pytest.raises(ToolError, match="2 times"):
        box("edit", "a.txt", old="x", new="z")
    assert file.read_text() == "x y x"

    result = box("edit", "a.txt", old="x", new="z", all=True)
    assert file.read_text() == "z y z"
    assert result.values == {"count": 2}


@pytest.mark.parametrize("old", ["missing", "", "X"])
def test_edit_without_an_occurrence_is_refused(box: Sandbox, old: str) -> None:
    file = box.file("a.txt", "x")

    with pytest.raises(ToolError, match="not in it"):
        box("edit", "a.txt", old=old, new="z", all=True)
    assert file.read_text() == "x"


# --- deleting and moving ------------------------------------------------------------------------


def test_delete_removes_files_links_and_empty_folders(box: Sandbox) -> None:
    box.file("a.txt", "")
    (box.root / "folder").mkdir()
    (box.root / "link").symlink_to(box.outside)

    for path in ("a.txt", "folder", "link"):
        box("delete", path)

    assert list(box.content()) == [".git"]
    assert (box.outside / "secret.txt").read_text() == SECRET


def test_delete_removes_a_full_folder_only_if_that_was_asked_for(box: Sandbox) -> None:
    box.file("folder/a.txt", "")
    (box.root / "folder" / "link").symlink_to(box.outside)

    with pytest.raises(ToolError, match="not empty"):
        box("delete", "folder")
    assert (box.root / "folder/a.txt").exists()

    box("delete", "folder", recursive=True)
    assert list(box.content()) == [".git"]
    assert (box.outside / "secret.txt").exists()


def test_deleting_what_is_not_there_is_refused(box: Sandbox) -> None:
    with pytest.raises(ToolError, match="No such file"):
        box("delete", "missing")


@pytest.mark.parametrize("path", [".", "folder/.."])
def test_the_sandbox_itself_cannot_be_deleted(box: Sandbox, path: str) -> None:
    box.file("folder/a.txt", "")
    before = box.content()

    with pytest.raises(ToolError):
        box("delete", path, recursive=True)

    assert box.content() == before


def test_move_renames_files_and_folders_and_makes_the_way(box: Sandbox) -> None:
    box.file("a.txt", "a")
    box.file("folder/b.txt", "b")

    box("move", "a.txt", to="new/place/a.txt")
    box("move", "folder", to="moved")

    assert box.content() == {
        ".git": b"gitdir: elsewhere\n",
        "moved": "folder",
        "moved/b.txt": b"b",
        "new": "folder",
        "new/place": "folder",
        "new/place/a.txt": b"a",
    }


def test_move_replaces_what_is_there_only_if_that_was_asked_for(box: Sandbox) -> None:
    box.file("a.txt", "a")
    box.file("b.txt", "b")

    with pytest.raises(ToolError, match="exists already"):
        box("move", "a.txt", to="b.txt")
    assert (box.root / "b.txt").read_text() == "b"

    box("move", "a.txt", to="b.txt", overwrite=True)
    assert (box.root / "b.txt").read_text() == "a"
    assert not (box.root / "a.txt").exists()


def test_move_moves_a_link_itself_and_does_not_replace_a_dangling_one_by_accident(
    box: Sandbox,
) -> None:
    (box.root / "link").symlink_to("nowhere")
    box.file("a.txt", "a")

    with pytest.raises(ToolError, match="exists already"):
        box("move", "a.txt", to="link")
    box("move", "link", to="renamed")

    assert (box.root / "renamed").readlink() == Path("nowhere")


@pytest.mark.parametrize(("path", "to"), [("missing", "x"), (".", "x"), ("a.txt", ".")])
def test_moving_what_cannot_be_moved_is_refused(box: Sandbox, path: str, to: str) -> None:
    box.file("a.txt", "a")

    with pytest.raises(ToolError):
        box("move", path, to=to, overwrite=True)
    assert (box.root / "a.txt").read_text() == "a"


# --- listing and searching ----------------------------------------------------------------------


@pytest.fixture
def full(box: Sandbox) -> Sandbox:
    box.file("b.txt", "Hello\r\nhello again\n")
    box.file("src/a.py", "print('hello')\n")
    box.file("src/deep/c.bin", b"hello\x00")
    box.file("src/.git/config", "hello from git")
    (box.root / "link").symlink_to(box.outside)
    (box.root / "file link").symlink_to(box.outside / "secret.txt")
    return box


def test_list_shows_one_folder_in_order(full: Sandbox) -> None:
    result = full("list")

    assert result.output.splitlines() == ["b.txt", "file link", "link", "src/"]
    assert result.values == {"count": 4}
    assert full("list", "src/deep").output == "c.bin"


def test_list_shows_everything_below_if_that_was_asked_for(full: Sandbox) -> None:
    assert full("list", recursive=True).output.splitlines() == [
        "b.txt",
        "file link",
        "src/a.py",
        "src/deep/c.bin",
    ]
    assert full("list", "src", recursive=True).values == {"count": 2}


def test_search_finds_lines_of_text_files(full: Sandbox) -> None:
    result = full("search", pattern="hel+o")

    assert result.output.splitlines() == ["b.txt:2:hello again", "src/a.py:1:print('hello')"]
    assert result.values == {"count": 2}
    assert full("search", "b.txt", pattern="^Hello$").output == "b.txt:1:Hello"
    assert full("search", "src", pattern="hello").values == {"count": 1}


def test_search_says_when_it_stops(box: Sandbox) -> None:
    box.file("a.txt", "x\n" * 2000)

    lines = box("search", pattern="x").output.splitlines()

    assert len(lines) == 1001
    assert "only the first 1000" in lines[-1]


def test_a_pattern_that_is_none_is_refused(box: Sandbox) -> None:
    with pytest.raises(ToolError, match="not a regular expression"):
        box("search", pattern="(")


def test_a_folder_that_is_not_there_cannot_be_listed(box: Sandbox) -> None:
    with pytest.raises(ToolError, match="there is no such file or folder"):
        box("list", "missing")


@pytest.mark.parametrize(
    ("tool", "arguments"), [("list", {"recursive": True}), ("search", {"pattern": "x"})]
)
def test_a_folder_that_is_not_there_is_not_an_empty_one(
    box: Sandbox, tool: str, arguments: dict[str, Any]
) -> None:
    with pytest.raises(ToolError):
        box(tool, "missing", **arguments)


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [("list", {}), ("list", {"recursive": True}), ("search", {"pattern": "x"})],
)
def test_names_that_are_not_utf_8_are_shown_in_a_form_that_can_be_stored(
    box: Sandbox, tool: str, arguments: dict[str, Any]
) -> None:
    Path(os.fsdecode(os.fsencode(box.root) + b"/caf\xe9.txt")).write_text("x\n")

    result = box(tool, **arguments)

    assert result.values == {"count": 1}
    result.output.encode()


def test_a_file_that_cannot_be_read_does_not_end_a_search(box: Sandbox) -> None:
    box.file("a.txt", "x\n")
    os.mkfifo(box.root / "pipe")
    (box.root / "dangling").symlink_to("nowhere")

    assert box("search", pattern="x").output == "a.txt:1:x"
