"""A program is found as a shell would find it."""

import shutil
from pathlib import Path

import pytest

from cleveragents.infrastructure.processes.on_path import program_on_path


def test_the_first_that_may_be_run_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders = [tmp_path / name for name in ("absent", "folder", "closed", "first", "second")]
    for folder in folders[1:]:
        folder.mkdir()
    (tmp_path / "folder" / "it").mkdir()
    (tmp_path / "closed" / "it").write_text("")
    for name in ("first", "second"):
        (tmp_path / name / "it").write_text("")
        (tmp_path / name / "it").chmod(0o700)
    monkeypatch.setenv("PATH", ":".join(["", *map(str, folders)]))

    assert program_on_path("it") == str(tmp_path / "first" / "it") == shutil.which("it")
    assert program_on_path("another") is None


@pytest.mark.parametrize("path", [None, ""])
def test_without_a_path_the_usual_places_are_looked_at_and_with_an_empty_one_none(
    path: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    if path is None:
        monkeypatch.delenv("PATH")
    else:
        monkeypatch.setenv("PATH", path)

    assert (program_on_path("sh") is None) == (path == "")
