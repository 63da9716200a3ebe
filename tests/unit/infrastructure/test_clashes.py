"""Both sides of a file that commits and a plan have changed, as people are told them."""

import subprocess
from pathlib import Path

import pytest

from cleveragents.infrastructure.sandbox.git.command import Git
from cleveragents.infrastructure.sandbox.git.merge import Clash, Version, told


class Blobs:
    def __init__(self, top: Path) -> None:
        subprocess.run(["git", "init", "-q", str(top)], check=True)
        self.git = Git(str(top))

    def version(self, text: bytes) -> Version:
        made = self.git.run("hash-object", "-w", "--stdin", input=text).stdout
        return Version(b"100644", made.decode().strip())

    def told(self, base: bytes | None, ours: bytes | None, theirs: bytes | None) -> list[str]:
        sides = [None if text is None else self.version(text) for text in (base, ours, theirs)]
        clash = Clash(path=b"a", base=sides[0], ours=sides[1], theirs=sides[2])
        return list(told(self.git, clash))


@pytest.fixture
def blobs(tmp_path: Path) -> Blobs:
    return Blobs(tmp_path)


def test_a_file_that_one_side_has_no_more(blobs: Blobs) -> None:
    by_project, by_plan = blobs.told(b"1\n", None, b"2\n"), blobs.told(b"1\n", b"2\n", None)

    assert by_project == ["the project has it no more, the plan has changed it"]
    assert by_plan == ["the plan has it no more, the project has changed it"]
    assert blobs.told(b"1\n", None, None) == []


def test_only_the_first_places_are_told_and_how_many_more_there_are(blobs: Blobs) -> None:
    def text(word: str) -> bytes:
        places = (f"{word}\n" + "".join(f"{n}.{m}\n" for m in range(9)) for n in range(5))
        return "".join(places).encode()

    lines = blobs.told(text("base"), text("ours"), text("theirs"))

    assert lines[:2] == ["line 1, the project:", "  ours"]
    assert lines[-1] == "and 2 more places"
    assert sum(line.endswith("the plan:") for line in lines) == 3


def test_lines_that_only_touch_each_other_are_told_as_one_place(blobs: Blobs) -> None:
    lines = blobs.told(b"a\nb\n", b"A\nb\n", b"a\nB\n")

    assert lines[0].startswith("line 1")
    assert {"  A", "  B"} <= set(lines)


def test_of_what_is_no_text_no_lines_are_told(blobs: Blobs) -> None:
    assert blobs.told(b"\0a", b"\0b", b"\0c") == []
