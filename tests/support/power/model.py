"""Steps whose outcome is known to the byte: what a plan's resources hold after each of them."""

import os
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Content = dict[str, bytes]
"""Files by path; of a database its rows by number."""
State = dict[str, Content]
"""Content by resource."""
Effect = Callable[[State], None]

TYPES = {"code": "git-checkout", "assets": "fs-directory", "db": "sqlite"}
# A file younger than the grain of file times is read again in any case. Steps that end later than
# that after their last write are those whose files are taken for known.
SETTLE = " && sleep 0.12"
MANY = 40
IGNORED = "node_modules"
_WHITEOUT, _OPAQUE = b"(whiteout)", b"(opaque)"


@dataclass(frozen=True, slots=True)
class Step:
    """A step as an action file has it, and what it does to the resources."""

    definition: Mapping[str, Any]
    effect: Effect


def begin(resources: Sequence[str]) -> State:
    code = {"log.txt": b"0\n", "solo.txt": b"0\n"}
    code |= {f"src/m{n}.py": f"x = {n}\n".encode() * 40 for n in range(20)}
    assets = {"log.txt": b"0\n", "solo.txt": b"0\n", "gone.txt": b"gone\n"}
    assets |= {f"a/b{n}.bin": bytes([n]) * 5000 for n in range(10)}
    every: State = {"code": code, "assets": assets, "db": {"0": b"0|"}}
    return {name: every[name] for name in resources}


def after(first: State, steps: Sequence[Step]) -> State:
    state = {name: dict(content) for name, content in first.items()}
    for step in steps:
        step.effect(state)
    return state


# --- steps ----------------------------------------------------------------------------------------


def line(resource: str, number: int, *, settle: bool = True, unless: Path | None = None) -> Step:
    """One line more in a file that exists: of these ext4 writes the size before the bytes."""
    begun = f"test -e {unless} && " if unless else ""
    command = f"{begun}echo {number} >> log.txt" + (SETTLE if settle else "")

    def effect(state: State) -> None:
        state[resource]["log.txt"] += f"{number}\n".encode()

    return _step(f"line {number}", "shell", effect, resource=resource, command=command)


def many(resource: str, number: int, *, remove: str = "", settle: bool = True) -> Step:
    names = [f"many/f{n}.txt" for n in range(MANY)]
    command = (
        f"mkdir -p many; for n in $(seq 0 {MANY - 1}); do echo {number} $n >> many/f$n.txt; done; "
        f"rm -f x {remove}; echo {number} >> log.txt" + (SETTLE if settle else "")
    )

    def effect(state: State) -> None:
        files = state[resource]
        for n, name in enumerate(names):
            files[name] = files.get(name, b"") + f"{number} {n}\n".encode()
        files.pop(remove, None)
        files["log.txt"] += f"{number}\n".encode()

    return _step(f"many {number}", "shell", effect, resource=resource, command=command)


def write(resource: str, path: str, content: str) -> Step:
    def effect(state: State) -> None:
        state[resource][path] = content.encode()

    return _step(
        f"write {path}", "file.write", effect, resource=resource, path=path, content=content
    )


def packages(number: int) -> Step:
    """In an ignored folder: one comes anew, one goes, one is written to."""
    new, gone, kept = (f"{IGNORED}/p{number + n}" for n in range(3))
    command = (
        f"rm -r {new}; mkdir {new}; echo {number} > {new}/own.js; rm -r {gone};"
        f" echo {number} >> {kept}/index.js{SETTLE}"
    )

    def effect(state: State) -> None:
        files = state["code"]
        for path in [p for p in files if p.startswith((f"{new}/", f"{gone}/"))]:
            del files[path]
        files[f"{new}/own.js"] = f"{number}\n".encode()
        files[f"{kept}/index.js"] += f"{number}\n".encode()

    return _step(f"packages {number}", "shell", effect, resource="code", command=command)


def insert(number: int) -> Step:
    size = number * 400
    sql = f"insert into t (n, b) values ({number}, hex(zeroblob({size})))"

    def effect(state: State) -> None:
        rows = state["db"]
        rows[str(len(rows))] = f"{number}|{'00' * size}".encode()

    return _step(f"insert {number}", "sql.execute", effect, resource="db", sql=sql)


