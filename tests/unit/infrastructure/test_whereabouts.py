"""The folders one stands in, and where the way up ends."""

from pathlib import Path

import pytest

from cleveragents.infrastructure.files.whereabouts import CurrentFolder


@pytest.mark.parametrize("kind", ["folder", "file", "link that leads nowhere"])
def test_the_way_up_ends_at_the_top_of_a_repository(tmp_path: Path, kind: str) -> None:
    (tmp_path / ".git").mkdir()
    top = tmp_path / "inner"
    (top / "a" / "b").mkdir(parents=True)
    if kind == "folder":
        (top / ".git").mkdir()
    elif kind == "file":
        (top / ".git").write_text("gitdir: elsewhere\n")
    else:
        (top / ".git").symlink_to("nowhere")

    found = CurrentFolder(str(top / "a" / "b")).around()

    assert found == [str(top / "a" / "b"), str(top / "a"), str(top)]


def test_without_a_repository_it_goes_to_the_top_of_everything() -> None:
    assert CurrentFolder("/proc/self").around() == ["/proc/self", "/proc", "/"]
