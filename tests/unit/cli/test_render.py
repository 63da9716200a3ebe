"""Rendering for people: every format, on every terminal, and nothing that can control one."""

import io
import subprocess
import sys
from typing import Any

import pytest
from msgspec.structs import replace
from render_world import (
    CALL,
    DECISIONS,
    PLAN,
    REVERTED,
    ROLLBACK,
    SUMMARY,
    no_terminal,
    show,
    show_error,
)
from rich.cells import cell_len

from cleveragents.cli.framework import FORMATS
from cleveragents.cli.render import make_renderer
from cleveragents.cli.render.blocks import (
    Block,
    Branch,
    Cell,
    Code,
    CommandResult,
    Fields,
    Grid,
    Tone,
    Tree,
    diff_tone,
)
from cleveragents.cli.render.palette import COLOURS
from cleveragents.domain.errors import CheckpointRequiredError, PlanError

__all__ = ["no_terminal"]

CHECKPOINT = "01JCXYZ0000000000000000CHK"
HOSTILE = "a\x1b[2J\x9b1A\r\n\t\u202eb\udcff[bold red]x[/]"
SPELLED = "a\\x1b[2J\\x9b1A\\r\\n\\t\\u202eb\\xff[bold red]x[/]"
HUMAN = ("plain", "color", "table", "rich")


def of(*blocks: Block) -> CommandResult:
    return CommandResult(data={}, blocks=blocks)


def test_plain_is_titles_and_aligned_lines() -> None:
    assert show("plain", ROLLBACK).out == (
        "Rollback Summary\n"
        "  plan:           01JCXYZ0000000000000000PAN\n"
        "  files reverted: 2\n"
        "\n"
        "Changes Reverted\n"
        "  file        action      size\n"
        "  src/app.py  restored  1.2 kB\n"
        "  日本.md     removed        -\n"
        "\n"
        "Decisions\n"
        "  prompt\n"
        "  ├── strategy\n"
        "  │   └── old  (superseded)\n"
        "  └── tool\n"
        "\n"
        "Patch\n"
        "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-old\n+new\tone\n"
        "\n"
        "Rollback complete\n"
    )


def test_plain_warnings_go_to_stderr() -> None:
    assert show("plain", ROLLBACK).err == "warning: a mail was sent\n  it stays sent\n"


def test_a_block_without_a_title_starts_at_the_left_edge() -> None:
    assert show("plain", of(Fields("", [("key", "value"), ("none", "")]))).out == (
        "key:  value\nnone:\n"
    )


def test_an_empty_grid_says_so() -> None:
    for format in HUMAN:
        assert "no plans" in show(format, of(Grid("Plans", ["id"], [], empty="no plans"))).out


def test_nothing_to_show_is_nothing_on_stdout() -> None:
    for format in HUMAN:
        assert show(format, of()).out == ""


def test_color_is_the_plain_layout_with_tones() -> None:
    screen = show("color", ROLLBACK)
    assert "\x1b[1mRollback Summary\x1b[0m\n" in screen.out
    assert "\x1b[38;5;28mrestored\x1b[0m" in screen.out
    assert "\x1b[38;5;160m-old\x1b[0m\n\x1b[38;5;28m+new\tone\x1b[0m\n" in screen.out
    assert screen.out.endswith("\x1b[38;5;28mRollback complete\x1b[0m\n")
    assert screen.err.startswith("\x1b[38;5;130mwarning:\x1b[0m a mail")


def test_color_without_colour_is_plain() -> None:
    assert show("color", ROLLBACK, no_color=True).out == show("plain", ROLLBACK).out


def test_a_human_error_goes_to_stderr_with_its_hint() -> None:
    screen = show_error("plain", CheckpointRequiredError(PLAN, ["one", "two"]))
    assert screen.out == ""
    assert screen.err == (
        f"error: say which checkpoint of plan {PLAN} you mean. There are:\n"
        "    one\n"
        "    two\n"
        "hint: name it by its number, or by the letters before its name; all of them: "
        f"agents plan checkpoint list {PLAN}\n"
        "code: checkpoint-required\n"
    )


