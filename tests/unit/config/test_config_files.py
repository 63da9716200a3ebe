"""Config files that cannot be read or written as they should: each is told with its place."""

from pathlib import Path

import pytest

from cleveragents.config.files import make_folder, read_toml, replace_file
from cleveragents.config.keys import ConfigProblem


def test_what_is_in_the_place_of_a_folder_is_told(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    with pytest.raises(ConfigProblem, match=f"folder {tmp_path}/taken/in.*cannot make it"):
        make_folder(str(tmp_path / "taken/in"), private=True)


def test_a_file_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigProblem, match=f"config file {tmp_path}/no/c.toml.*cannot write it"):
        replace_file(str(tmp_path / "no/c.toml"), "")


def test_a_folder_in_the_place_of_the_file_stays_and_nothing_is_left_beside_it(
    tmp_path: Path,
) -> None:
    (tmp_path / "c.toml").mkdir()
    with pytest.raises(ConfigProblem, match="cannot write it"):
        replace_file(str(tmp_path / "c.toml"), "a = 1")
    assert [path.name for path in tmp_path.iterdir()] == ["c.toml"]
    assert (tmp_path / "c.toml").is_dir()


def test_a_link_stays_one_and_the_file_behind_it_is_written(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real/c.toml").write_text("old")
    (tmp_path / "c.toml").symlink_to("real/c.toml")

    replace_file(str(tmp_path / "c.toml"), "new")

    assert (tmp_path / "c.toml").is_symlink()
    assert (tmp_path / "real/c.toml").read_text() == "new"
    assert [path.name for path in (tmp_path / "real").iterdir()] == ["c.toml"]


@pytest.mark.parametrize(
    ("content", "what"),
    [(b"\xff", "is not UTF-8 text"), (b"a = ", "is not valid TOML"), (None, "is not a file")],
)
def test_a_file_that_is_none_is_told(tmp_path: Path, content: bytes | None, what: str) -> None:
    file = tmp_path / "c.toml"
    if content is None:
        file.mkdir()
    else:
        file.write_bytes(content)
    with pytest.raises(ConfigProblem, match=what):
        read_toml(str(file), "the file")
