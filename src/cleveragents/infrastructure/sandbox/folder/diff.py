"""The difference between two states of a folder as people see it: counts, and a patch."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import NamedTuple

from msgspec.structs import replace

from cleveragents.domain.changes import ChangeKind, FileDiff, ResourceDiff
from cleveragents.domain.resource import PlanResource
from cleveragents.infrastructure.files.entry import MODE_BITS, Entry, Kind, parent_of, shown
from cleveragents.infrastructure.files.layers.overlay_marks import OPAQUE
from cleveragents.infrastructure.files.rooted_folder import RootedFolder
from cleveragents.infrastructure.sandbox.folder.patch import hunks, lines_of, quoted
from cleveragents.infrastructure.snapshots.tree.diff import PathDifference
from cleveragents.infrastructure.snapshots.tree.engine import TreeEngine
from cleveragents.infrastructure.snapshots.tree.session import open_sandbox

Content = Callable[[Entry], bytes]
# Beyond these a patch helps nobody: a larger file is only named, a longer patch ends early.
_FILE_BYTES = 1024 * 1024
_PATCH_CHARS = 4 * 1024 * 1024
_STORED_CHARS = 256 * 1024
_SNIFFED = 8000
_WITHOUT_BYTES = (Kind.DIR, Kind.WHITEOUT)


class _DiffPart(NamedTuple):
    file: FileDiff
    lines: Sequence[str]


def diff_of(
    differences: Sequence[PathDifference],
    old: Content,
    new: Content,
    left_behind: Sequence[str] = (),
) -> ResourceDiff:
    """`old` and `new` give the bytes of an entry before and after."""
    files: list[FileDiff] = []
    lines: list[str] = []
    room = _PATCH_CHARS
    for item in _counted(differences):
        part = _part(item, old, new)
        files.append(part.file)
        if room >= 0:
            lines.extend(part.lines)
            room -= sum(len(line) for line in part.lines)
    return ResourceDiff(
        files=tuple(files),
        patch=_bounded(lines, _PATCH_CHARS),
        left_behind=tuple(left_behind),
    )


def diff_since(snapshots: TreeEngine, resource: PlanResource, ref: str) -> ResourceDiff:
    """What the sandbox holds now against one of its snapshots."""
    with snapshots.reading(resource) as reader, open_sandbox(resource) as anchor:
        return diff_of(reader.since(ref), reader.content, contents_of(anchor))


def diff_between(snapshots: TreeEngine, resource: PlanResource, old: str, new: str) -> ResourceDiff:
    """Of two snapshots; the sandbox may be anything, or gone."""
    with snapshots.reading(resource) as reader:
        return diff_of(reader.between(old, new), reader.content, reader.content)


def contents_of(anchor: RootedFolder) -> Callable[[Entry], bytes]:
    """Reads files of the sandbox; one that has just gone is as good as empty."""

    def content(entry: Entry) -> bytes:
        with suppress(OSError), os.fdopen(anchor.open(entry.path), "rb") as file:
            return file.read(entry.size)
        return b""

    return content


def stored(diff: ResourceDiff) -> ResourceDiff:
    """As it is kept beyond the snapshots: what was applied, its patch shortened if it is long."""
    patch = _bounded(diff.patch.splitlines(keepends=True), _STORED_CHARS)
    return replace(diff, patch=patch, left_behind=())


def _bounded(lines: Iterable[str], limit: int) -> str:
    kept: list[str] = []
    for line in lines:
        limit -= len(line)
        if limit < 0:
            kept.append("The patch is cut off here.\n")
            break
        kept.append(line)
    return "".join(kept)


def _counted(differences: Sequence[PathDifference]) -> Iterator[PathDifference]:
    """A folder that comes or goes counts only if it is empty: else what it holds tells of it."""
    old_parents = {parent_of(item.path) for item in differences if item.old}
    new_parents = {parent_of(item.path) for item in differences if item.new}
    for item in differences:
        comes = item.old is None and _is_folder(item.new) and item.path in new_parents
        goes = item.new is None and _is_folder(item.old) and item.path in old_parents
        if not comes and not goes:
            yield item


def _is_folder(entry: Entry | None) -> bool:
    return entry is not None and entry.kind is Kind.DIR


def _part(item: PathDifference, old: Content, new: Content) -> _DiffPart:
    header = list(_header(item))
    if _same_bytes(item):
        return _DiffPart(_file(item, 0, 0), header)
    before, after = _text(item.old, old), _text(item.new, new)
    a, b = _sides(item)
    if before is None or after is None:
        what = "Binary" if _small(item.old) and _small(item.new) else "Large"
        return _DiffPart(_file(item, None, None), [*header, f"{what} files {a} and {b} differ\n"])
    found = list(hunks(before, after))
    added = sum(line.startswith("+") for line in found)
    deleted = sum(line.startswith("-") for line in found)
    marks = [f"--- {a}\n", f"+++ {b}\n"] if found else []
    return _DiffPart(_file(item, added, deleted), [*header, *marks, *found])


def _same_bytes(item: PathDifference) -> bool:
    """Only the mode differs, or neither side has bytes."""
    sides = [entry for entry in (item.old, item.new) if entry]
    if all(entry.kind in _WITHOUT_BYTES for entry in sides):
        return True
    return len(sides) == 2 and len({(e.kind, e.hash, e.target) for e in sides}) == 1


def _file(item: PathDifference, added: int | None, deleted: int | None) -> FileDiff:
    kind = ChangeKind.MODIFIED
    if _is_whiteout(item.new):
        kind = ChangeKind.DELETED
    elif item.old is None or _is_whiteout(item.old):
        kind = ChangeKind.ADDED
    elif item.new is None:
        kind = ChangeKind.DELETED
    slash = "/" if _is_folder(item.new or item.old) else ""
    return FileDiff(path=shown(item.path) + slash, kind=kind, insertions=added, deletions=deleted)


def _small(entry: Entry | None) -> bool:
    return entry is None or entry.size <= _FILE_BYTES


def _text(entry: Entry | None, content: Content) -> list[str] | None:
    """The lines; None for what is binary or too large to show."""
    if entry is None or entry.kind in _WITHOUT_BYTES:
        return []
    if entry.kind is Kind.LINK:
        return [shown(entry.target)]
    if not _small(entry):
        return None
    data = content(entry)
    return None if b"\0" in data[:_SNIFFED] else lines_of(data)


def _header(item: PathDifference) -> Iterator[str]:
    if _is_folder(item.old) or _is_folder(item.new):
        yield _folder_line(item)
    old, new = _git_mode(item.old), _git_mode(item.new)
    if old == new is None:
        return
    yield f"diff --git {quoted(b'a/' + item.path)} {quoted(b'b/' + item.path)}\n"
    if old is None:
        yield f"new file mode {new}\n"
    elif new is None:
        yield f"deleted file mode {old}\n"
    elif old != new:
        yield f"old mode {old}\nnew mode {new}\n"


def _folder_line(item: PathDifference) -> str:
    """Git has no words for folders; a line that tools skip tells of them."""
    name = quoted(item.path + b"/")
    old, new = item.old, item.new
    if old is not None and new is not None and old.kind is new.kind:
        if old.mode & MODE_BITS == new.mode & MODE_BITS:
            return f"Folder {name}: of the user's own, {_below(new)} (was: {_below(old)})\n"
        return f"Folder {name}: mode {_octal(old)} is now {_octal(new)}\n"
    if new is not None and new.kind is Kind.DIR:
        return f"New folder {name} (mode {_octal(new)})\n"
    return f"Removed folder {name}\n"


def _octal(entry: Entry) -> str:
    return f"{entry.mode & MODE_BITS:04o}"


def _below(entry: Entry) -> str:
    """Of a folder in a layer: how much of the lower one is seen through it."""
    return "nothing is seen" if entry.mode & OPAQUE else "the rest is seen"


def _is_whiteout(entry: Entry | None) -> bool:
    return entry is not None and entry.kind is Kind.WHITEOUT


def _git_mode(entry: Entry | None) -> str | None:
    if entry is None or entry.kind in _WITHOUT_BYTES:
        return None
    return "120000" if entry.kind is Kind.LINK else f"10{entry.mode:04o}"


def _sides(item: PathDifference) -> tuple[str, str]:
    old, new = quoted(b"a/" + item.path), quoted(b"b/" + item.path)
    nothing = "/dev/null"
    return (old if _git_mode(item.old) else nothing), (new if _git_mode(item.new) else nothing)
