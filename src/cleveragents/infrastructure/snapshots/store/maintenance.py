"""Looking after the snapshot files as a whole: their sizes, their health, their leftovers."""

import os
import shutil
import sqlite3
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import closing, suppress

from cleveragents.application.ports.maintenance import StoreShare
from cleveragents.domain.ids import PlanId
from cleveragents.infrastructure.files.installed.disk_usage import bytes_below
from cleveragents.infrastructure.files.installed.trash import Trash
from cleveragents.infrastructure.snapshots.store.disk_limits import size_of

_ULID_LENGTH = 26
_ABANDONED_SECONDS = 24 * 3600
_RECENT = "(SELECT hash FROM recent_paths WHERE seq)"
_USERS = ("versions", _RECENT, "side_contents", "page_versions")
"""The tables whose rows each use a content; git keeps some of those, and they take no room here."""
_IDS = ("content_ids", "recent_content_ids")
_CONTENT = (
    "SELECT SUM(c.size) FROM {} u JOIN {} i ON i.hash = u.hash JOIN contents c ON c.id = i.id"
)


class SnapshotFiles:
    """The files in `snapshots_dir`, one database per plan, and the temporary ones in `scratch_dir`.

    Other processes may be at work here at any time, so only what nobody can need is removed:
    snapshots are stored for plans on record, and one that is not may be in another database.
    `is_busy` says whether a plan is being worked on by anybody, who may need his temporary files
    for days.
    """

    def __init__(
        self,
        snapshots_dir: str,
        scratch_dir: str,
        is_busy: Callable[[], bool],
        sandboxes_dir: str = "",
        database: str = "",
    ) -> None:
        self._snapshots = snapshots_dir
        self._scratch = scratch_dir
        self._is_busy = is_busy
        self._sandboxes = sandboxes_dir
        self._database = database
        self._trash = Trash(os.path.dirname(scratch_dir))

    @property
    def location(self) -> str:
        return self._snapshots

    def shares(self) -> Sequence[StoreShare]:
        return [self._share(plan, size) for plan, size in sorted(self.snapshot_bytes().items())]

    def snapshot_bytes(self) -> Mapping[str, int]:
        sizes: dict[str, int] = {}
        for entry in _entries(self._snapshots):
            plan = entry.name[:_ULID_LENGTH]
            sizes[plan] = sizes.get(plan, 0) + size_of(entry)
        return sizes

    def sandbox_bytes(self) -> Mapping[str, int]:
        return {entry.name: bytes_below(entry.path) for entry in _entries(self._sandboxes)}

    def database_bytes(self) -> int:
        folder, name = os.path.split(self._database)
        return sum(size_of(entry) for entry in _entries(folder) if entry.name.startswith(name))

    def problems(self, plan_id: PlanId) -> Sequence[str]:
        """What SQLite itself finds wrong with the plan's file; empty if nothing is."""
        path = self._path(plan_id)
        if not os.path.exists(path):
            return []
        try:
            with closing(_open(path)) as db:
                rows = db.execute("PRAGMA integrity_check(10)").fetchall()
        except sqlite3.DatabaseError as error:
            return [str(error)]
        return [str(row[0]) for row in rows if row[0] != "ok"]

    def leftovers(self) -> Sequence[str]:
        return [*(entry.path for entry in self._abandoned()), *self._trash.stuck()]

    def sweep(self) -> int:
        """Remove what crashes left behind: old temporary files, and what was thrown away."""
        freed = 0
        if self._trash.stuck():
            freed = self._trash.size()
            self._trash.empty_now()
            freed -= self._trash.size()
        return freed + sum(_remove(entry) for entry in self._abandoned())

    def trash_bytes(self) -> int:
        return self._trash.size()

    def strangers(self, known: Callable[[], Collection[str]]) -> Sequence[str]:
        stored = _entries(self._snapshots)
        # Asked after the files were listed: a plan made in between is known, its file not listed.
        plans = known()
        return sorted(e.path for e in stored if e.name[:_ULID_LENGTH] not in plans)

    def _abandoned(self) -> Sequence[os.DirEntry[str]]:
        oldest = time.time_ns() / 1e9 - _ABANDONED_SECONDS
        found = [entry for entry in _entries(self._scratch) if _is_older(entry, oldest)]
        return [] if found and self._is_busy() else found

    def _share(self, plan: str, size: int) -> StoreShare:
        content, stored, snapshots = self._amounts(self._path(plan))
        return StoreShare(
            plan_id=plan,
            disk_bytes=size,
            content_bytes=content,
            stored_bytes=stored,
            snapshots=snapshots,
        )

    def _amounts(self, path: str) -> tuple[int, int, int]:
        """What the snapshots hold, what that takes compressed and once each, and their number."""
        try:
            with closing(_open(path)) as db:
                sums = (_CONTENT.format(users, ids) for users in _USERS for ids in _IDS)
                content = sum(_number(db, query) for query in sums)
                stored = _number(db, "SELECT SUM(LENGTH(data)) FROM contents")
                snapshots = _number(db, "SELECT COUNT(*) FROM snapshots")
        except sqlite3.DatabaseError:
            return 0, 0, 0  # `problems` says what is wrong with it
        return content, stored, snapshots

    def _path(self, plan: str) -> str:
        return os.path.join(self._snapshots, f"{plan}.db")


def _number(db: sqlite3.Connection, query: str) -> int:
    return int(db.execute(query).fetchone()[0] or 0)


def _entries(folder: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as found:
            return list(found)
    except (FileNotFoundError, NotADirectoryError):
        return []


def _open(path: str) -> sqlite3.Connection:
    """To look at it. What a crash has left in the middle of making it is undone first, which only
    somebody can do who may write: later on there is a log, and no journal."""
    if os.path.exists(path + "-journal"):
        with closing(_connect(path, "rw")) as db:
            db.execute("PRAGMA schema_version").fetchone()
    return _connect(path, "ro")


def _connect(path: str, mode: str) -> sqlite3.Connection:
    address = f"file:{path.replace('%', '%25').replace('?', '%3f').replace('#', '%23')}"
    return sqlite3.connect(f"{address}?mode={mode}", uri=True, timeout=30.0)


def _is_older(entry: os.DirEntry[str], oldest: float) -> bool:
    try:
        return entry.stat(follow_symlinks=False).st_mtime < oldest
    except FileNotFoundError:
        return False


def _remove(entry: os.DirEntry[str]) -> int:
    size = size_of(entry)
    if entry.is_dir(follow_symlinks=False):
        shutil.rmtree(entry.path, ignore_errors=True)
    else:
        with suppress(FileNotFoundError):
            os.unlink(entry.path)
    return size
