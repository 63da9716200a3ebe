"""What the `rich` and `table` formats make of a block, fitted to the width there is.

Every text becomes a `Text`, never a string, so that rich finds no markup in it.
"""

from collections.abc import Sequence

from rich import box
from rich.console import ConsoleRenderable, Group
from rich.padding import Padding
from rich.rule import Rule
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from cleveragents.cli.render.blocks import (
    Branch,
    Code,
    Fields,
    Grid,
    Guides,
    Shown,
    Tree,
    branches,
    diff_tone,
    numeric_columns,
    text_of,
    tone_of,
)
from cleveragents.cli.render.palette import style
from cleveragents.cli.render.text import many_lines, one_line

DIM = style("dim")
_GAP = 3
_LIST_GAP = 2
_LEAST_CUT = 6
_WIDEST_NAME = 28
_LONGEST_WHOLE_WORD = 44  # an id and a config key stay whole; a longer path may be folded


def body_of(block: Fields | Grid | Tree, inner: int) -> ConsoleRenderable:
    """What stands in a box that has `inner` columns for it."""
    match block:
        case Fields():
            return _pairs(block.rows, inner)
        case Tree():
            return _tree(block.root, inner)
        case Grid() if not block.rows:
            return Text(one_line(block.empty), style=DIM)
        case Grid() if block.cut:
            widths = _cut_widths(block, inner)
            return _cards(block, inner) if widths is None else _list(block, widths)
        case Grid():
            return _grid(block) if _least_width(block) <= inner else _cards(block, inner)


def wanted_width(block: Fields | Grid | Tree) -> int:
    """The columns a grid needs to have each row on one line; the others take what they get."""
    if not isinstance(block, Grid) or not block.rows:
        return 0
    widest = [max(cell.cell_len for cell in column) for column in _columns(block)]
    return sum(widest) + _GAP * (len(widest) - 1)


def code_text(code: Code) -> Text:
    lines = [line.expandtabs(4) for line in many_lines(code.text)]
    if code.language == "diff":
        return Text("\n").join(Text(line, style=style(diff_tone(line))) for line in lines)
    if code.language == "text":
        return Text("\n".join(lines))
    painted = Syntax("", code.language, theme="ansi_dark").highlight("\n".join(lines))
    painted.rstrip()
    return painted


def paragraph(text: str) -> Text:
    """Several lines, with what stands between backticks, mostly commands, made visible."""
    parts = "\n".join(line.expandtabs(4) for line in many_lines(text)).split("`")
    if len(parts) % 2 == 0:
        return Text("`".join(parts))
    shown = Text()
    for number, part in enumerate(parts):
        shown.append(part if number % 2 == 0 else f"`{part}`", style="bold" if number % 2 else "")
    return shown


def paragraph_block(text: str) -> ConsoleRenderable:
    """The same, folded to the width there is; a bare text would be left to the terminal."""
    return Padding(paragraph(text), (0, 0, 0, 0), expand=False)


def hanging(mark: Text, text: Text) -> Table:
    """`text` after `mark`, its further lines under its first."""
    table = Table.grid(padding=(0, 1))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    table.add_row(mark, text)
    return table


def cell_text(shown: Shown) -> Text:
    return Text(one_line(text_of(shown)), style=style(tone_of(shown)))


def heading(title: str, facts: Sequence[Shown], width: int) -> Text:
    """On one line: the title, and what else there is to know of all that follows."""
    line = Text(one_line(title), style="bold", no_wrap=True, overflow="ellipsis")
    for fact in facts:
        line.append(" · ", style=DIM) if line.plain else None
        line.append_text(cell_text(fact))
    line.truncate(width, overflow="ellipsis")
    return line


def _pairs(rows: Sequence[tuple[str, Shown]], inner: int) -> ConsoleRenderable:
    names = [Text(one_line(name), style=DIM) for name, _ in rows]
    values = [cell_text(value) for _, value in rows]
    widest = min(max((name.cell_len for name in names), default=0), _WIDEST_NAME)
    if widest + 2 + _needed(values) > inner:
        return _stacked(names, values)
    table = Table.grid(padding=(0, 2, 0, 0), pad_edge=False)
    table.add_column(overflow="fold", width=widest)
    table.add_column(overflow="fold")
    for name, value in zip(names, values, strict=True):
        table.add_row(name, value)
    return table


