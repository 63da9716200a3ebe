"""Kills a piece of work with SIGKILL before and after everything it does that lasts.

    points = kill_points(work, watched=[top])      # one run in a child, which counts
    for point in points:
        reset()                                    # as it was before `work`; up to the caller
        killed(work, point)                        # one run in a child, which dies there
        ...                                        # the next command, and what must be true then

`work` takes no arguments. It runs in a fork of this process; what a child patches is its own. Two
runs of it from the same beginning must do the same in the same order, but for what depends on the
clock: a point is the n-th of its kind. Other threads are not counted, but by `cut_short`: those
that keep house do what they do at any time.

What counts as lasting: changes of files and folders through `os` (and so through `pathlib`,
`shutil` and `tempfile`), files opened for writing, `fsync`, statements of SQLite that end a
transaction, steps of its backup, closing a connection, and programs that are started. Not seen:
bytes that the C library writes between two of these.

With `watched`, moments between which nothing in these folders and files changed are one moment:
only the first of them is a point. A kill cannot tell them apart, as all else ends with the process.
Without it every action is a point before and a point after.
"""

import builtins
import gc
import hashlib
import io
import json
import os
import signal
import sqlite3
import stat
import subprocess
import sys
import threading
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

Work = Callable[[], object]
# 1: every point, as `nox -s crash` has it. More: only every so manieth of each suite.
THOROUGH = int(os.environ.get("CLEVERAGENTS_TEST_STRIDE", "1"))
# Of one suite, so that as many processes can share it. A sample is not worth counting it twice.
PARTS = 2 if THOROUGH == 1 else 1

_CHANGES = (
    *("fsync", "fdatasync", "write", "pwrite", "sendfile", "copy_file_range"),
    *(
        "rename",
        "replace",
        "link",
        "symlink",
        "unlink",
        "remove",
        "mkdir",
        "rmdir",
        "mkfifo",
        "mknod",
    ),
    *("truncate", "ftruncate", "utime", "chmod", "fchmod", "chown", "fchown", "lchown"),
    *("setxattr", "removexattr"),
)
_ENDS = ("COMMIT", "END", "VACUUM", "PRAGMA WAL_CHECKPOINT", "PRAGMA JOURNAL_MODE")
_WRITES = ("INSERT", "UPDATE", "DELETE", "REPLACE", "CREATE", "DROP", "ALTER")
_REAL_OPEN, _REAL_OS_OPEN, _REAL_WRITE = builtins.open, os.open, os.write


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """The moment before or after the n-th lasting action, or the n-th of its kind.

    How many of the others come before it is not the same each time: what depends on the clock
    happens here and not there.
    """

    number: int
    after: bool
    what: str
    kind: str = ""

    def __str__(self) -> str:
        when = "after" if self.after else "before"
        return " ".join(filter(None, (when, self.kind, f"{self.number}: {self.what}")))


def kill_points(work: Work, watched: Sequence[Path] = ()) -> list[Point]:
    """Every moment at which a kill can leave something else than a kill at another."""
    report = _in_child(work, lambda pipe: _Count(pipe, watched))
    assert report.status == 0, report.text
    points: list[Point] = []
    seen: set[str] = set()
    counts = Counter[tuple[str, bool]]()
    for line in report.text.splitlines():
        _, after, what, state = json.loads(line)
        kind = _kind(what)
        counts[kind, after] += 1
        if not state or state not in seen:
            number = counts[kind, after]
            points.append(Point(number=number, after=after, what=what, kind=kind))
        seen.add(state)
    return points


def share(points: Sequence[Point], part: int, parts: int) -> Sequence[Point]:
    """One part of all points; of that every THOROUGH-th, so that `make test` stays quick."""
    return points[part::parts][::THOROUGH]


def killed(work: Work, point: Point) -> None:
    """Run the work in a child that dies at this point."""
    report = _in_child(work, lambda _: _Kill(point))
    assert report.status == -signal.SIGKILL, f"{point} was not reached: {report.text}"


def cut_short(work: Work, number: int, kind: str = "") -> bool:
    """A child dies before its n-th action, or after the n-th of a kind; False if it was done."""
    point = Point(number=number, after=bool(kind), what="?", kind=kind)
    report = _in_child(work, lambda _: _Kill(point), every_thread=True)
    return report.status == -signal.SIGKILL


# --- the child ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _Report:
    status: int
    text: str


