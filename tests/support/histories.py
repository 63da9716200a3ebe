"""A small plan over a folder and a database whose every state is known without running it."""

import shutil
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from tests.support.trees import Tree, tree_of
from tests.support.world import Group, Step, World

GATED = 2
_HALF = b"half.txt"
_COMMIT = "echo more >> README.md && git add -A && git commit -qm step"


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What the sandboxes hold; `code` is the checkout's text, and how many commits it has."""

    files: Tree
    rows: tuple[str, ...]
    code: tuple[str, int] = ("", 0)


def _step(name: str, tool: str, resource: str, **arguments: str) -> Step:
    return {"name": name, "tool": tool, "with": {"resource": resource, **arguments}}


class KnownPlan:
    """Step 2 fails half-way as long as the gate is shut; all others always succeed.

    `with_code` adds a checkout and a last step that commits in it.
    """

    def __init__(self, top: Path, template: World | None, *, with_code: bool = False) -> None:
        self.world = World(top, template)
        self.with_code = with_code
        self.gate = top / "gate"
        self._make_resources(top)
        resources = {
            "assets": {"type": "fs-directory", "path": str(top / "assets")},
            "db": {"type": "sqlite", "path": str(top / "app.db")},
        }
        if with_code:
            resources["code"] = {"type": "git-checkout", "path": str(top / "project")}
        self.plan = self.world.use(*self._steps(), resources=resources)
        self.states = self._truth(top / "truth")

    @property
    def steps(self) -> int:
        return len(self.states) - 1

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
        last = (_step("commit", "shell", "code", command=_COMMIT),) if self.with_code else ()
        return (
            _step("write", "file.write", "assets", path="b.txt", content="one\n"),
            _step("insert", "sql.execute", "db", sql="INSERT INTO items VALUES ('one')"),
            _step("gated", "shell", "assets", command=gated),
            _step("edit", "file.edit", "assets", path="a.txt", old="zero", new="nought"),
            *last,
        )

    def _truth(self, copy: Path) -> list[Facts]:
        """The same by other means: `states[n]` is what is there once n steps are done."""
        shutil.copytree(self.world.top / "assets", copy, symlinks=True)
        code = ("# project\n", 2) if self.with_code else ("", 0)
        states = [Facts(files=tree_of(copy), rows=("zero",), code=code)]
        (copy / "b.txt").write_text("one\n")
        states.append(Facts(files=tree_of(copy), rows=("zero",), code=code))
        states.append(Facts(files=tree_of(copy), rows=("zero", "one"), code=code))
        (copy / "deep/old.txt").unlink()
        (copy / "new").mkdir()
        (copy / "a.txt").write_text("zero\ntwo\n")
        (copy / "a.txt").chmod(0o755)
        states.append(Facts(files=tree_of(copy), rows=("zero", "one"), code=code))
        (copy / "a.txt").write_text("nought\ntwo\n")
        states.append(Facts(files=tree_of(copy), rows=("zero", "one"), code=code))
        if self.with_code:
            code = ("# project\nmore\n", 3)
            states.append(Facts(files=tree_of(copy), rows=("zero", "one"), code=code))
        return states

    @property
    def half_done(self) -> Facts:
        """Step 2 has failed in the middle."""
        before = self.states[GATED]
        # As the step's shell made it, whatever the umask is.
        mode = before.files[b"b.txt"][1]
        files = {**before.files, _HALF: ("file", mode, b"half\n")}
        return Facts(files=files, rows=before.rows, code=before.code)

    def facts(self) -> Facts:
        paths = {s["resource"]: Path(s["path"]) for s in self.plan.status["sandboxes"]}
        code = self._code(paths["code"]) if self.with_code else ("", 0)
        return Facts(files=tree_of(paths["assets"]), rows=_rows(paths["db"]), code=code)

    def _code(self, path: Path) -> tuple[str, int]:
        counted = self.world.project.git("-C", str(path), "rev-list", "--count", "HEAD")
        return (path / "README.md").read_text(), int(counted)

    def expected(self, group: Group) -> Facts | None:
        """What a group must hold by the moment it was made; None if only its maker can know."""
        at = group.step_index
        if group.reason in ("decision", "on_tool_write"):
            return self.states[at]
        if group.reason == "on_tool_write_complete":
            return self.states[at + 1]
        if group.reason == "complete":
            return self.states[-1]
        return self.half_done if group.reason == "on_error" else None

    def shut(self, *, shut: bool) -> None:
        if shut:
            self.gate.touch()
        else:
            self.gate.unlink(missing_ok=True)


def _rows(path: Path) -> tuple[str, ...]:
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as db:
        return tuple(name for (name,) in db.execute("SELECT name FROM items ORDER BY rowid"))
