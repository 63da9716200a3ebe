"""Owns the backup programs and plain copies: whole trees, the project's own `.git` included.

None of them removes what a snapshot did not have, so that the contents of the tree are moved
aside before a restore: their best in fidelity.
"""

from pathlib import Path

from benchmarks.peers.installs import Command
from benchmarks.peers.places import Place, bytes_on_disk

# By default an edit of the same size in the same second is none to it.
SYNC = ("-a", "--delete", "--modify-window=-1")


class _WholeTree:
    def __init__(self, command: Command, place: Place) -> None:
        self.place, self.tree = place, place.project
        self._command, self._count, self._emptied = command, 0, 0

    def stored(self) -> int:
        return bytes_on_disk(self.place.store)

    def close(self) -> None:
        """Nothing runs between two calls."""

    def _run(self, *words: str | Path) -> bytes:
        settings = {
            **self._command.environ,
            "RESTIC_REPOSITORY": str(self.place.store / "restic"),
            "RESTIC_PASSWORD": "compare",
            "BORG_REPO": str(self.place.store / "borg"),
            "BORG_UNKNOWN_UNENCRYPTED_REPO_ACCESS_IS_OK": "yes",
        }
        return self.place.run(*self._command.argv, *words, cwd=self.tree, environ=settings)

    def _empty(self) -> None:
        """Moved aside, which takes no time; that it has to be deleted one day does not count."""
        self._emptied += 1
        aside = self.place.top / "aside" / str(self._emptied)
        aside.mkdir(parents=True)
        for path in list(self.tree.iterdir()):
            path.rename(aside / path.name)

    def _next(self) -> str:
        self._count += 1
        return f"s{self._count}"


class Restic(_WholeTree):
    def __init__(self, command: Command, place: Place) -> None:
        super().__init__(command, place)
        self._run("init", "-q")

    def snapshot(self) -> str:
        name = self._next()
        self._run("backup", "-q", "--tag", name, ".")
        return name

    def restore(self, ref: str) -> None:
        self._empty()
        self._run("restore", "-q", "latest", "--tag", ref, "--target", self.tree)


class Borg(_WholeTree):
    def __init__(self, command: Command, place: Place) -> None:
        super().__init__(command, place)
        self._run("init", "--encryption=none")

    def snapshot(self) -> str:
        name = self._next()
        self._run("create", f"::{name}", ".")
        return name

    def restore(self, ref: str) -> None:
        self._empty()
        self._run("extract", f"::{ref}")


class Rsync(_WholeTree):
    """Each snapshot is a folder; what did not change has a second name in it (`--link-dest`)."""

    def snapshot(self) -> str:
        last = self.place.store / f"s{self._count}"
        name = self._next()
        links = [f"--link-dest={last}"] if last.exists() else []
        self._run(*SYNC, *links, "./", f"{self.place.store / name}/")
        return name

    def restore(self, ref: str) -> None:
        self._run(*SYNC, f"{self.place.store / ref}/", "./")


class Copies(_WholeTree):
    """`cp -a`, which clones where the filesystem can."""

    def snapshot(self) -> str:
        name = self._next()
        self._run("-a", "--reflink=auto", ".", self.place.store / name)
        return name

    def restore(self, ref: str) -> None:
        self._empty()
        self._run("-a", "--reflink=auto", f"{self.place.store / ref}/.", ".")
