"""A database in the user's own tree, who works on it, and a server that has it open."""

import shlex
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

from tests.support.agents import Answer
from tests.support.in_place import Place
from tests.support.world import World

_SERVER = """
import sqlite3, sys
db = sqlite3.connect(sys.argv[1], uri=True, timeout=5, isolation_level=None)
print("ready", flush=True)
for line in sys.stdin:
    try:
        print(db.execute(line).fetchall(), flush=True)
    except sqlite3.Error as error:
        print("error:", error, flush=True)
"""
START = (
    "CREATE TABLE note (id INTEGER PRIMARY KEY, text TEXT); INSERT INTO note (text) VALUES ('milk')"
)


def make(path: Path, *, wal: bool = False, page_size: int = 4096) -> Path:
    with closing(sqlite3.connect(path)) as db:
        db.execute(f"PRAGMA page_size={page_size}")
        if wal:
            db.execute("PRAGMA journal_mode=WAL")
        db.executescript(START)
    return path


def write(path: Path, text: str) -> None:
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("INSERT INTO note (text) VALUES (?)", (text,))


def notes(path: Path) -> list[str]:
    """Read as a copy: nothing beside it is changed by this."""
    with closing(sqlite3.connect(":memory:")) as copy:
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as db:
            db.backup(copy)
        return [text for (text,) in copy.execute("SELECT text FROM note ORDER BY id")]


def writing(text: str, path: str = "app.db") -> str:
    """What a shell script says to have a row written."""
    code = (
        "import sqlite3, sys; d = sqlite3.connect(sys.argv[1], timeout=20);"
        " d.execute('INSERT INTO note (text) VALUES (?)', (sys.argv[2],)); d.commit()"
    )
    return shlex.join([sys.executable, "-c", code, path, text])


def sql(*statements: str) -> str:
    """The same for any statements."""
    code = "import sqlite3, sys; d = sqlite3.connect('app.db', isolation_level=None)\n"
    code += "for s in sys.argv[1:]: d.execute(s)"
    return shlex.join([sys.executable, "-c", code, *statements])


class Kept(Place):
    """The place with a database in it."""

    def __init__(self, world: World, *, wal: bool = False) -> None:
        super().__init__(world)
        self.db = make(self.path / "app.db", wal=wal)

    def run(self, script: str, *options: str) -> Answer:
        return super().run(script, "--db", "app.db", *options)


class Server:
    """A program of the user's with the database open."""

    def __init__(self, path: Path, *, read_only: bool = False) -> None:
        uri = f"file:{path}?mode={'ro' if read_only else 'rw'}"
        self._process = subprocess.Popen(
            [sys.executable, "-c", _SERVER, uri],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.pid = self._process.pid
        assert self._answer() == "ready"

    def __call__(self, sql: str) -> str:
        assert self._process.stdin is not None
        print(sql, file=self._process.stdin, flush=True)
        return self._answer()

    def kill(self) -> None:
        """In the middle of whatever it does."""
        self._process.kill()
        self._process.communicate()

    def __enter__(self) -> "Server":
        return self

    def __exit__(self, *_: object) -> None:
        """As a program ends that closes what it has open."""
        self._process.communicate(timeout=10)

    def _answer(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()