def test_an_error_without_a_hint_has_no_hint_line() -> None:
    for format in HUMAN:
        assert "hint" not in show_error(format, PlanError("it failed", "")).err


def test_a_rich_error_is_a_panel_with_hint_and_code() -> None:
    screen = show_error("rich", PlanError("no plan `X`", "see `agents plan list`"))
    lines = screen.err.splitlines()
    assert screen.out == ""
    assert lines[0].startswith("╭─ Error ─")
    assert "│ no plan `X`" in lines[1]
    assert "│ hint: see `agents plan list`" in lines[3]
    assert "plan-error ─╯" in lines[4]


def hostile_outcome() -> CommandResult:
    return CommandResult(
        data={},
        blocks=[
            Fields(HOSTILE, [(HOSTILE, HOSTILE)]),
            Grid(HOSTILE, [HOSTILE], [[Cell(HOSTILE, "good")]]),
            Grid("none", ["x"], [], empty=HOSTILE),
            Tree(HOSTILE, Branch(HOSTILE, [Branch(HOSTILE)], note=HOSTILE)),
            Code(HOSTILE, HOSTILE, "diff"),
            Code(HOSTILE, HOSTILE, "text"),
            Code(HOSTILE, HOSTILE, "python"),
        ],
        messages=[HOSTILE],
        warnings=[HOSTILE],
    )


@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
@pytest.mark.parametrize("format", HUMAN)
def test_user_content_cannot_control_the_terminal(format: str, encoding: str) -> None:
    screen = show(format, hostile_outcome(), width=100, encoding=encoding)
    error = show_error(format, PlanError(HOSTILE, HOSTILE), width=100, encoding=encoding)
    for text in (screen.out, screen.err, error.err):
        assert "\x1b[2J" not in text
        assert not set("\x9b\r\u202e\udcff") & set(text)
    assert SPELLED in screen.out
    assert "[bold red]x[/]" in error.err


@pytest.mark.parametrize("format", HUMAN)
def test_a_stream_of_ascii_gets_ascii(format: str) -> None:
    screen = show(format, ROLLBACK, encoding="ascii")
    assert "??.md" in screen.out
    assert "Rollback complete" in screen.out
    assert screen.out.isascii()


def test_trees_are_drawn_in_ascii_where_there_is_nothing_else() -> None:
    assert "  |-- strategy\n  |   `-- old  (superseded)\n  `-- tool\n" in (
        show("plain", of(DECISIONS), encoding="ascii").out
    )


@pytest.mark.parametrize("format", ["rich", "table"])
@pytest.mark.parametrize("width", [30, 40, 80, 200])
def test_boxes_fit_the_terminal(format: str, width: int) -> None:
    wide = Grid(
        "Checkpoints",
        ["checkpoint", "group", "resource", "label", "step"],
        [[CHECKPOINT, PLAN, "app", "after writing the new module", str(n)] for n in range(3)],
    )
    blocks = [SUMMARY, REVERTED, wide, DECISIONS]
    screen = show(format, of(*blocks), width=width)
    error = show_error(format, PlanError("word " * 40, "x" * 300), width=width)
    for line in (screen.out + error.err).splitlines():
        assert cell_len(line) <= width


@pytest.mark.parametrize("width", [40, 80])
def test_ids_stay_in_one_piece_so_that_they_can_be_copied(width: int) -> None:
    columns = ["checkpoint", "group", "label", "reason", "created"]
    row = [CHECKPOINT, PLAN, "after writing the new module", "on_tool_write", "2026-11-15 12:00"]
    text = show("rich", of(SUMMARY, Grid("Checkpoints", columns, [row])), width=width).out
    assert text.count(PLAN) == 2
    assert text.count(CHECKPOINT) == 1


