"""What going to a row would change, as lines: what is undone, files by folder, tables."""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from cleveragents.cli.picker.spans import Line, Span, line, span
from cleveragents.cli.picker.state import PickerRow, Preview
from cleveragents.cli.views.everyday import Tables, other_files, table_rows
from cleveragents.cli.views.files import FileRow
from cleveragents.cli.views.rollbacks import rollback_warnings
from cleveragents.cli.views.words import count, toned

if TYPE_CHECKING:
    from cleveragents.domain.checkpoint import RollbackPreview
    from cleveragents.domain.errors import PlanError

_MOST_NAMED = 200
_SIGNS = {"removed": "- ", "restored": "~ ", "added": "+ ", "deleted": "- ", "modified": "~ "}


def previewed(row: PickerRow, found: "RollbackPreview", tables: Tables) -> Preview:
    files = other_files(found.reverted, tables)
    lines = [
        line(),
        line(span("Restore "), span(row.number, "accent"), span(f"  {row.name}", bold=True)),
        line(span(_undone(found), "dim")),
        line(),
        *_files(files),
        *_tables(table_rows(tables)),
        *(line(span(f"! {text}", "warn")) for text in rollback_warnings(found, foretold=True)),
        line(),
        line(span("The state of now becomes a checkpoint first, so nothing is lost.", "dim")),
    ]
    return Preview(lines=lines)


def refused(row: PickerRow, error: "PlanError") -> Preview:
    lines = [
        line(),
        line(span(f"{row.number}  {row.name}", bold=True)),
        line(),
        *(line(span(text, "bad")) for text in error.message.splitlines()),
        *(line(span(text, "dim")) for text in error.hint.splitlines()),
    ]
    return Preview(lines=lines, refused=True)


def _undone(found: "RollbackPreview") -> str:
    parts = [
        count(found.decisions_discarded, "decision"),
        count(found.tool_calls_undone, "tool call"),
    ]
    if found.child_plans_invalidated:
        parts.append(count(found.child_plans_invalidated, "child plan"))
    return f"takes back {', '.join(parts)}"


def _files(files: Sequence[FileRow]) -> Iterator[Line]:
    """Each folder with what becomes of its files; where there are too many, folders alone."""
    if not files:
        yield line(span("no file differs", "dim"))
        return
    words = Counter(file.word for file in files)
    told = ", ".join(f"{number} {word}" for word, number in words.items())
    yield line(span(count(len(files), "file"), bold=True), span(f"   {told}", "dim"))
    for folder, inside in groupby(sorted(files, key=_place), _folder):
        found = list(inside)
        yield line(span(f"  {folder}", "accent"), span(f"  {len(found)}", "dim"))
        if len(files) <= _MOST_NAMED:
            for file in found:
                name = span(file.path.removeprefix(folder))
                yield line(_sign(file), name, span(f"  {file.word}", "dim"))


def _tables(tables: Sequence[FileRow]) -> Iterator[Line]:
    if tables:
        yield line()
        yield line(span(count(len(tables), "table"), bold=True))
    for table in tables:
        yield line(_sign(table), span(table.path), span(f"  {table.word}  {table.lines}", "dim"))


def _sign(file: FileRow) -> Span:
    return span(f"    {_SIGNS.get(file.word, '  ')}", toned(file.word).tone)


def _place(file: FileRow) -> tuple[str, str]:
    return _folder(file), file.path


def _folder(file: FileRow) -> str:
    """With several resources, what is at the top of one has its name."""
    at = max(file.path.rfind("/"), file.path.find(":"))
    return file.path[: at + 1] or "./"
