"""The user's editor over a text in dispute: what it made of it, or why that cannot be used."""

from pathlib import Path

import pytest

from cleveragents.cli.editor import edited
from cleveragents.domain.errors import DeclinedError, UsageError


@pytest.fixture
def editor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program that the variable names; a test writes what it does."""
    program = tmp_path / "editor"
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setenv("EDITOR", str(program))
    return program


def does(program: Path, command: str) -> None:
    program.write_text(f"#!/bin/sh\n{command}\n")
    program.chmod(0o755)


def test_what_the_editor_has_made_of_it_counts(editor: Path) -> None:
    does(editor, 'echo mine >> "$1"')
    assert edited(b"both\n", "a.txt") == b"both\nmine\n"


def test_an_editor_may_come_with_words(editor: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    does(editor, 'echo "$1 $2" > "$3"')
    monkeypatch.setenv("VISUAL", f"'{editor}' --wait 'a b'")
    assert edited(b"", "a.txt") == b"--wait a b\n"


def test_an_editor_that_fails_has_decided_nothing(editor: Path) -> None:
    does(editor, 'echo mine > "$1"; exit 3')
    with pytest.raises(DeclinedError):
        edited(b"both\n", "a.txt")


@pytest.mark.parametrize("mark", ["<<<<<<< ours", ">>>>>>> theirs"])
def test_a_text_with_marks_left_is_no_decision(editor: Path, mark: str) -> None:
    does(editor, "true")
    with pytest.raises(UsageError, match="still has the marks"):
        edited(f"a\n{mark}\nb\n".encode(), "a.txt")


def test_an_editor_that_cannot_be_started_is_told(editor: Path) -> None:
    with pytest.raises(UsageError, match="cannot be started: No such file"):
        edited(b"", "a.txt")


@pytest.mark.parametrize("named", ["", "   ", "vi 'open"])
def test_without_an_editor_it_is_told_what_to_set(
    editor: Path, monkeypatch: pytest.MonkeyPatch, named: str
) -> None:
    monkeypatch.setenv("EDITOR", named)
    with pytest.raises(UsageError, match="no editor is known"):
        edited(b"", "a.txt")
