"""A user's project: a small real git repository with the things that are easily broken."""

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from tests.support.trees import tree_of

USER = ("Uma User", "uma@example.com")
_OURS = b"refs/cleveragents/"


class Project:
    """One checkout, handled as its user would handle it."""

    def __init__(self, path: Path, environ: Mapping[str, str]) -> None:
        self.path = path
        self._environ = environ

    def git(self, *args: str, check: bool = True) -> str:
        done = subprocess.run(
            ["git", "-C", str(self.path), *args],
            capture_output=True,
            check=False,
            # Looking must not refresh the index: its bytes are compared.
            env={**self._environ, "GIT_OPTIONAL_LOCKS": "0"},
        )
        assert not check or done.returncode == 0, (args, done.stderr)
        return done.stdout.decode("utf-8", "surrogateescape").rstrip("\n")

    def write(self, name: str, content: str | bytes) -> Path:
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    def read(self, name: str) -> str:
        return (self.path / name).read_bytes().decode()

    def commit(self, message: str = "more") -> str:
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", message)
        return self.head

    @property
    def head(self) -> str:
        return self.git("rev-parse", "HEAD")

    @property
    def git_dir(self) -> Path:
        return Path(self.git("rev-parse", "--absolute-git-dir"))

    def fingerprint(self) -> dict[str, object]:
        """Everything that is the user's own: no command before apply may change any of it."""
        folder = self.git_dir
        return {
            "tree": tree_of(self.path),
            "index": _bytes(folder / "index"),
            "head": _bytes(folder / "HEAD"),
            "refs": self.refs(),
            "stash": (_bytes(folder / "refs/stash"), _bytes(folder / "logs/refs/stash")),
            "config": _bytes(folder / "config"),
        }

    def refs(self) -> list[bytes]:
        lines = self._for_each_ref()
        return [line for line in lines if not line.startswith(_OURS)]

    def traces(self) -> list[bytes]:
        """What plans have left in the repository: refs, and never a worktree."""
        refs = [line for line in self._for_each_ref() if line.startswith(_OURS)]
        worktrees = self.git_dir / "worktrees"
        names = sorted(worktrees.iterdir()) if worktrees.is_dir() else []
        return [*refs, *(os.fsencode(name) for name in names)]

    def _for_each_ref(self) -> list[bytes]:
        text = self.git("for-each-ref", "--format=%(refname) %(objectname)")
        return [os.fsencode(line) for line in text.splitlines()]


def make_project(path: Path, environ: Mapping[str, str]) -> Project:
    """Two commits, every kind of file, ignored and empty things beside them; nothing dirty."""
    path.mkdir(parents=True)
    project = Project(path, environ)
    project.git("init", "-q", "-b", "main", ".")
    project.write("README.md", "# project\n")
    project.commit("first")
    project.write("src/app.py", "print('one')\n")
    project.write("src/old.py", "print('old')\n")
    project.write("windows.txt", b"line one\r\nline two\r\n")
    project.write("run.sh", "#!/bin/sh\necho run\n").chmod(0o755)
    project.write("data.bin", bytes(range(256)))
    project.write("docs/ünï côde.txt", "grüße\n")
    project.write(".gitignore", "*.log\nbuild/\n")
    (path / "link").symlink_to("src/app.py")
    project.commit("second")
    project.write("debug.log", "ignored\n")
    (path / "empty").mkdir()
    return project


def copy_project(source: Project, path: Path, environ: Mapping[str, str]) -> Project:
    shutil.copytree(source.path, path, symlinks=True)
    return Project(path, environ)


def _bytes(path: Path) -> bytes | None:
    return path.read_bytes() if path.exists() else None