class _Count:
    """Writes down each moment, with what the watched folders hold then."""

    def __init__(self, pipe: int, watched: Sequence[Path]) -> None:
        self._pipe = pipe
        self._watched = watched

    def __call__(self, number: int, what: str, *, after: bool) -> None:
        state = "".join(_state(folder) for folder in self._watched)
        line = json.dumps([number, after, what, state]) + "\n"
        _REAL_WRITE(self._pipe, line.encode())


class _Kill:
    def __init__(self, point: Point) -> None:
        self._point = point
        self._met = 0

    def __call__(self, number: int, what: str, *, after: bool) -> None:
        point = self._point
        if after != point.after or point.kind not in ("", _kind(what)):
            return
        self._met += 1
        if (self._met if point.kind else number) == point.number:
            os.kill(os.getpid(), signal.SIGKILL)
            signal.pause()  # nothing more may happen before the signal has arrived


def _in_child(
    work: Work, make: Callable[[int], Callable[..., None]], *, every_thread: bool = False
) -> _Report:
    gc.collect()  # connections of earlier work end here, not in the child
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.close(reading)
        _be_the_child(work, _Moments(make(writing), every_thread=every_thread), writing)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        text = pipe.read().decode("utf-8", "replace")
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return _Report(status=status, text=text)


def _be_the_child(work: Work, moments: "_Moments", pipe: int) -> NoReturn:
    # What was open in the parent is the parent's: it must not be closed from here.
    gc.freeze()
    sys.settrace(None)  # coverage would take half of the time, and die with what it has seen
    moments.install()
    status = 1
    try:
        work()
        status = 0
    except BaseException:  # noqa: BLE001 - told to the parent, which fails
        _REAL_WRITE(pipe, traceback.format_exc().encode())
    finally:
        os._exit(status)


def _kind(what: str) -> str:
    """What is done, without what it is done to: temporary names differ from run to run."""
    return what if what.startswith("sqlite") else what.partition(" ")[0]


class _Moments:
    """Puts itself around everything that lasts, and numbers it."""

    def __init__(self, moment: Callable[..., None], *, every_thread: bool) -> None:
        self._moment = moment
        self._every_thread = every_thread
        self._last = 0
        self._thread = threading.local()

    def install(self) -> None:
        for name in _CHANGES:
            self._replace_in_os(name, self._around(getattr(os, name), name))
        self._replace_in_os("open", self._around(os.open, "open", _creates))
        opened = self._around(_REAL_OPEN, "open", _writes)
        builtins.open = io.open = opened  # type: ignore[assignment]
        subprocess.run = self._around(subprocess.run, "run")  # type: ignore[assignment]
        start = self._around(subprocess.Popen.__init__, "start")
        subprocess.Popen.__init__ = start  # type: ignore[method-assign]
        self._install_in_sqlite()

    @contextmanager
    def action(self, what: str) -> Iterator[None]:
        """One that is part of another one is not counted again."""
        ours = self._every_thread or threading.current_thread() is threading.main_thread()
        if getattr(self._thread, "inside", False) or not ours:
            yield
            return
        self._thread.inside = True
        self._last += 1
        number = self._last
        try:
            self._moment(number, what, after=False)
            yield
            self._moment(number, what, after=True)
        finally:
            self._thread.inside = False

    def _around(
        self,
        real: Callable[..., Any],
        name: str,
        counts: Callable[..., bool] = lambda *_, **__: True,
    ) -> Callable[..., Any]:
        def call(*args: Any, **keys: Any) -> Any:
            if not counts(*args, **keys):
                return real(*args, **keys)
            with self.action(f"{name} {_shown(args)}"):
                return real(*args, **keys)

        return call

    def _replace_in_os(self, name: str, made: Callable[..., Any]) -> None:
        real = getattr(os, name)
        # Libraries ask by identity what a function can do.
        for able in (os.supports_dir_fd, os.supports_fd, os.supports_follow_symlinks):
            if real in able:
                able.add(made)
        setattr(os, name, made)

    def _install_in_sqlite(self) -> None:
        connection, real = _connections(self.action), sqlite3.connect

        def connect(*args: Any, **keys: Any) -> Any:
            keys.setdefault("factory", connection)
            return real(*args, **keys)

        sqlite3.connect = sqlite3.dbapi2.connect = connect  # type: ignore[assignment]


_Action = Callable[[str], AbstractContextManager[None]]


def _cursors(action: _Action) -> type[sqlite3.Cursor]:
    class Cursor(sqlite3.Cursor):
        def execute(self, sql: str, *args: Any) -> Any:
            if not _ends(sql, self.connection):
                return super().execute(sql, *args)
            with action(f"sqlite {sql[:40]}"):
                return super().execute(sql, *args)

    return Cursor