def _stacked(names: Sequence[Text], values: Sequence[Text]) -> Group:
    """Each value under its name, so that an id stays in one piece on a narrow terminal."""
    pairs = zip(names, values, strict=True)
    return Group(*(part for name, value in pairs for part in (name, Padding(value, (0, 0, 0, 2)))))


def _grid(grid: Grid) -> Table:
    table = Table(
        box=box.SIMPLE_HEAD,
        padding=(0, 1),
        pad_edge=False,
        show_edge=False,
        border_style=DIM,
        header_style="bold",
    )
    widest = [max(cell.cell_len for cell in column) for column in _columns(grid)]
    measures = zip(_least_widths(grid), widest, numeric_columns(grid), strict=True)
    for name, (least, most, right) in zip(grid.columns, measures, strict=True):
        table.add_column(
            Text(one_line(name)),
            min_width=least,
            justify="right" if right else "left",
            # Rich takes from the widest column first, and cuts the table if that cannot give.
            no_wrap=least == most,
            overflow="fold",
        )
    for row in grid.rows:
        table.add_row(*map(cell_text, row))
    return table


def _cards(grid: Grid, inner: int) -> Group:
    """Each row as pairs, one under the other, where the columns do not fit side by side."""
    parts: list[ConsoleRenderable] = []
    for row in grid.rows:
        pairs = list(zip(grid.columns, row, strict=True))
        parts += [Rule(style=DIM), _pairs(pairs, inner)]
    return Group(*parts[1:])


def _list(grid: Grid, widths: Sequence[int]) -> Table:
    """A line for each row, without a box."""
    named = any(grid.columns)
    table = Table.grid(padding=(0, _LIST_GAP, 0, 0), pad_edge=False)
    table.show_header, table.header_style = named, DIM
    for name, width, right in zip(grid.columns, widths, numeric_columns(grid), strict=True):
        table.add_column(
            Text(one_line(name), style=DIM),
            width=width,
            justify="right" if right else "left",
            no_wrap=True,
            overflow="ellipsis",
        )
    for row in grid.rows:
        table.add_row(*map(cell_text, row))
    return table


def _cut_widths(grid: Grid, inner: int) -> list[int] | None:
    """How wide each column may be; None if the terminal is too narrow even so."""
    widths = [max(cell.cell_len for cell in column) for column in _columns(grid)]
    room = inner - _LIST_GAP * (len(widths) - 1)
    giving = [number for number, name in enumerate(grid.columns) if name in grid.cut]
    while sum(widths) > room:
        widest = max(giving, key=lambda number: widths[number])
        if widths[widest] <= _LEAST_CUT:
            return None
        widths[widest] -= 1
    return widths


def _tree(root: Branch, inner: int) -> Group:
    return Group(*(_branch(lead, branch, inner) for lead, branch in branches(root, Guides())))


def _branch(lead: str, branch: Branch, inner: int) -> Text:
    note = Text(f"  {one_line(branch.note)}" if branch.note else "", style=DIM)
    text = cell_text(branch.text)
    if branch.dim:
        text.stylize(DIM)
    # What is deep on a narrow terminal keeps at least a few letters.
    text.truncate(max(inner - len(lead) - note.cell_len, _LEAST_CUT), overflow="ellipsis")
    line = Text.assemble((lead, DIM), text, note)
    line.truncate(inner, overflow="ellipsis")
    return line


def _least_width(grid: Grid) -> int:
    needed = _least_widths(grid)
    return sum(needed) + _GAP * (len(needed) - 1)


def _least_widths(grid: Grid) -> list[int]:
    """A number stays on one line with its unit; of other cells, only each word does."""
    return [
        max(cell.cell_len for cell in column) if number else _needed(column)
        for column, number in zip(_columns(grid), numeric_columns(grid), strict=True)
    ]


def _needed(column: Sequence[Text]) -> int:
    words = (Text(word).cell_len for cell in column for word in cell.plain.split())
    return min(max(words, default=1), _LONGEST_WHOLE_WORD)


def _columns(grid: Grid) -> list[tuple[Text, ...]]:
    header = [Text(one_line(name)) for name in grid.columns]
    rows = [[cell_text(cell) for cell in row] for row in grid.rows]
    return list(zip(header, *rows, strict=True))
