"""Many files: by name, or summed up by folder."""

import pytest

from cleveragents.cli.render.blocks import text_of
from cleveragents.cli.views.files import MOST_FILES, FileRow, file_grid


def rows(*files: FileRow) -> list[list[str]]:
    grid = file_grid("Files", files, column="action", empty="none")
    return [[text_of(cell) for cell in row] for row in grid.rows]


def many(folder: str, number: int, word: str) -> list[FileRow]:
    return [FileRow(f"{folder}f{n}.txt", word) for n in range(number)]


def test_up_to_twenty_files_are_named() -> None:
    files = many("src/", MOST_FILES, "restored")
    assert rows(*files) == [[file.path, "restored"] for file in files]


def test_more_are_summed_up_by_folder_with_what_became_of_them() -> None:
    files = [*many("src/", 312, "restored"), *many("src/new/", 4, "removed"), *many("", 1, "kept")]
    assert rows(*files) == [["./", "1 kept"], ["src/", "312 restored"], ["src/new/", "4 removed"]]


def test_one_folder_says_both_words() -> None:
    files = [*many("a/b/", 30, "restored"), FileRow("a/b/x", "removed")]
    assert rows(*files) == [["a/b/", "30 restored, 1 removed"]]


def test_the_sum_is_of_all_files_and_says_where_they_are_named() -> None:
    grid = file_grid("Files", many("src/", 21, "restored"), column="action", empty="none")
    assert grid.columns == ["folder", "action"]
    assert [text_of(fact) for fact in grid.facts] == [
        "21 files by folder; all of them: --format json"
    ]


@pytest.mark.parametrize("folders", [16, 400])
def test_the_smallest_of_very_many_folders_are_one_row(folders: int) -> None:
    files = [FileRow(f"d{n:03}/f{m}", "removed") for n in range(folders) for m in range(1 + n % 3)]
    found = rows(*files)
    assert len(found) == 15
    assert found[-1][0] == f"{folders - 14} other folders"
    assert sum(int(row[1].split()[0]) for row in found) == len(files)


def test_lines_are_summed_up_too() -> None:
    files = [FileRow(f"src/{n}", "modified", 2, 1, counted=True) for n in range(30)]
    assert rows(*files) == [["src/", "30 modified", "+60 -30"]]


def test_binary_files_say_so() -> None:
    assert rows(FileRow("a.png", "added", counted=True)) == [["a.png", "added", "binary"]]