def _connections(action: _Action) -> type[sqlite3.Connection]:
    cursors = _cursors(action)

    class Connection(sqlite3.Connection):
        def cursor(self, factory: Any = cursors) -> Any:
            return super().cursor(factory)

        def execute(self, sql: str, *args: Any) -> Any:
            return self.cursor().execute(sql, *args)

        def commit(self) -> None:
            with action("sqlite commit"):
                super().commit()

        def close(self) -> None:
            with action("sqlite close"):
                super().close()

        def __exit__(self, *error: Any) -> Any:
            with action("sqlite commit"):
                return super().__exit__(*error)

        def backup(self, target: sqlite3.Connection, **options: Any) -> None:
            told = options.pop("progress", None)
            super().backup(target, progress=_counted_progress(action, told), **options)
            with action("sqlite backup done"):
                pass

    return Connection


def _counted_progress(action: _Action, told: Callable[..., None] | None) -> Callable[..., None]:
    def progress(status: int, remaining: int, total: int) -> None:
        with action(f"sqlite backup, {remaining} pages left"):
            if told:
                told(status, remaining, total)

    return progress


def _creates(_path: object, flags: int, *_: object, **__: object) -> bool:
    return bool(flags & (os.O_CREAT | os.O_TRUNC))


def _writes(file: object, mode: str = "r", *_: object, **__: object) -> bool:
    return not isinstance(file, int) and any(letter in mode for letter in "wax+")


def _ends(sql: str, connection: sqlite3.Connection) -> bool:
    """Whether what was written lasts after this statement."""
    words = " ".join(sql.upper().split())
    alone = connection.isolation_level is None and not connection.in_transaction
    return words.startswith(_ENDS) or (alone and words.startswith(_WRITES))


def _shown(args: Iterable[object]) -> str:
    """The call in a few words; of a command the program and what it is told to do."""
    words: list[str] = []
    for arg in args:
        if isinstance(arg, (list, tuple)):
            words += [str(item) for item in arg if not str(item).startswith("-")]
        elif isinstance(arg, (str, bytes, os.PathLike)):
            words.append(os.fsdecode(arg)[-60:])  # type: ignore[arg-type]
    return " ".join(words)[:200]


# --- what a folder holds ------------------------------------------------------------------------


def _state(top: Path) -> str:
    """What it holds at one moment. A command that has just been started may be at work there: what
    vanishes under our eyes is looked at again."""
    while True:
        with suppress(FileNotFoundError, NotADirectoryError):
            return _looked_at(top)


def _looked_at(top: Path) -> str:
    """Paths, kinds, modes, times and contents. SQLite's shared memory is left out: whoever opens
    the database after a kill builds it anew."""
    digest = hashlib.sha256()
    for path in sorted(_found(os.fsencode(top))):
        found = os.lstat(path)
        digest.update(b"%s\0%o\0" % (path, found.st_mode))
        if stat.S_ISLNK(found.st_mode):
            digest.update(os.readlink(path))  # noqa: PTH115 - bytes
        elif stat.S_ISREG(found.st_mode):
            digest.update(b"%d\0" % found.st_mtime_ns)
            digest.update(_content(path, (found.st_size, found.st_ctime_ns)))
    return digest.hexdigest()


_closed: dict[bytes, tuple[int, int]] = {}
"""Files that could not be opened, with the size and the time of change that they had then."""


def _content(path: bytes, marks: tuple[int, int]) -> bytes:
    """What tells its bytes from others. The work itself may keep everybody from opening a file:
    then its marks do, and go on to do so until it is changed again, as that it is open to all once
    more is no change."""
    if _closed.get(path) == marks:
        return b"%d %d" % marks
    try:
        fd = _REAL_OS_OPEN(path, os.O_RDONLY | os.O_NONBLOCK)
    except BlockingIOError:
        _closed[path] = marks
        return b"%d %d" % marks
    with _REAL_OPEN(fd, "rb") as file:
        return hashlib.sha256(file.read()).digest()


def _found(path: bytes) -> Iterator[bytes]:
    """The path itself, if it is there, and all below it."""
    if path.endswith(b"-shm") or not os.path.lexists(path):
        return
    yield path
    if stat.S_ISDIR(os.lstat(path).st_mode):
        for name in os.listdir(path):  # noqa: PTH208 - bytes
            yield from _found(path + b"/" + name)
