"""All that an installation keeps is removed, and nothing that somebody else made."""

from pathlib import Path

import pytest

from cleveragents.infrastructure.files.data_folder import DATABASE, FOLDERS, SETTINGS
from cleveragents.infrastructure.files.installed.own_files import InstalledFiles


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "data"
    deep = made / FOLDERS[0] / "closed" / "deep"
    deep.mkdir(parents=True)
    (deep / "file").write_text("x")
    deep.chmod(0o500)
    deep.parent.chmod(0o500)
    (made / DATABASE).write_text("records")
    (made / SETTINGS).write_text("")
    return made


def installed(folder: Path, closed: list[str] | None = None) -> InstalledFiles:
    said = [] if closed is None else closed
    return InstalledFiles(str(folder), "", lambda: said.append("closed"))


def test_closed_folders_go_too_and_the_folder_with_them(folder: Path) -> None:
    closed: list[str] = []
    assert installed(folder, closed).remove(keep_settings=False) == {}
    assert not folder.exists()
    assert closed == ["closed"]


def test_settings_can_stay_and_what_is_not_ours_stays(folder: Path) -> None:
    (folder / "notes.txt").write_text("mine")
    files = installed(folder)
    assert files.contents().strange == ("notes.txt",)
    assert files.remove(keep_settings=True) == {}
    assert {path.name for path in folder.iterdir()} == {"notes.txt", SETTINGS}


def test_a_link_goes_and_not_what_it_leads_to(folder: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "file").write_text("mine")
    (folder / FOLDERS[1]).symlink_to(elsewhere)
    assert installed(folder).remove(keep_settings=False) == {}
    assert (elsewhere / "file").read_text() == "mine"


def test_where_there_is_nothing_nothing_is_found(tmp_path: Path) -> None:
    files = installed(tmp_path / "nowhere")
    assert (files.contents().ours, files.contents().strange) == ({}, ())
    assert files.remove(keep_settings=False) == {}


def test_what_cannot_be_removed_is_named_with_the_reason(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(path: str, *, dir_fd: int | None = None) -> None:
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr("os.unlink", refused)
    failed = installed(folder).remove(keep_settings=False)
    assert failed[str(folder / DATABASE)] == "Permission denied"
    assert (folder / DATABASE).exists()
