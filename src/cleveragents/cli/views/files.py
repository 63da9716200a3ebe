"""How many files look: each by its name, or above twenty summed up by folder; data has them all."""

from collections import Counter
from collections.abc import Mapping, Sequence

from msgspec import Struct

from cleveragents.cli.render.blocks import Cell, Grid
from cleveragents.cli.views.words import count, toned
from cleveragents.domain.changes import FileDiff, ResourceDiff

MOST_FILES = 20
_MOST_FOLDERS = 15


class FileRow(Struct, frozen=True):
    """What became of one file; lines are None where nobody has counted them."""

    path: str
    word: str
    added: int | None = None
    deleted: int | None = None
    counted: bool = False

    @property
    def lines(self) -> str:
        if self.added is None or self.deleted is None:
            return "binary" if self.counted else ""
        return f"+{self.added} -{self.deleted}"


def file_grid(
    title: str, files: Sequence[FileRow], *, column: str, empty: str, framed: bool = False
) -> Grid:
    """`column` is what the word about each is called."""
    many = len(files) > MOST_FILES
    lines = any(file.counted for file in files)
    rows = _folder_rows(files) if many else [[f.path, toned(f.word), f.lines] for f in files]
    return Grid(
        title,
        ["folder" if many else "file", column, *(["lines"] if lines else [])],
        [row if lines else row[:2] for row in rows],
        empty=empty,
        facts=[f"{count(len(files), 'file')} by folder; all of them: --format json"]
        if many
        else (),
        framed=framed,
    )


def rows_of(diffs: Mapping[str, ResourceDiff]) -> list[FileRow]:
    return [
        FileRow(path, file.kind, file.insertions, file.deletions, counted=True)
        for path, file in files_of(diffs)
    ]


def files_of(diffs: Mapping[str, ResourceDiff]) -> list[tuple[str, FileDiff]]:
    """With the resource's name before each where there are several."""
    many = len(diffs) > 1
    return [
        (f"{name}:{file.path}" if many else file.path, file)
        for name, item in diffs.items()
        for file in item.files
    ]


def file_data(files: Sequence[tuple[str, FileDiff]]) -> Sequence[Mapping[str, str]]:
    return [{"path": path, "change": change_of(file), "status": file.kind} for path, file in files]


def change_of(file: FileDiff) -> str:
    if file.insertions is None or file.deletions is None:
        return "binary"
    return f"+{file.insertions} -{file.deletions}"


def _folder_rows(files: Sequence[FileRow]) -> list[list[str | Cell]]:
    folders = _folders(files)
    largest = sorted(folders, key=lambda name: -len(folders[name]))
    shown = set(largest if len(folders) <= _MOST_FOLDERS else largest[: _MOST_FOLDERS - 1])
    rows = [_folder_row(name, folders[name]) for name in folders if name in shown]
    rest = [file for name in folders if name not in shown for file in folders[name]]
    if rest:
        rows.append(_folder_row(f"{len(folders) - len(shown)} other folders", rest))
    return rows


def _folder_row(name: str, files: Sequence[FileRow]) -> list[str | Cell]:
    words = Counter(file.word for file in files)
    added, deleted = sum(f.added or 0 for f in files), sum(f.deleted or 0 for f in files)
    told = ", ".join(f"{number} {word}" for word, number in words.items())
    return [name, told, f"+{added} -{deleted}"]


def _folders(files: Sequence[FileRow]) -> Mapping[str, Sequence[FileRow]]:
    """As deep as there are not too many of them."""
    deepest = max(len(file.path.split("/")) for file in files)
    found = _at_depth(files, 1)
    for depth in range(2, deepest):
        deeper = _at_depth(files, depth)
        if len(deeper) > _MOST_FOLDERS:
            break
        found = deeper
    return found


def _at_depth(files: Sequence[FileRow], depth: int) -> dict[str, list[FileRow]]:
    folders: dict[str, list[FileRow]] = {}
    several = all(":" in file.path.split("/")[0] for file in files)  # of resources, by their names
    for file in files:
        above = file.path.split("/")[:-1][:depth]
        top = f"{file.path.partition(':')[0]}:./" if several else "./"
        folders.setdefault("/".join((*above, "")) if above else top, []).append(file)
    return dict(sorted(folders.items()))
