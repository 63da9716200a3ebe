"""How a state of the picker looks on a screen of any size: exactly as many lines as it has."""

from collections.abc import Sequence

from cleveragents.cli.picker.spans import Line, cut, line, padded, span
from cleveragents.cli.picker.state import Mode, Picker, PickerRow
from cleveragents.cli.render.text import width_of

_AROUND = 3  # the title, the line about the chosen row, and the keys
_HEAD = 1
_GAP = "  "
_MARKER = "> "
_LEAST_NAME = 12
_MOST_CHANGED = 40
_KEYS = {
    Mode.LIST: (
        "up/down move   / search   Enter preview   r restore   q leave",
        "/ search  Enter preview  r restore  q leave",
        "/  Enter  r  q",
    ),
    Mode.SEARCH: ("Enter keep   Esc clear", "Enter  Esc"),
    Mode.PREVIEW: (
        "r restore this   up/down scroll   Esc back   q leave",
        "r restore  Esc back  q leave",
        "r  Esc  q",
    ),
}
_REFUSED = ("Esc back   q leave", "Esc  q")


def room_for_rows(height: int, mode: Mode) -> int:
    """How many rows, or lines of a preview, a screen of this height shows."""
    return max(1, height - _AROUND - (0 if mode is Mode.PREVIEW else _HEAD))


def screen(picker: Picker, width: int, height: int) -> Sequence[Line]:
    body = _preview(picker) if picker.mode is Mode.PREVIEW else _list(picker, width)
    room = max(0, height - _AROUND)
    body = [*body[:room], *[line()] * (room - len(body))]
    lines = [
        line(span(cut(picker.title, width), bold=True)),
        *body,
        _about(picker),
        _foot(picker, width),
    ]
    return lines[-height:] if height < len(lines) else lines


def _list(picker: Picker, width: int) -> Sequence[Line]:
    shown = picker.shown
    if not shown:
        return [line(span("nothing fits", "dim"))]
    columns = _Columns(picker.rows, width)
    first = _first(picker.at, len(shown), picker.page)
    rows = [
        columns.row(row, chosen=first + at == picker.at)
        for at, row in enumerate(shown[first : first + picker.page])
    ]
    return [columns.head(), *rows]


def _first(at: int, rows: int, page: int) -> int:
    """The chosen one is in the middle, as far as there is something on both sides."""
    return max(0, min(at - page // 2, rows - page))


class _Columns:
    """Their widths; what there is no room for is left out, the name last of all."""

    def __init__(self, rows: Sequence[PickerRow], width: int) -> None:
        self._number = max([1, *(width_of(row.number) for row in rows)])
        when = max([4, *(width_of(row.when) for row in rows)])
        changed = min(_MOST_CHANGED, max([12, *(width_of(row.changed) for row in rows)]))
        self._mark = max(width_of(row.mark) for row in rows)
        names = max([_LEAST_NAME, *(width_of(row.name) for row in rows)])
        left = width - len(_MARKER) - self._number - len(_GAP)
        if left - _LEAST_NAME < self._mark + len(_GAP):
            self._mark = 1
        left -= self._mark + len(_GAP)
        self._when = when if left - when - len(_GAP) >= _LEAST_NAME else 0
        left -= self._when + len(_GAP) if self._when else 0
        spare = left - min(names, max(_LEAST_NAME, left // 2)) - len(_GAP)
        self._changed = min(changed, spare) if spare >= _LEAST_NAME else 0
        left -= self._changed + len(_GAP) if self._changed else 0
        self._name = max(1, min(names, left))

    def head(self) -> Line:
        texts = ["#", "when", "step", "what changed", ""]
        return line(span(" " * len(_MARKER) + self._joined(texts), "dim"))

    def row(self, row: PickerRow, *, chosen: bool) -> Line:
        texts = [row.number, row.when, row.name, row.changed, row.mark]
        marker = _MARKER if chosen else " " * len(_MARKER)
        if chosen or row.dim:
            text = span(marker + self._joined(texts), "dim" if row.dim else "plain")
            return line(text, chosen=chosen)
        first, *others, last = self._cells(texts)
        middle = [span(f"{_GAP}{cell}") for cell in others]
        ends = span(first, "accent"), span(f"{_GAP}{last}", "good")
        return line(span(marker), ends[0], *middle, ends[1])

    def _joined(self, texts: Sequence[str]) -> str:
        return _GAP.join(self._cells(texts))

    def _cells(self, texts: Sequence[str]) -> Sequence[str]:
        if self._mark == 1:
            texts = [*texts[:-1], texts[-1][:1]]
        widths = (self._number, self._when, self._name, self._changed, self._mark)
        return [padded(t, w) for t, w in zip(texts, widths, strict=True) if w]


def _preview(picker: Picker) -> Sequence[Line]:
    return picker.preview_lines[picker.scrolled : picker.scrolled + picker.page]


def _about(picker: Picker) -> Line:
    """What a narrow screen has no column for; in a preview how much more there is."""
    if picker.mode is Mode.PREVIEW:
        below = len(picker.preview_lines) - picker.scrolled - picker.page
        return line(span(f"{below} more lines below", "dim")) if below > 0 else line()
    row = picker.chosen
    if row is None:
        return line()
    of = f"{picker.at + 1} of {len(picker.shown)}"
    return line(span(f"{of}  {row.when}  {row.changed}", "dim"))


def _foot(picker: Picker, width: int) -> Line:
    if picker.mode is Mode.SEARCH:
        keys = span(f"   {_KEYS[Mode.SEARCH][0]}", "dim")
        return line(span("/", "accent"), span(picker.query), span("_", "accent"), keys)
    refused = picker.mode is Mode.PREVIEW and picker.preview is not None and picker.preview.refused
    known = _REFUSED if refused else _KEYS[picker.mode]
    text = next((keys for keys in known if width_of(keys) <= width), known[-1])
    if picker.query and picker.mode is Mode.LIST:
        return line(span(f"/{picker.query}", "accent"), span(f"   {text}", "dim"))
    return line(span(text, "dim"))
