"""A checkout, a folder and a database of a user's, with a plan on all three that is done."""

import hashlib
import os
import sqlite3
import subprocess
import time
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from tests.support.agents import Answer
from tests.support.copies import remove
from tests.support.trees import Tree, tree_of
from tests.support.world import PlanHandle, Step, World

# What each resource has of everything that an apply can change, and what has to survive it.
_BEGIN = """
mkdir -p "$TOP/assets/gone" "$TOP/assets/shut"
cd "$TOP/assets"
echo one > one.txt; echo old > gone/file; echo x > shut/x; ln -s one.txt link; echo m > mode
echo mine > untouched; chmod 700 gone; chmod 555 shut
cd "$TOP/project"
mkdir -p private; echo secret > private/file; chmod 700 private; git add -A; git commit -qm more
git stash list > /dev/null; echo 'not committed' >> README.md; echo staged > staged; git add staged
git branch other; git config test.key value
"""
_CODE = (
    "echo 2 > src/app.py; rm src/old.py private/file; mkdir n; echo new > n/new; chmod 755 data.bin"
)
_ASSETS = (
    "echo two > one.txt; rm -r gone; echo file > gone; rm link; mkdir -p link/deep;"
    "echo y > link/z; chmod 755 mode; chmod 755 shut; echo y > shut/x; chmod 555 shut"
)
_DATABASE = """
create table t (id integer primary key, text);
insert into t (text) values ('one'), ('two');
create table big (data);
"""
_SQL = "update t set text = 'changed' where id = 1; create table more (id)"
_HEADER = ((18, 20), (24, 28), (40, 44), (92, 100))


class Three:
    """The whole world can be put back to the moment before the apply, in place."""

    def __init__(self, world: World) -> None:
        self.world = world
        top = world.top
        self.code, self.assets, self.database = top / "project", top / "assets", top / "app.db"
        environ = {**world.agents.environ, "TOP": str(top)}
        subprocess.run(["/bin/sh", "-ec", _BEGIN], env=environ, check=True, capture_output=True)
        with closing(sqlite3.connect(self.database)) as db:
            db.executescript(_DATABASE)
            db.executemany("insert into big values (?)", [(os.urandom(3000),) for _ in range(40)])
            db.commit()
        self.plan = self._run()
        self.before = self.state()
        self.began = self.without_index()
        # Git reads again what changed in the second in which its index was written: how much an
        # apply does would depend on the clock.
        time.sleep(1.1)
        self._saved = self.copy("saved")

    def _run(self) -> PlanHandle:
        resources = {
            "code": {"type": "git-checkout", "path": str(self.code)},
            "assets": {"type": "fs-directory", "path": str(self.assets)},
            "db": {"type": "sqlite", "path": str(self.database)},
        }
        return self.world.run(
            _step("shell", resource="code", command=_CODE),
            _step("shell", resource="assets", command=_ASSETS),
            _step("sql.execute", resource="db", sql=_SQL),
            resources=resources,
        )

    def copy(self, name: str) -> Path:
        """The whole world as it is now, for `reset`; links that keep the user's files included."""
        top = self.world.top
        place = top.with_name(f"{top.name}.{name}")
        _remove(place)
        subprocess.run(["cp", "-a", str(top), str(place)], check=True)
        return place

    def reset(self, copy: Path | None = None) -> None:
        """As it was before the apply, or when the copy was made."""
        _remove(self.world.top)
        subprocess.run(["cp", "-a", str(copy or self._saved), str(self.world.top)], check=True)

    @property
    def watched(self) -> list[Path]:
        """Everything that a command looks at, and so all that a kill can leave for the next one."""
        data = self.world.agents.data_dir
        return [
            *(self.code, self.assets, self.database, Path(f"{self.database}-journal")),
            *(data / name for name in ("cleveragents.db", "cleveragents.db-wal")),
            *(data / name for name in ("sandboxes", "snapshots", "locks")),
        ]

    def apply(self, *options: str) -> Answer:
        return self.world.agents("plan", "apply", "--yes", *options, self.plan.id)

    def state(self) -> dict[str, object]:
        """Everything that is the user's, to the byte."""
        return {
            "code": self.world.project.fingerprint(),
            "assets": tree_of(self.assets),
            "database": _pages(self.database),
        }

    def without_index(self) -> dict[str, object]:
        """The same but for the bytes of the index, which has the times of files: what is in it."""
        project = self.world.project
        index = (project.git("ls-files", "--stage"), project.git("status", "--porcelain"))
        return {**self.state(), "code": {**project.fingerprint(), "index": index}}

    def rows(self) -> list[Any]:
        with closing(sqlite3.connect(self.database)) as db:
            return db.execute("select text from t order by id").fetchall()

    def arrived(self) -> bool:
        """All of the plan's work is in all three, and nothing that was not asked for."""
        project = self.world.project
        code = (
            project.read("src/app.py") == "2\n"
            and project.read("n/new") == "new\n"
            and not any((self.code / gone).exists() for gone in ("src/old.py", "private"))
            and project.git("status", "--porcelain") == " M README.md\nA  staged"
            and project.git("rev-parse", "HEAD~1") == project.git("rev-parse", "other")
        )
        assets: Tree = {
            **{b"one.txt": ("file", 0o644, b"two\n"), b"gone": ("file", 0o644, b"file\n")},
            **{b"link": ("folder", 0o755, b""), b"link/deep": ("folder", 0o755, b"")},
            **{b"link/z": ("file", 0o644, b"y\n"), b"mode": ("file", 0o755, b"m\n")},
            **{b"shut": ("folder", 0o555, b""), b"shut/x": ("file", 0o644, b"y\n")},
            b"untouched": ("file", 0o644, b"mine\n"),
        }
        return code and tree_of(self.assets) == assets and self.rows() == [("changed",), ("two",)]

    def traces(self) -> list[str]:
        """What an apply may not leave behind in what is the user's; what it has replaced is kept in
        the repository."""
        strange = [p.name for p in self.code.joinpath(".git").glob("*cleveragents*")]
        strange = [name for name in strange if not name.startswith("cleveragents-apply-")]
        strange += [p.name for p in self.code.joinpath(".git").glob("index.*")]
        strange += [p.name for p in self.assets.glob(".cleveragents*")]
        return strange + [p.name for p in self.world.top.glob("app.db-*")]


def _step(tool: str, **arguments: Any) -> Step:
    return {"name": f"change {arguments['resource']}", "tool": tool, "with": arguments}


def _pages(path: Path) -> str:
    """The file without what the header counts up with each write: it may not go down again."""
    data = bytearray(path.read_bytes())
    for first, last in _HEADER:
        data[first:last] = bytes(last - first)
    return hashlib.sha256(data).hexdigest()


def _remove(top: Path) -> None:
    if not top.exists():
        return
    for folder, folders, _ in os.walk(top):
        inside = (Path(folder, name) for name in folders)
        for inner in (path for path in inside if not path.is_symlink()):
            with suppress(FileNotFoundError):  # what was thrown away may be on its way out
                inner.chmod(0o700)
    remove(top)
