"""A small plan over a folder and a database whose every state is known without running it."""

import os
import shutil
import signal
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.trees import Tree, tree_of
from tests.support.world import Group, Step, World

STEPS = 4
GATED = 2
_HALF = b"half.txt"


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What the two sandboxes hold."""

    files: Tree
    rows: tuple[str, ...]


def _step(name: str, tool: str, resource: str, **arguments: str) -> Step:
    return {"name": name, "tool": tool, "with": {"resource": resource, **arguments}}


class KnownPlan:
    """Step 2 fails half-way as long as the gate is shut; all others always succeed."""

    def __init__(self, top: Path, template: World) -> None:
        self.world = World(top, template)
        self.gate = top / "gate"
        self._make_resources(top)
        resources = {
            "assets": {"type": "fs-directory", "path": str(top / "assets")},
            "db": {"type": "sqlite", "path": str(top / "app.db")},
        }
        self.plan = self.world.use(*self._steps(), resources=resources)
        self.states = self._truth(top / "truth")

    @staticmethod
    def _make_resources(top: Path) -> None:
        assets = top / "assets"
        (assets / "deep").mkdir(parents=True)
        (assets / "a.txt").write_text("zero\n")
        (assets / "deep/old.txt").write_text("old\r\n")
        (assets / "link").symlink_to("a.txt")
        with closing(sqlite3.connect(top / "app.db")) as db:
            db.executescript("CREATE TABLE items (name TEXT); INSERT INTO items VALUES ('zero')")

    def _steps(self) -> tuple[Step, ...]:
        gated = (
            f"if test -e {self.gate}; then echo half > half.txt; exit 3; fi;"
            " rm deep/old.txt; mkdir new; echo two >> a.txt; chmod 755 a.txt"
        )
        return (
            _step("write", "file.write", "assets", path="b.txt", content="one\n"),
            _step("insert", "sql.execute", "db", sql="INSERT INTO items VALUES ('one')"),
            _step("gated", "shell", "assets", command=gated),
            _step("edit", "file.edit", "assets", path="a.txt", old="zero", new="nought"),
        )

    def _truth(self, copy: Path) -> list[Facts]:
        """The same by other means: `states[n]` is what is there once n steps are done."""
        shutil.copytree(self.world.top / "assets", copy, symlinks=True)
        states = [Facts(files=tree_of(copy), rows=("zero",))]
        (copy / "b.txt").write_text("one\n")
        states.append(Facts(files=tree_of(copy), rows=("zero",)))
        states.append(Facts(files=tree_of(copy), rows=("zero", "one")))
        (copy / "deep/old.txt").unlink()
        (copy / "new").mkdir()
        (copy / "a.txt").write_text("zero\ntwo\n")
        (copy / "a.txt").chmod(0o755)
        states.append(Facts(files=tree_of(copy), rows=("zero", "one")))
        (copy / "a.txt").write_text("nought\ntwo\n")
        states.append(Facts(files=tree_of(copy), rows=("zero", "one")))
        return states

    @property
    def half_done(self) -> Facts:
        """Step 2 has failed in the middle."""
        before = self.states[GATED]
        # As the step's shell made it, whatever the umask is.
        mode = before.files[b"b.txt"][1]
        return Facts(files={**before.files, _HALF: ("file", mode, b"half\n")}, rows=before.rows)

    def facts(self) -> Facts:
        paths = {s["resource"]: Path(s["path"]) for s in self.plan.status["sandboxes"]}
        return Facts(files=tree_of(paths["assets"]), rows=_rows(paths["db"]))

    def expected(self, group: Group) -> Facts | None:
        """What a group must hold by the moment it was made; None if only its maker can know."""
        at = group.step_index
        if group.reason in ("decision", "on_tool_write"):
            return self.states[at]
        if group.reason == "on_tool_write_complete":
            return self.states[at + 1]
        return self.half_done if group.reason == "on_error" else None

    def shut(self, *, shut: bool) -> None:
        if shut:
            self.gate.touch()
        else:
            self.gate.unlink(missing_ok=True)


def _rows(path: Path) -> tuple[str, ...]:
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as db:
        return tuple(name for (name,) in db.execute("SELECT name FROM items ORDER BY rowid"))


def killed(task: Callable[[], Any], after: float) -> bool:
    """Run `task` in a fork that dies by SIGKILL; False if it was done before that."""
    child = os.fork()
    if child == 0:
        try:
            signal.signal(signal.SIGALRM, lambda *_: os.kill(os.getpid(), signal.SIGKILL))
            signal.setitimer(signal.ITIMER_REAL, after)
            task()
        finally:
            os._exit(0)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.WIFSIGNALED(status)
        time.sleep(0.002)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    raise AssertionError("a command hangs")
