"""Long answers at a terminal: through a pager, and whole whatever becomes of it."""

import stat

import pytest
from tests.support.terminals import on_a_terminal
from tests.support.world import World

LONG = ("tool", "list")
SMALL = {"LINES": "8", "COLUMNS": "100"}
LAST = "more about one: agents tool show NAME"


def program(world: World, text: str) -> str:
    """A pager of our own."""
    path = world.top / "pages"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


def test_what_is_longer_than_the_screen_goes_through_the_pager(world: World) -> None:
    pager = program(world, "echo BEGIN; cat; echo END")
    code, drawn = on_a_terminal(world, *LONG, **SMALL, PAGER=pager)
    assert code == 0
    assert drawn.startswith("BEGIN")
    assert drawn.rstrip().endswith("END")
    assert drawn.count(LAST) == 1


def test_the_programs_own_variable_comes_first(world: World) -> None:
    ours = program(world, "echo OURS; cat")
    _, drawn = on_a_terminal(world, *LONG, **SMALL, AGENTS_PAGER=ours, PAGER="false")
    assert drawn.startswith("OURS")


def test_what_fits_needs_no_pager(world: World) -> None:
    pager = program(world, "echo BEGIN; cat")
    _, drawn = on_a_terminal(world, *LONG, LINES="200", COLUMNS="100", PAGER=pager)
    assert "BEGIN" not in drawn
    assert LAST in drawn


@pytest.mark.parametrize(
    "pager", ["/nowhere/pager", "false", "sh -c 'cat >/dev/null; exit 3'", "'unclosed", "", "cat"]
)
def test_a_pager_that_is_missing_or_fails_leaves_the_answer_once_and_whole(
    world: World, pager: str
) -> None:
    code, drawn = on_a_terminal(world, *LONG, **SMALL, PAGER=pager)
    assert code == 0
    assert drawn.count(LAST) == 1
    assert "file.write" in drawn


def test_quitting_early_is_no_error(world: World) -> None:
    code, drawn = on_a_terminal(world, *LONG, **SMALL, PAGER="head -n 1")
    assert code == 0
    assert LAST not in drawn


@pytest.mark.parametrize("words", [("--no-pager", *LONG), (*LONG, "--no-pager")])
def test_no_pager_is_heard_anywhere_on_the_line(world: World, words: tuple[str, ...]) -> None:
    pager = program(world, "echo BEGIN; cat")
    _, drawn = on_a_terminal(world, *words, **SMALL, PAGER=pager)
    assert "BEGIN" not in drawn
    assert LAST in drawn


def test_settings_switch_it_off(world: World) -> None:
    pager = program(world, "echo BEGIN; cat")
    _, drawn = on_a_terminal(world, *LONG, **SMALL, PAGER=pager, CLEVERAGENTS_PAGER="off")
    assert "BEGIN" not in drawn
    world.agents("config", "set", "pager", "off").ok()
    _, drawn = on_a_terminal(world, *LONG, **SMALL, PAGER=pager)
    assert "BEGIN" not in drawn


@pytest.mark.parametrize("format", ["json", "yaml"])
def test_what_programs_read_is_never_paged(world: World, format: str) -> None:
    pager = program(world, "echo BEGIN; cat")
    _, drawn = on_a_terminal(world, *LONG, "--format", format, **SMALL, PAGER=pager)
    assert "BEGIN" not in drawn


def test_without_a_terminal_nothing_is_paged(world: World) -> None:
    pager = program(world, "echo BEGIN; cat")
    out = world.agents.having(PAGER=pager, **SMALL).inside(*LONG, "--format", "plain").ok()
    assert "BEGIN" not in out.out


def test_a_warning_comes_after_the_pages(world: World) -> None:
    pager = program(world, "cat; echo END")
    _, drawn = on_a_terminal(
        world, *LONG, **SMALL, PAGER=pager, CLEVERAGENTS_PAGRE="off", TERM="dumb"
    )
    assert drawn.index("END") < drawn.index("CLEVERAGENTS_PAGRE")
