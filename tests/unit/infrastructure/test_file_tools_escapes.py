"""The file tools: no path, link or pipe leads out of the sandbox."""

import os
from pathlib import Path
from typing import Any

import pytest
from file_tools_world import SECRET, Sandbox, box

from cleveragents.domain.errors import PathOutsideSandboxError, ToolError

__all__ = ["box"]

ESCAPES = {
    "dots": "../outside/secret.txt",
    "dots after a folder": "folder/../../outside/secret.txt",
    "many dots": "../" * 40 + "etc/passwd",
    "the folder above": "..",
    "absolute": "{outside}/secret.txt",
    "absolute inside": "{root}/a.txt",
    "root": "/",
    "proc": "/proc/self/cwd/a.txt",
    "a linked folder": "link/secret.txt",
    "a link to the folder above": "up/outside/secret.txt",
    "a link through proc": "proc/etc/passwd",
    "a chain of links": "chain/secret.txt",
    "a name that begins alike": "../sandbox-2/a.txt",
    "NUL": "a.txt\0.png",
    "empty": "",
    "git": ".git",
    "in git": ".git/config",
    "git behind dots": "folder/../.git",
    "git behind a link": "here/.git",
    "git behind itself": "./.git",
}


def calls(path: str) -> list[tuple[str, str | None, dict[str, Any]]]:
    return [
        ("read", path, {}),
        ("write", path, {"content": "x"}),
        ("edit", path, {"old": "secret", "new": "x"}),
        ("delete", path, {"recursive": True}),
        ("move", path, {"to": "taken.txt", "overwrite": True}),
        ("move", "a.txt", {"to": path, "overwrite": True}),
        ("list", path, {}),
        ("list", path, {"recursive": True}),
        ("search", path, {"pattern": "secret"}),
    ]


@pytest.fixture
def tempting(box: Sandbox) -> Sandbox:
    box.file("a.txt", "a")
    box.file("folder/b.txt", "b")
    twin = box.root.with_name("sandbox-2")
    twin.mkdir()
    (twin / "a.txt").write_text(SECRET)
    (box.root / "link").symlink_to(box.outside)
    (box.root / "up").symlink_to("..")
    (box.root / "here").symlink_to(".")
    (box.root / "proc").symlink_to("/proc/self/root")
    (box.root / "chain").symlink_to("folder/next")
    (box.root / "folder" / "next").symlink_to("../link")
    return box


@pytest.mark.parametrize("kind", ESCAPES)
def test_no_tool_follows_a_path_out_of_the_sandbox(tempting: Sandbox, kind: str) -> None:
    path = ESCAPES[kind].format(root=tempting.root, outside=tempting.outside)
    before = tempting.content()

    for tool, first, arguments in calls(path):
        with pytest.raises(PathOutsideSandboxError) as caught:
            tempting(tool, first, **arguments)
        assert repr(path) in caught.value.message
        assert tempting.content() == before
        assert (tempting.outside / "secret.txt").read_text() == SECRET


def test_a_link_to_a_folder_of_the_sandbox_itself_may_be_used(tempting: Sandbox) -> None:
    (tempting.root / "inner").symlink_to("folder")

    tempting("write", "inner/new.txt", content="x")

    assert (tempting.root / "folder/new.txt").read_text() == "x"
    assert tempting("read", "here/a.txt").output == "a"


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [("read", {}), ("write", {"content": "x"}), ("edit", {"old": "secret", "new": "x"})],
)
@pytest.mark.parametrize("target", ["outside", "inside", "nowhere"])
def test_a_link_as_the_file_itself_is_not_followed(
    tempting: Sandbox, tool: str, arguments: dict[str, Any], target: str
) -> None:
    targets = {"outside": tempting.outside / "secret.txt", "inside": "a.txt", "nowhere": "new.txt"}
    (tempting.root / "trap").symlink_to(targets[target])

    with pytest.raises(ToolError, match="link"):
        tempting(tool, "trap", **arguments)

    assert (tempting.outside / "secret.txt").read_text() == SECRET
    assert (tempting.root / "a.txt").read_text() == "a"
    assert not (tempting.root / "new.txt").exists()


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [("list", {}), ("list", {"recursive": True}), ("search", {"pattern": "secret"})],
)
@pytest.mark.parametrize("link", ["link", "up", "chain"])
def test_a_link_as_the_folder_to_look_at_does_not_lead_out(
    tempting: Sandbox, tool: str, arguments: dict[str, Any], link: str
) -> None:
    with pytest.raises(ToolError):
        tempting(tool, link, **arguments)


def test_looking_at_everything_shows_nothing_from_outside(tempting: Sandbox) -> None:
    listed = tempting("list", recursive=True).output
    found = tempting("search", pattern="secret").output

    assert "secret" not in listed
    assert found == ""


def test_replacing_a_link_replaces_the_link_and_not_what_it_points_to(tempting: Sandbox) -> None:
    (tempting.root / "trap").symlink_to(tempting.outside / "secret.txt")

    tempting("move", "a.txt", to="trap", overwrite=True)

    assert not (tempting.root / "trap").is_symlink()
    assert (tempting.outside / "secret.txt").read_text() == SECRET


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [("read", {}), ("write", {"content": "x"}), ("edit", {"old": "a", "new": "b"})],
)
def test_a_pipe_is_refused_at_once(box: Sandbox, tool: str, arguments: dict[str, Any]) -> None:
    os.mkfifo(box.root / "pipe")
    reader = os.open(box.root / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    try:
        with pytest.raises(ToolError):
            box(tool, "pipe", **arguments)
    finally:
        os.close(reader)
    with pytest.raises(ToolError):
        box(tool, "pipe", **arguments)


def test_a_sandbox_that_is_gone_is_told_as_such(tmp_path: Path) -> None:
    gone = Sandbox(tmp_path / "gone", tmp_path)

    for tool, path, arguments in calls("a.txt")[:6]:
        with pytest.raises(ToolError, match="cannot be opened"):
            gone(tool, path, **arguments)