def spawn(name: str, children: Mapping[str, Sequence[Step]]) -> Step:
    def effect(state: State) -> None:
        for steps in children.values():
            for step in steps:
                step.effect(state)

    plans = [
        {"name": child, "steps": [step.definition for step in steps]}
        for child, steps in children.items()
    ]
    return Step({"name": name, "subplans": {"parallel": True, "plans": plans}}, effect)


def _step(name: str, tool: str, effect: Effect, **arguments: Any) -> Step:
    return Step({"name": name, "tool": tool, "with": arguments}, effect)


# --- the real thing -------------------------------------------------------------------------------


def make(places: Mapping[str, Path], state: State) -> None:
    """The user's own files, folders and database."""
    for name, content in state.items():
        if name == "db":
            with closing(sqlite3.connect(places[name])) as db:
                db.execute("create table t (n integer, b text)")
                db.execute("insert into t values (0, '')")
                db.commit()
            continue
        for path, data in content.items():
            file = places[name] / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(data)


def read(name: str, place: Path, project: Path | None = None) -> Content:
    """What is there now; looking at it mends nothing. Of a sandbox, what shows of the `project`
    through its layers is there too."""
    if name == "db":
        return _rows(place)
    found = _files(place)
    marks = {path for path, content in found.items() if content in (_WHITEOUT, _OPAQUE)}
    for layer in _layers(place) if project else ():
        below = {f"{layer}/{path}": c for path, c in _files(Path(project or "", layer)).items()}
        shown = {path: c for path, c in below.items() if not _is_hidden(path, found, marks)}
        found = {**shown, **found}
    return {path: content for path, content in found.items() if path not in marks}


def _layers(sandbox: Path) -> list[str]:
    try:
        told = sandbox.with_name(f"{sandbox.name}.layers").joinpath("known").read_text()
    except FileNotFoundError:
        return []
    return [path for path in told.split("\0") if path]


def _is_hidden(path: str, found: Content, marks: set[str]) -> bool:
    """By something in the place of one of its folders, or by an opaque one."""
    parts = path.split("/")
    above = ["/".join(parts[:end]) for end in range(1, len(parts))]
    return any(folder in found or f"{folder}/." in marks for folder in above)


def _files(place: Path) -> Content:
    found: Content = {}
    for folder, folders, names in os.walk(place):
        if Path(folder) == place:
            folders[:] = [inner for inner in folders if inner != ".git"]
            names = [inner for inner in names if inner != ".git"]
        if "user.overlay.opaque" in os.listxattr(folder):
            found[f"{Path(folder).relative_to(place)}/."] = _OPAQUE
        for inner in names:
            file = Path(folder, inner)
            content = _WHITEOUT if file.is_char_device() else file.read_bytes()
            found[str(file.relative_to(place))] = content
    return found


def _rows(place: Path) -> Content:
    """Of a copy: whoever opens the file itself would roll its journal back."""
    with tempfile.TemporaryDirectory() as scratch:
        for file in place.parent.glob(f"{place.name}*"):
            shutil.copy(file, scratch)
        try:
            with closing(sqlite3.connect(Path(scratch, place.name))) as db:
                wrong = db.execute("pragma integrity_check").fetchall()
                rows = db.execute("select n, b from t order by rowid").fetchall()
        except sqlite3.Error as error:
            return {"error": str(error).encode()}
    if wrong != [("ok",)]:
        return {"integrity": repr(wrong).encode()}
    return {str(at): f"{n}|{b}".encode() for at, (n, b) in enumerate(rows)}


def differences(found: State, wanted: State) -> list[str]:
    """In words, one for each file or row."""
    told: list[str] = []
    for name, want in wanted.items():
        have = found.get(name, {})
        for path in sorted(have.keys() | want.keys()):
            if have.get(path) != want.get(path):
                told.append(
                    f"{name}:{path} is {_short(have.get(path))}, not {_short(want.get(path))}"
                )
    return told


def _short(content: bytes | None) -> str:
    return "not there" if content is None else f"{len(content)} bytes {content[-40:]!r}"
