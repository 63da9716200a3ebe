"""Owns opencode's snapshots, as the git commands that its program runs.

The program is one compiled file: it can make a snapshot from the command line, not go back to one.
So the sequence of version 1.18.33 is run here, and `agrees` asks the real program whether it makes
the same snapshot of the same tree.
"""

import subprocess
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from benchmarks.peers.installs import OPENCODE, npm_package
from benchmarks.peers.places import PeerError, Place, bytes_on_disk

LINKS = ("-c", "core.longpaths=true", "-c", "core.symlinks=true")
BYTES = ("-c", "core.autocrlf=false", *LINKS)
NAMES = (*BYTES, "-c", "core.quotepath=false")
LARGEST_NEW_FILE = 2 << 20
BATCH = 100
SETTINGS = (
    ("core.autocrlf", "false"),
    ("core.longpaths", "true"),
    ("core.symlinks", "true"),
    ("core.fsmonitor", "false"),
    ("feature.manyFiles", "true"),
    ("index.version", "4"),
    ("index.threads", "true"),
    ("core.untrackedCache", "true"),
)


class Opencode:
    """`track`, `patch` and `revert`: one tree per snapshot, and files put back one by one."""

    def __init__(self, place: Place) -> None:
        self.place, self.tree = place, place.project
        self._dir = place.store / "snapshot"
        self._here = ("--git-dir", str(self._dir), "--work-tree", str(self.tree))

    def snapshot(self) -> str:
        if not self._dir.exists():
            self._begin()
        self._add_changes()
        return self._git(*self._here, "write-tree")[1].decode().strip()

    def restore(self, ref: str) -> None:
        """`patch` at the end of the step, then `revert` of the files that it names."""
        self._add_changes()
        words = ("diff", "--cached", "--no-ext-diff", "--name-only", ref, "--", ".")
        code, said = self._git(*NAMES, *self._here, *words)
        if code:
            raise PeerError("opencode: the patch could not be made, nothing is reverted")
        names = [line.strip() for line in said.decode(errors="replace").strip().split("\n")]
        names = [name for name in names if name]
        ignored = self._ignored(names)
        left = [name for name in names if name not in ignored]
        while left:
            left = self._revert_some(ref, left)

    def stored(self) -> int:
        return bytes_on_disk(self.place.store)

    def close(self) -> None:
        """Nothing runs between two calls."""

    def _begin(self) -> None:
        self._dir.mkdir(parents=True)
        environ = {"GIT_DIR": str(self._dir), "GIT_WORK_TREE": str(self.tree)}
        self._git("init", environ=environ)
        for key, value in SETTINGS:
            self._git("--git-dir", str(self._dir), "config", key, value)
        code, said = self._git("rev-parse", "--path-format=absolute", "--git-common-dir")
        own = Path(said.decode(errors="replace").strip())
        if code or not own.is_dir():
            return
        info = self._dir / "objects/info"
        info.mkdir(parents=True, exist_ok=True)
        (info / "alternates").write_text(f"{own / 'objects'}\n")
        if (own / "index").exists():
            (self._dir / "index").write_bytes((own / "index").read_bytes())

    def _add_changes(self) -> None:
        self._exclude([])
        changed, new = self._listed()
        if changed is None or new is None:
            return
        every = list(dict.fromkeys([*changed, *new]))
        ignored = self._ignored(every)
        if ignored:
            words = ("rm", "--cached", "-f", "--ignore-unmatch")
            self._with_paths(words, sorted(ignored))
        kept = [name for name in every if name not in ignored]
        if not kept:
            return
        large = {name for name in new if name in kept and self._is_large(name)}
        self._exclude(sorted(large))
        self._with_paths(("add", "--all", "--sparse"), [n for n in kept if n not in large])

    def _listed(self) -> tuple[list[str] | None, list[str] | None]:
        others = ("ls-files", "--full-name", "--others", "--exclude-standard", "-z", "--", ".")
        both = (("diff-files", "--name-only", "-z", "--", "."), others)
        with ThreadPoolExecutor(2) as pool:  # as it does: both at once
            asked = [pool.submit(self._git, *NAMES, *self._here, *words) for words in both]
        found = [task.result() for task in asked]
        if any(code for code, _ in found):
            return None, None
        changed, new = (_names(said) for _, said in found)
        return changed, new

    def _ignored(self, names: list[str]) -> set[str]:
        if not names:
            return set()
        own = ("--git-dir", str(self.tree / ".git"), "--work-tree", str(self.tree))
        words = ("check-ignore", "--no-index", "--stdin", "-z")
        asked = _nul(f"./{name}" if name.startswith(":") else name for name in names)
        code, said = self._git(*NAMES, *own, *words, stdin=asked)
        return set(_names(said)) if code in (0, 1) else set()

    def _exclude(self, large: list[str]) -> None:
        words = ("rev-parse", "--path-format=absolute", "--git-path", "info/exclude")
        own = Path(self._git(*words)[1].decode(errors="replace").strip())
        text = own.read_text(errors="replace").rstrip() if own.is_file() else ""
        lines = [line for line in [text, *(f"/{name}" for name in large)] if line]
        (self._dir / "info").mkdir(parents=True, exist_ok=True)
        (self._dir / "info/exclude").write_text("\n".join(lines) + "\n" if lines else "")

    def _with_paths(self, words: tuple[str, ...], names: list[str]) -> None:
        if names:
            rest = ("--pathspec-from-file=-", "--pathspec-file-nul")
            stdin = _nul(f":(top,literal){name}" for name in names)
            self._git(*BYTES, *self._here, *words, *rest, stdin=stdin)

    def _is_large(self, name: str) -> bool:
        path = self.tree / name
        return path.is_file() and path.stat().st_size > LARGEST_NEW_FILE

    def _revert_some(self, ref: str, names: list[str]) -> list[str]:
        some = [names[0]]
        for name in names[1:BATCH]:
            if any(_overlap(name, other) for other in some):
                break
            some.append(name)
        if len(some) == 1 or not self._revert_batch(ref, some):
            for name in some:
                self._revert_one(ref, name)
        return names[len(some) :]

    def _revert_batch(self, ref: str, names: list[str]) -> bool:
        code, said = self._git(*LINKS, *self._here, "ls-tree", "--name-only", ref, "--", *names)
        if code:
            return False
        there = {line.strip() for line in said.decode(errors="replace").split("\n")}
        known = [str(self.tree / name) for name in names if name in there]
        if known and self._git(*LINKS, *self._here, "checkout", ref, "--", *known)[0]:
            return False
        for name in names:
            if name not in there:
                self._remove(name)
        return True

    def _revert_one(self, ref: str, name: str) -> None:
        path = str(self.tree / name)
        if self._git(*LINKS, *self._here, "checkout", ref, "--", path)[0] == 0:
            return
        code, said = self._git(*LINKS, *self._here, "ls-tree", ref, "--", name)
        if code or not said.strip():
            self._remove(name)

    def _remove(self, name: str) -> None:
        try:
            (self.tree / name).unlink(missing_ok=True)
        except OSError:
            return  # as it does: a file that cannot be removed is passed over

    def _git(
        self, *words: str, stdin: bytes = b"", environ: dict[str, str] | None = None
    ) -> tuple[int, bytes]:
        """Like the program: a command that fails is passed over unless its status is asked for."""
        done = subprocess.run(
            ["git", *words],
            cwd=self.tree,
            env={**self.place.environ, **(environ or {})},
            input=stdin,
            capture_output=True,
            check=False,
        )
        return done.returncode, done.stdout


def agrees(place: Place) -> str:
    """Whether the real program makes the same snapshot of the project."""
    try:
        program = npm_package(OPENCODE) / "bin" / "opencode"
        said = place.run(program, "debug", "snapshot", "track").decode().split()
    except PeerError as error:
        return f"not checked against the program: {error}"
    if said[-1:] == [Opencode(place).snapshot()]:
        return "checked: the program itself made the same snapshot of the same tree"
    return "the program itself made another snapshot of the same tree"


def _overlap(one: str, other: str) -> bool:
    return one == other or one.startswith(f"{other}/") or other.startswith(f"{one}/")


def _nul(names: Iterable[str]) -> bytes:
    return b"".join(name.encode(errors="surrogateescape") + b"\0" for name in names)


def _names(said: bytes) -> list[str]:
    # It reads UTF-8, so that other bytes become a mark that no file has.
    return [part for part in said.decode(errors="replace").split("\0") if part]
