"""Owns the git sequences that tools without a package of their own are built on."""

import os
from pathlib import Path

from benchmarks.peers.places import Place, bytes_on_disk

QUIET = ("-c", "gc.auto=0", "-c", "commit.gpgsign=false")


class _Git:
    """Git in the project, with the environment of the tool."""

    def __init__(self, place: Place) -> None:
        self.place, self.tree = place, place.project

    def git(self, *words: str, environ: dict[str, str] | None = None) -> str:
        done = self.place.run("git", *QUIET, *words, cwd=self.tree, environ=environ)
        return done.decode(errors="replace").strip()

    def stored(self) -> int:
        return bytes_on_disk(self.place.project / ".git")

    def close(self) -> None:
        """Nothing runs between two calls."""


class ShadowRepository(_Git):
    """A second git directory over the same tree, one commit per checkpoint."""

    def __init__(self, place: Place) -> None:
        super().__init__(place)
        self._shadow = {
            "GIT_DIR": str(place.store / "shadow"),
            "GIT_WORK_TREE": str(self.tree),
            "GIT_AUTHOR_NAME": "Shadow",
            "GIT_AUTHOR_EMAIL": "shadow@example.org",
            "GIT_COMMITTER_NAME": "Shadow",
            "GIT_COMMITTER_EMAIL": "shadow@example.org",
        }
        self.git("init", "-q", environ=self._shadow)

    def snapshot(self) -> str:
        self.git("add", "-A", environ=self._shadow)
        self.git("commit", "-q", "--no-verify", "--allow-empty", "-m", "step", environ=self._shadow)
        return self.git("rev-parse", "HEAD", environ=self._shadow)

    def restore(self, ref: str) -> None:
        self.git("clean", "-qfd", environ=self._shadow)
        self.git("reset", "-q", "--hard", ref, environ=self._shadow)

    def stored(self) -> int:
        return bytes_on_disk(self.place.store)


class PrivateRef(_Git):
    """A commit in the user's own repository, made with an index of its own, behind a ref."""

    def __init__(self, place: Place) -> None:
        super().__init__(place)
        self._index = place.store / "index"
        own = Path(self.git("rev-parse", "--absolute-git-dir"), "index")
        if own.exists():
            self._index.write_bytes(own.read_bytes())
        self._count = 0

    def snapshot(self) -> str:
        environ = {"GIT_INDEX_FILE": str(self._index)}
        self.git("add", "-A", environ=environ)
        tree = self.git("write-tree", environ=environ)
        commit = self.git("commit-tree", "-p", "HEAD", "-m", "checkpoint", tree)
        self._count += 1
        self.git("update-ref", f"refs/checkpoints/{self._count}", commit)
        return commit

    def restore(self, ref: str) -> None:
        environ = {"GIT_INDEX_FILE": str(self._index)}
        self.git("read-tree", "--reset", "-u", ref, environ=environ)
        self.git("clean", "-qfd", environ=environ)


class Stash(_Git):
    """`git stash create`: what is tracked and changed, kept as a commit that a ref holds."""

    def __init__(self, place: Place) -> None:
        super().__init__(place)
        self._count = 0

    def snapshot(self) -> str:
        base = self.git("rev-parse", "HEAD")
        stashed = self.git("stash", "create") or "none"
        self._count += 1
        if stashed != "none":
            self.git("update-ref", f"refs/checkpoints/{self._count}", stashed)
        return f"{base} {stashed}"

    def restore(self, ref: str) -> None:
        base, stashed = ref.split()
        self.git("reset", "-q", "--hard", base)
        if stashed != "none":
            self.git("stash", "apply", "-q", "--index", stashed)


def git_version() -> str:
    done = os.popen("git --version").read()
    return done.strip().rpartition(" ")[2]
