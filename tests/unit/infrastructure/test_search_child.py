"""What `file.search` does inside of its process: the question is JSON, and so is the answer."""

import io
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cleveragents.infrastructure.tools.builtin import search_child

Search = Callable[..., dict[str, Any]]


@pytest.fixture
def search(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Search:
    def ask(pattern: str, start: str = "", *, most_bytes: int = 10_000) -> dict[str, Any]:
        asked = {
            "pattern": pattern,
            "top": str(tmp_path),
            "start": str(tmp_path / start),
            "most_bytes": most_bytes,
        }
        answer = io.StringIO()
        monkeypatch.setattr(sys, "stdin", io.StringIO(json.dumps(asked)))
        monkeypatch.setattr(sys, "stdout", answer)
        search_child.main()
        return json.loads(answer.getvalue())

    return ask


def test_each_line_that_matches_is_told_with_its_number(tmp_path: Path, search: Search) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / "b/two").write_text("x\nneedle 2\r\n")
    (tmp_path / "a").write_text("needle 1\n\nneedle 3")

    assert search("need[l]e") == {
        "lines": ["a:1:needle 1", "a:3:needle 3", "b/two:2:needle 2"],
        "more": False,
    }


def test_a_single_file_can_be_searched(tmp_path: Path, search: Search) -> None:
    (tmp_path / "a").write_text("needle")
    (tmp_path / "b").write_text("needle")

    assert search("needle", "b")["lines"] == ["b:1:needle"]


def test_what_is_gits_is_no_text_or_is_a_link_is_not_looked_at(
    tmp_path: Path, search: Search
) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git/config").write_text("needle")
    (tmp_path / "module").mkdir()
    (tmp_path / "module/.git").write_text("needle")
    (tmp_path / "binary").write_bytes(b"needle\0needle")
    (tmp_path / "link").symlink_to("text")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "text").write_text("needle")

    assert search("needle")["lines"] == ["module/.git:1:needle", "text:1:needle"]


def test_the_file_by_which_a_checkout_finds_its_repository_is_not_looked_at(
    tmp_path: Path, search: Search
) -> None:
    (tmp_path / ".git").write_text("gitdir: needle")

    assert search("needle")["lines"] == []


def test_names_and_lines_that_are_no_utf_8_are_told_in_text(tmp_path: Path, search: Search) -> None:
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9")).write_bytes(b"needle \xe9\n")

    assert search("needle")["lines"] == ["caf\\xe9:1:needle \N{REPLACEMENT CHARACTER}"]


def test_of_a_very_long_line_the_part_is_shown_where_it_was_found(
    tmp_path: Path, search: Search
) -> None:
    (tmp_path / "long").write_text("x" * 5000 + "needle" + "y" * 5000)

    (line,) = search("needle")["lines"]
    assert "xneedley" in line
    assert line.startswith("long:1:… x") and line.endswith("y …")
    assert len(line) < 2100


def test_a_line_without_an_end_is_looked_at_in_pieces_of_one_number(
    tmp_path: Path, search: Search
) -> None:
    whole = (1 << 20) * 2
    (tmp_path / "endless").write_text("x" * whole + "needle\nneedle")

    numbers = [line.split(":")[1] for line in search("needle")["lines"]]
    assert numbers == ["1", "2"]


def test_more_than_enough_is_not_told(tmp_path: Path, search: Search) -> None:
    (tmp_path / "many").write_text("needle\n" * (search_child.MOST_MATCHES + 1))

    answer = search("needle", most_bytes=1 << 20)
    assert (len(answer["lines"]), answer["more"]) == (search_child.MOST_MATCHES, True)


def test_more_than_there_is_room_for_is_not_told(tmp_path: Path, search: Search) -> None:
    (tmp_path / "many").write_text("needle\n" * 100)

    answer = search("needle", most_bytes=50)
    assert answer["more"]
    assert 1 < len(answer["lines"]) < 10


@pytest.mark.parametrize(
    "pattern",
    ["(", "a{99999999999999999999}", "(" * 5000 + ")" * 5000],
    ids=["open", "large", "deep"],
)
def test_a_pattern_that_is_none_is_told_as_such(search: Search, pattern: str) -> None:
    answer = search(pattern)
    assert answer["is_pattern"]
    assert answer["problem"]


def test_a_place_that_is_not_there_is_told_as_such(search: Search) -> None:
    assert search("needle", "nowhere") == {
        "problem": "No such file or directory",
        "is_pattern": False,
    }
