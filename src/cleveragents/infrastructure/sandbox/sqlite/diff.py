"""The difference between two databases as people see it: schema and rows, table by table.

SQLite tells it, inside (`infrastructure/sqlite/inside_compare.py`, and `inside_rows.py` for rows:
it compares them itself, and only those that are shown come into memory): what a step left there is
only bytes here. How long a comparison may take is in `worker.py` there, how much memory in
`inside.py`.
"""

import os
import stat
from collections.abc import Sequence

from cleveragents.domain.changes import ChangeKind, FileDiff, ResourceDiff
from cleveragents.infrastructure.files.descriptors import opened
from cleveragents.infrastructure.files.entry import shown
from cleveragents.infrastructure.sandbox.sqlite.compare import same_content
from cleveragents.infrastructure.sqlite.answers import DatabaseDifference, RefusedInsideError
from cleveragents.infrastructure.sqlite.worker import (
    DatabasePlace,
    DatabaseWorkers,
    LostInsideError,
)

_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def diff_of_databases(
    workers: DatabaseWorkers, old: str, new: DatabasePlace, left_behind: Sequence[str] = ()
) -> ResourceDiff:
    """From the file `old`, which nobody changes, to `new`, which may be anything or missing."""
    name = shown(os.fsencode(os.path.basename(new.path)))
    if not _is_file(new.path):
        note = f"database {name}: it is gone\n"
        return _whole(name, ChangeKind.DELETED, note, left_behind)
    try:
        found = workers.compare(old, new, name)
    except (RefusedInsideError, LostInsideError) as error:
        note = f"database {name}: it cannot be compared: {error}\n"
        return _whole(name, ChangeKind.MODIFIED, note, left_behind)
    if not found.parts and not _same_bytes(old, new.path):
        note = f"database {name}: the rows are the same, in another place in the file\n"
        return _whole(name, ChangeKind.MODIFIED, note, left_behind)
    notes = "".join(f"database {name}: {note}\n" for note in found.notes)
    return ResourceDiff(
        files=_files(name, found), patch=notes + found.patch, left_behind=tuple(left_behind)
    )


def _files(name: str, found: DatabaseDifference) -> tuple[FileDiff, ...]:
    return tuple(
        FileDiff(
            path=f"{name}/{part.table}" if part.table else name,
            kind=part.kind,
            insertions=part.insertions,
            deletions=part.deletions,
        )
        for part in found.parts
    )


def _whole(name: str, kind: ChangeKind, note: str, left_behind: Sequence[str]) -> ResourceDiff:
    file = FileDiff(path=name, kind=kind, insertions=None, deletions=None)
    return ResourceDiff(files=(file,), patch=note, left_behind=tuple(left_behind))


def _is_file(path: str) -> bool:
    try:
        return stat.S_ISREG(os.lstat(path).st_mode)
    except FileNotFoundError:
        return False


def _same_bytes(old: str, new: str) -> bool:
    with opened(old, _READ) as one, opened(new, _READ) as two:
        return same_content(one, two)