def test_rich_draws_a_titled_panel_for_what_is_framed() -> None:
    lines = show("rich", ROLLBACK).out.splitlines()
    assert lines[0] == "╭─ Rollback Summary " + "─" * 59 + "╮"
    assert lines[1] == "│ plan            01JCXYZ0000000000000000PAN".ljust(79) + "│"
    assert lines[3] == "╰" + "─" * 78 + "╯"
    assert any(line.startswith("╭─ Changes Reverted ─") for line in lines)
    assert lines[-1].rstrip() == "✓ Rollback complete"


def test_rich_warnings_go_to_stderr_with_their_lines_aligned() -> None:
    lines = show("rich", ROLLBACK).err.splitlines()
    assert [line.rstrip() for line in lines] == [
        "warning: a mail was sent",
        "         it stays sent",
    ]


def test_a_patch_has_no_frame_and_its_lines_are_not_folded() -> None:
    text = show("rich", of(Code("Patch", "+" + "long " * 40 + "\n", "diff")), width=40).out
    assert text.splitlines()[1].rstrip() == ("+" + "long " * 40).rstrip()


def test_code_in_a_known_language_keeps_its_text() -> None:
    for title in ("app.py", ""):
        text = show("rich", of(Code(title, "def f():\n\treturn [1]\n", "python"))).out
        assert text.endswith("def f():\n    return [1]\n")


def test_a_backtick_without_a_partner_is_left_alone() -> None:
    assert "it`s odd" in show("rich", CommandResult(data={}, messages=["it`s odd"])).out


def coloured(monkeypatch: pytest.MonkeyPatch, format: str, **options: Any) -> str:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    return show(format, of(REVERTED), **options).out


