"""Makes the pictures of docs/day.md, and docs/evidence/day.txt, by living a new user's day."""

import sys
from itertools import groupby

from picture import drawn
from rich.style import Style
from rich.text import Text
from world import ROOT

sys.path.insert(0, str(ROOT))

from tests.support.new_user import Shown, live
from tests.support.screens import Cell, Screen

PICTURES = ROOT / "docs/images/day"
TEXT = ROOT / "docs/evidence/day.txt"


def main() -> None:
    day = live()
    PICTURES.mkdir(parents=True, exist_ok=True)
    for old in PICTURES.glob("*.svg"):
        old.unlink()
    for name, screen in named(day):
        (PICTURES / f"{name}.svg").write_text(drawn(lines(screen), f"day-{name}"))
    TEXT.write_text(as_text(day))


def named(day: list[Shown]) -> list[tuple[str, Screen]]:
    """By the page's name; what was asked comes before what was done."""
    found: list[tuple[str, Screen]] = []
    for shown in day:
        *asked, done = shown.screens
        found += [(f"{shown.page.name}-asked", screen) for screen in asked]
        found.append((shown.page.name, done))
    return found


def as_text(day: list[Shown]) -> str:
    """What all screens say, without what differs from run to run."""
    return "\n\n".join(text for shown in day for text in shown.texts) + "\n"


def lines(screen: Screen) -> list[Text]:
    rows = list(screen.rows)
    while rows and not "".join(cell.text for cell in rows[-1]).strip():
        rows.pop()
    return [line(row) for row in rows]


def line(row: tuple[Cell, ...]) -> Text:
    text = Text()
    for look, cells in groupby(row, lambda cell: cell[1:]):
        name, bold, reverse = look
        colour = None if name == "default" else _colour(name)
        style = Style(color=colour, bold=bold, reverse=reverse)
        text.append("".join(cell.text for cell in cells), style)
    text.rstrip()
    return text


def _colour(name: str) -> str:
    """As rich calls it: hexadecimal digits, or a name."""
    is_hex = len(name) == 6 and all(letter in "0123456789abcdef" for letter in name)
    return f"#{name}" if is_hex else {"brown": "yellow"}.get(name, name)


if __name__ == "__main__":
    main()
