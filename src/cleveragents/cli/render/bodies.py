"""What stands inside a box of the `rich` and `table` formats, fitted to its width.

Every text becomes a `Text`, never a string, so that rich finds no markup in it.
"""

from collections.abc import Mapping, Sequence

from rich import box
from rich.console import ConsoleRenderable, Group
from rich.padding import Padding
from rich.rule import Rule
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text
from rich.tree import Tree as RichTree

from cleveragents.cli.render.blocks import (
    Branch,
    Code,
    Fields,
    Grid,
    Shown,
    Tone,
    Tree,
    diff_tone,
    numeric_columns,
    text_of,
    tone_of,
)
from cleveragents.cli.render.text import many_lines, one_line

_STYLES: Mapping[Tone, str] = {
    "good": "green",
    "bad": "red",
    "warn": "yellow",
    "dim": "dim",
    "accent": "cyan",
    "plain": "",
}
_GAP = 3
_WIDEST_NAME = 28
_LONGEST_WHOLE_WORD = 44  # an id and a config key stay whole; a longer path may be folded


def body_of(block: Fields | Grid | Tree, inner: int) -> ConsoleRenderable:
    """What stands in a box that has `inner` columns for it."""
    match block:
        case Fields():
            return _pairs(block.rows, inner)
        case Tree():
            return _tree(block.root)
        case Grid() if not block.rows:
            return Text(one_line(block.empty), style="dim")
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
        return Text("\n").join(Text(line, style=_STYLES[diff_tone(line)]) for line in lines)
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


def hanging(mark: Text, text: Text) -> Table:
    """`text` after `mark`, its further lines under its first."""
    table = Table.grid(padding=(0, 1))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    table.add_row(mark, text)
    return table


def cell_text(shown: Shown) -> Text:
    return Text(one_line(text_of(shown)), style=_STYLES[tone_of(shown)])


def _pairs(rows: Sequence[tuple[str, Shown]], inner: int) -> ConsoleRenderable:
    names = [Text(one_line(name), style="dim") for name, _ in rows]
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
        border_style="dim",
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
        parts += [Rule(style="dim"), _pairs(pairs, inner)]
    return Group(*parts[1:])


def _tree(root: Branch) -> RichTree:
    tree = RichTree(_branch_text(root), guide_style="dim")
    _grow(tree, root)
    return tree


def _grow(tree: RichTree, branch: Branch) -> None:
    for child in branch.children:
        _grow(tree.add(_branch_text(child)), child)


def _branch_text(branch: Branch) -> Text:
    text = cell_text(branch.text)
    if branch.note:
        text.append(f"  {one_line(branch.note)}", style="dim")
    if branch.dim:
        text.stylize("dim")
    return text


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
