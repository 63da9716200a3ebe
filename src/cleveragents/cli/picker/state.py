"""What the picker shows and what a key does to it: pure, one value after the other.

`wants` says what the loop has to do before the next key: look ahead, restore or leave.
"""

from collections.abc import Sequence
from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

from cleveragents.cli.picker.spans import Line, folded

_MOVES = {"up": -1, "k": -1, "down": 1, "j": 1}
_PAGES = {"page-up": -1, "page-down": 1, " ": 1}
_ENDS = {"home": -1, "g": -1, "end": 1, "G": 1}
_FAR = 1_000_000


class Want(StrEnum):
    LOOK = "look"
    RESTORE = "restore"
    LEAVE = "leave"
    INTERRUPT = "interrupt"


class Mode(StrEnum):
    LIST = "list"
    SEARCH = "search"
    PREVIEW = "preview"


class PickerRow(Struct, frozen=True, kw_only=True):
    """`target` is the id that a rollback to it takes; `words` are what is searched."""

    target: str
    number: str
    when: str
    name: str
    changed: str
    mark: str = ""
    dim: bool = False
    words: str = ""

    def fits(self, query: str) -> bool:
        text = f"{self.number} {self.name} {self.words}".casefold()
        return all(part in text for part in query.casefold().split())


class Preview(Struct, frozen=True, kw_only=True):
    """`refused` is why it cannot be restored; then `lines` say so."""

    lines: Sequence[Line]
    refused: bool = False


class Picker(Struct, frozen=True, kw_only=True):
    """`at` counts the rows that fit the query. There is room for `page` of them, and for `width`
    columns."""

    title: str
    rows: tuple[PickerRow, ...]
    at: int = 0
    query: str = ""
    mode: Mode = Mode.LIST
    preview: Preview | None = None
    scrolled: int = 0
    page: int = 10
    width: int = 80
    wants: Want | None = None

    @property
    def shown(self) -> Sequence[PickerRow]:
        return [row for row in self.rows if row.fits(self.query)]

    @property
    def chosen(self) -> PickerRow | None:
        shown = self.shown
        return shown[self.at] if shown else None

    @property
    def preview_lines(self) -> Sequence[Line]:
        """Sentences on as many lines as they need."""
        lines = self.preview.lines if self.preview else ()
        return [part for each in lines for part in folded(each, self.width)]

    def sized(self, page: int, width: int) -> "Picker":
        return replace(self, page=max(1, page), width=width).scrolled_by(0)

    def looked(self, preview: Preview) -> "Picker":
        """What was looked for is there."""
        return replace(self, preview=preview, mode=Mode.PREVIEW, scrolled=0, wants=None)

    def press(self, key: str) -> "Picker":
        now = replace(self, wants=None)
        if key == "ctrl-c":
            return replace(now, wants=Want.INTERRUPT)
        if self.mode is Mode.SEARCH:
            return now.typed(key)
        if self.mode is Mode.PREVIEW:
            return now.in_preview(key)
        return now.in_list(key)

    def in_list(self, key: str) -> "Picker":
        if key in ("q", "Q"):
            return replace(self, wants=Want.LEAVE)
        if key == "esc":  # first what was searched for, then the picker
            return self.searching("") if self.query else replace(self, wants=Want.LEAVE)
        if key == "/":
            return replace(self, mode=Mode.SEARCH)
        if key in ("enter", "r", "R"):
            return replace(self, wants=Want.LOOK) if self.chosen else self
        return self.moved(key)

    def typed(self, key: str) -> "Picker":
        if key == "enter":
            return replace(self, mode=Mode.LIST)
        if key == "esc":
            return replace(self.searching(""), mode=Mode.LIST)
        if key == "backspace":
            return self.searching(self.query[:-1])
        if key == "clear":
            return self.searching("")
        if len(key) == 1:
            return self.searching(self.query + key)
        return self.moved(key)

    def in_preview(self, key: str) -> "Picker":
        if key in ("q", "Q"):
            return replace(self, wants=Want.LEAVE)
        if key in ("esc", "backspace", "enter"):
            return replace(self, mode=Mode.LIST, preview=None, scrolled=0)
        if key in ("r", "R"):
            possible = self.preview is not None and not self.preview.refused
            return replace(self, wants=Want.RESTORE) if possible else self
        return self.scrolled_by(_distance(key, self.page))

    def searching(self, query: str) -> "Picker":
        """The row that was chosen stays so as long as it is there."""
        before, found = self.chosen, replace(self, query=query, at=0)
        shown = found.shown
        return replace(found, at=shown.index(before)) if before in shown else found

    def moved(self, key: str) -> "Picker":
        last = len(self.shown) - 1
        return replace(self, at=max(0, min(last, self.at + _distance(key, self.page))))

    def scrolled_by(self, lines: int) -> "Picker":
        last = max(0, len(self.preview_lines) - self.page)
        return replace(self, scrolled=max(0, min(last, self.scrolled + lines)))


def _distance(key: str, page: int) -> int:
    step = _MOVES.get(key, 0) + _PAGES.get(key, 0) * max(1, page - 1)
    return step + _ENDS.get(key, 0) * _FAR
