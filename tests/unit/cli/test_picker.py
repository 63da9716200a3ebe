"""The picker without a terminal: what keys do, and how each state looks on a screen of any size."""

import os
import re
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cleveragents.cli.picker import terminal
from cleveragents.cli.picker.drawing import room_for_rows, screen
from cleveragents.cli.picker.keys import KeyReader
from cleveragents.cli.picker.spans import drawn, line, span
from cleveragents.cli.picker.state import Mode, Picker, PickerRow, Preview, Want
from cleveragents.cli.render.text import width_of, without_colours

KEYS = st.sampled_from(
    ["up", "down", "j", "k", "page-up", "page-down", "home", "end", "g", "G", "enter", "esc", "/",
     "r", "q", "x", "1", "ö", "backspace", "clear", " "]
)  # fmt: skip


def a_row(number: int, **fields: object) -> PickerRow:
    values = {
        "target": f"id-{number}",
        "number": str(number),
        "when": "12:00:00",
        "name": f"step number {number}",
        "changed": f"src/file-{number}.py new, 2 more",
        **fields,
    }
    return PickerRow(**values)  # pyright: ignore[reportArgumentType]


def a_picker(rows: int = 30, **fields: object) -> Picker:
    values = {"title": "hello-1  shop", "rows": tuple(a_row(n) for n in range(rows, 0, -1))}
    return Picker(**{**values, **fields})  # pyright: ignore[reportArgumentType]


def pressed(picker: Picker, *keys: str) -> Picker:
    for key in keys:
        picker = picker.press(key)
        if picker.wants is Want.LOOK:
            picker = picker.looked(Preview(lines=[line(span(f"line {n}")) for n in range(40)]))
    return picker


def texts(picker: Picker, width: int = 80, height: int = 24) -> list[str]:
    picker = picker.sized(room_for_rows(height, picker.mode), width)
    lines = drawn(screen(picker, width, height), width, colours=True)
    return [without_colours(text) for text in lines]


def number(picker: Picker) -> str:
    assert picker.chosen is not None
    return picker.chosen.number


@pytest.mark.parametrize(
    ("sent", "keys"),
    [
        (b"\x1b[A\x1b[B", ["up", "down"]),
        (b"\x1bOA\x1bOB", ["up", "down"]),
        (b"\x1b[5~\x1b[6~", ["page-up", "page-down"]),
        (b"\x1b[H\x1b[F\x1b[1~\x1b[4~\x1bOH\x1bOF", ["home", "end"] * 3),
        (b"\r\n", ["enter", "enter"]),
        (b"jk/q", ["j", "k", "/", "q"]),
        ("ä€😀".encode(), ["ä", "€", "😀"]),
        (b"\x03", ["ctrl-c"]),
        (b"\x7f\x08\x15", ["backspace", "backspace", "clear"]),
        (b"\x1b[1;5C\x1b[200~x", ["x"]),
        (b"\x1b\x1b[A", ["esc", "up"]),
    ],
)
def test_what_a_terminal_sends_becomes_keys(sent: bytes, keys: list[str]) -> None:
    assert KeyReader().feed(sent) == keys
    reader = KeyReader()
    assert [key for byte in sent for key in reader.feed(bytes([byte]))] == keys


def test_an_escape_alone_is_known_once_nothing_more_comes() -> None:
    reader = KeyReader()
    assert reader.feed(b"\x1b") == []
    assert reader.waits
    assert reader.rest() == ["esc"]
    assert not reader.waits


@given(st.binary(max_size=40))
def test_no_bytes_stop_the_reader(data: bytes) -> None:
    reader = KeyReader()
    found = [*reader.feed(data), *reader.rest()]
    assert all(found)
    assert not reader.waits


def test_moving_stays_within_the_rows() -> None:
    picker = a_picker().sized(10, 80)
    assert number(picker) == "30"
    assert number(pressed(picker, "up")) == "30"
    assert number(pressed(picker, "down", "j", "j", "k")) == "28"
    assert number(pressed(picker, "page-down")) == "21"
    assert number(pressed(picker, "page-down", "page-up")) == "30"
    assert number(pressed(picker, "end")) == "1"
    assert number(pressed(picker, "G", "down")) == "1"
    assert number(pressed(picker, "end", "home")) == "30"


def test_a_search_narrows_the_rows_and_escape_widens_them() -> None:
    picker = pressed(a_picker(), "/", "r", " ", "2", "7")
    assert picker.query == "r 27"
    assert [row.number for row in picker.shown] == ["27"]
    assert picker.wants is None
    kept = pressed(picker, "enter")
    assert (kept.mode, kept.query) == (Mode.LIST, "r 27")
    widened = pressed(kept, "esc")
    assert (widened.query, len(widened.shown), number(widened)) == ("", 30, "27")
    assert pressed(widened, "esc").wants is Want.LEAVE
    assert pressed(picker, "backspace", "clear").query == ""
    nothing = pressed(picker, "x", "enter", "enter", "r")
    assert (nothing.chosen, nothing.wants) == (None, None)
    assert any("nothing fits" in text for text in texts(nothing))