def test_rich_colours_tones_and_respects_no_color(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "\x1b[32mrestored" in coloured(monkeypatch, "rich")  # the nearest of sixteen
    assert "\x1b[32m" not in coloured(monkeypatch, "rich", no_color=True)


def test_what_is_forbidden_wins_over_what_is_forced(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "\x1b" not in coloured(monkeypatch, "rich", no_color=True)
    assert "\x1b" not in coloured(monkeypatch, "color", no_color=True)


def _luminance(number: int) -> float:
    """Of one of the 256 colours, as WCAG has it."""
    if number >= 232:
        rgb = [8 + 10 * (number - 232)] * 3
    else:
        steps = (0, 95, 135, 175, 215, 255)
        rgb = [steps[(number - 16) // 36], steps[(number - 16) // 6 % 6], steps[(number - 16) % 6]]
    parts = [c / 255 for c in rgb]
    red, green, blue = (c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("tone", COLOURS)
def test_no_colour_vanishes_on_a_white_or_on_a_black_terminal(tone: Tone) -> None:
    light = _luminance(COLOURS[tone])
    assert 1.05 / (light + 0.05) > 3.8  # on white
    assert (light + 0.05) / 0.05 > 3.8  # on black


LIST = Grid(
    "hello-3",
    ["#", "step", "what changed"],
    [["2", "a step with a rather long name", "src/a/long/path/of/a/file.py"], ["1", "b", "c"]],
    facts=["shop", Cell("finished", "good")],
    cut=("step", "what changed"),
)


def test_a_list_has_no_box_and_what_to_type_next_right_below() -> None:
    shown = show("rich", CommandResult(data={}, blocks=[LIST], messages=["back: rollback 1"])).out
    assert [line.rstrip() for line in shown.splitlines()] == [
        "hello-3 · shop · finished",
        "  #  step                            what changed",
        "  2  a step with a rather long name  src/a/long/path/of/a/file.py",
        "  1  b                               c",
        "back: rollback 1",
    ]


def test_plain_has_the_same_facts_without_drawing() -> None:
    assert show("plain", of(LIST)).out.splitlines()[0] == "hello-3; shop; finished"


@pytest.mark.parametrize("width", [30, 40, 50])
def test_a_row_of_a_list_is_one_line_cut_where_it_may_be(width: int) -> None:
    lines = show("rich", of(LIST), width=width).out.splitlines()
    assert len(lines) == 4
    assert lines[2].count("…") == 2
    assert all(cell_len(line) <= width for line in lines)


def test_a_list_on_a_terminal_of_twenty_columns_is_told_row_by_row() -> None:
    lines = show("rich", of(replace(LIST, columns=["#", "step", "x" * 9])), width=20).out
    assert all(cell_len(line) <= 20 for line in lines.splitlines())
    assert "rather" in lines


def test_only_what_was_done_has_a_tick() -> None:
    seen = CommandResult(data={}, messages=["nothing was changed"])
    assert "✓" not in show("rich", seen).out
    assert show("rich", replace(seen, done=True)).out.startswith("✓ nothing")
    assert "\x1b" not in show("color", seen).out


def test_a_branch_is_one_line_and_its_note_stays_whole() -> None:
    tree = Tree("", Branch("root", [Branch("word " * 40, note="● here")]))
    lines = show("rich", of(tree), width=60).out.splitlines()
    assert len(lines) == 2
    assert lines[1].rstrip().endswith("…  ● here")


def test_table_has_boxes_and_never_colour(monkeypatch: pytest.MonkeyPatch) -> None:
    text = coloured(monkeypatch, "table")
    assert text.startswith("┌─ Changes Reverted ─")
    assert "\x1b" not in text


def test_combining_marks_take_no_column() -> None:
    rows = [["e\u0301", "x"], ["ee", "x"]]
    assert show("plain", of(Grid("", ["ab", "c"], rows))).out == "ab  c\ne\u0301   x\nee  x\n"


def test_a_removed_comment_is_not_taken_for_a_file_header() -> None:
    assert diff_tone("--- a sql comment") == "bad"
    assert [diff_tone(line) for line in ("--- a/x", "+++ /dev/null", "diff --git")] == ["dim"] * 3


@pytest.mark.parametrize("format", FORMATS)
def test_a_closed_pipe_is_left_to_the_caller(format: str) -> None:
    class Closed(io.StringIO):
        def flush(self) -> None:
            raise BrokenPipeError

    renderer = make_renderer(format, CALL, stdout=Closed(), stderr=io.StringIO())
    with pytest.raises(BrokenPipeError):
        renderer.show(ROLLBACK)


def test_an_unknown_format_is_a_programming_error() -> None:
    with pytest.raises(ValueError, match="unknown format 'xml'"):
        make_renderer("xml", CALL, stdout=io.StringIO(), stderr=io.StringIO())


@pytest.mark.parametrize(
    ("format", "absent"),
    [("json", "rich yaml"), ("plain", "rich yaml"), ("color", "rich yaml"), ("yaml", "rich")],
)
def test_a_format_imports_only_what_it_needs(format: str, absent: str) -> None:
    program = (
        "import sys, datetime\n"
        "from cleveragents.cli.render import make_renderer\n"
        "from cleveragents.cli.render.blocks import CommandResult, Invocation\n"
        "now = datetime.datetime.now(datetime.UTC)\n"
        "call = Invocation(command='x', started=now, duration_ms=1)\n"
        f"renderer = make_renderer({format!r}, call, stdout=sys.stdout, stderr=sys.stderr)\n"
        "renderer.show(CommandResult(data={}))\n"
        f"sys.exit(str([m for m in {absent!r}.split() if m in sys.modules]))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stderr == "[]\n"


def test_no_column_is_lost_when_a_grid_must_wrap() -> None:
    rows = [
        ["●", "01M7GVZTYJGNTJSSE3BHS9JH0Y", "0", "after file.write src/login.py", "code", "5 B"]
    ]
    grid = Grid("Checkpoints", ["", "group", "step", "label", "changed", "size"], rows)
    text = show("table", of(grid)).out
    assert "01M7GVZTYJGNTJSSE3BHS9JH0Y" in text
    assert "size" in text
    assert "5 B" in text