def test_nothing_is_restored_before_its_preview_was_there() -> None:
    picker = a_picker().press("r")
    assert picker.wants is Want.LOOK
    looked = pressed(a_picker(), "down", "r")
    assert (looked.mode, looked.wants) == (Mode.PREVIEW, None)
    assert looked.press("r").wants is Want.RESTORE
    assert number(looked.press("r")) == "29"
    back = looked.press("esc")
    assert (back.mode, back.wants, number(back)) == (Mode.LIST, None, "29")


def test_what_is_refused_cannot_be_restored() -> None:
    refused = a_picker().looked(Preview(lines=[line(span("in use"))], refused=True))
    assert refused.press("r").wants is None
    assert "restore" not in texts(refused)[-1]


def test_a_preview_scrolls() -> None:
    picker = pressed(a_picker().sized(10, 80), "enter")
    assert pressed(picker, "down", "j").scrolled == 2
    assert pressed(picker, "end").scrolled == 30
    assert pressed(picker, "end", "home", "up").scrolled == 0
    assert any("more lines below" in text for text in texts(picker))
    assert "line 39" in "\n".join(texts(pressed(picker, "end")))


@pytest.mark.parametrize("key", ["q", "esc", "ctrl-c"])
def test_it_can_be_left_from_everywhere(key: str) -> None:
    left = pressed(a_picker(), key)
    assert left.wants in (Want.LEAVE, Want.INTERRUPT)
    assert pressed(a_picker(), "enter", "q").wants is Want.LEAVE
    assert pressed(a_picker(), "/", "ctrl-c").wants is Want.INTERRUPT


@given(st.lists(KEYS, max_size=30), st.integers(1, 120), st.integers(1, 60), st.integers(0, 50))
def test_every_state_fits_every_screen(keys: list[str], width: int, height: int, rows: int) -> None:
    picker = a_picker(rows)
    for key in keys:
        picker = pressed(picker, key)
        shown = texts(picker, width, height)
        assert len(shown) == max(height, 0)
        assert all(width_of(text) <= width for text in shown), shown
        if picker.mode is not Mode.PREVIEW and picker.chosen and height > 4 and width > 9:
            assert sum(text.startswith(">") for text in shown) == 1


def test_a_wide_screen_shows_everything_about_a_row() -> None:
    marked = a_row(7, mark="● here")
    shown = texts(a_picker(rows=0).sized(10, 80))
    assert shown[1] == "nothing fits"
    text = texts(Picker(title="t", rows=(marked, a_row(6, dim=True, mark="undone"))))
    assert re.fullmatch(
        r"> 7  12:00:00  step number 7 +src/file-7.py new, 2 more +● here *", text[2]
    )
    assert "undone" in text[3]
    assert "Enter preview" in text[-1]


def test_a_narrow_screen_keeps_number_name_and_mark() -> None:
    text = texts(Picker(title="t", rows=(a_row(7, mark="● here"),)), 20, 8)
    assert text[2].startswith("> 7  step number")
    assert text[2].rstrip().endswith("●")
    assert "12:00:00" in text[-2]
    assert text[-1] == "/  Enter  r  q"


def test_without_colours_the_chosen_row_can_be_told() -> None:
    picker = a_picker().sized(10, 80)
    shown = drawn(screen(picker, 80, 24), 80, colours=False)
    assert not any("38;5" in text for text in shown)
    assert [text for text in shown if "> 30" in text]


def test_text_of_others_moves_no_cursor() -> None:
    shown = drawn([line(span("a\x1b[2J\nb"))], 80, colours=True)
    assert "\x1b[2J" not in shown[0]
    assert "\n" not in shown[0]


# --- at the terminal ------------------------------------------------------------------------------


class Streams:
    """Our input is a pipe that `typing` leads to; `resizing` tells of another size."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._input, self.typing = os.pipe()
        self.resized, self.resizing = os.pipe()
        monkeypatch.setattr(terminal.sys, "stdin", self)
        monkeypatch.setattr(terminal.sys, "stdout", self)

    def fileno(self) -> int:
        return self._input

    def next(self) -> list[str]:
        return terminal._keys(KeyReader(), self.resized)


def test_keys_another_size_and_the_end_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(terminal, "_LOOK_SECONDS", 0.01)
    with monkeypatch.context() as patched:
        streams = Streams(patched)
        os.write(streams.typing, b"j")
        assert streams.next() == ["j"]
        os.write(streams.typing, b"\x1b")
        assert streams.next() == ["esc"]
        os.write(streams.resizing, b"\x1c")
        assert streams.next() == []
        later = threading.Timer(0.1, os.write, (streams.typing, b"k"))
        later.start()
        assert streams.next() == ["k"]
        later.join()
        os.close(streams.typing)
        assert streams.next() == ["ctrl-c"]


def test_what_has_no_size_is_as_large_as_terminals_usually_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with monkeypatch.context() as patched:
        Streams(patched)
        assert terminal._size() == (80, 24)
