"""Owns the folders in which one tool meets one project, and the environment it runs in."""

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

KEPT = ("PATH", "LANG", "LC_ALL")
IDENTITY = "[user]\n\tname = Compare\n\temail = compare@example.org\n"


class PeerError(Exception):
    """A tool did not do what it was asked for; the text is what it said."""


class Place:
    """A project, a home, a store and the rest of the world, for one tool only."""

    def __init__(self, top: Path, shared: Path | None = None) -> None:
        self.top = top
        self.project, self.home = top / "project", top / "home"
        self.store, self.outside = top / "store", top / "outside"
        for folder in (self.project, self.home, self.store, self.outside):
            folder.mkdir(parents=True, exist_ok=True)
        # For what a tool sets up once and then uses for every project.
        self.shared = shared or self.store
        (self.home / ".gitconfig").write_text(IDENTITY)
        self.extra: dict[str, str] = {}

    @property
    def environ(self) -> dict[str, str]:
        """What a tool sees: a home of its own, and nothing of the caller's git or settings."""
        return {**self.clean_environ, **self.extra}

    @property
    def clean_environ(self) -> dict[str, str]:
        kept = {name: os.environ[name] for name in KEPT if name in os.environ}
        # Without this, git would find the repository that the whole comparison may stand in.
        return {**kept, "HOME": str(self.home), "GIT_CEILING_DIRECTORIES": str(self.top)}

    def run(
        self,
        *argv: str | Path,
        cwd: Path | None = None,
        stdin: bytes = b"",
        environ: Mapping[str, str] | None = None,
        accept: tuple[int, ...] = (0,),
    ) -> bytes:
        done = subprocess.run(
            [str(word) for word in argv],
            cwd=cwd or self.project,
            env={**self.environ, **(environ or {})},
            input=stdin,
            capture_output=True,
            check=False,
        )
        if done.returncode not in accept:
            said = (done.stderr or done.stdout).decode(errors="replace").strip()
            raise PeerError(f"{Path(str(argv[0])).name}: {self.shortened(said)}")
        return done.stdout

    def shortened(self, text: str) -> str:
        """Its last line, without the places of this machine."""
        lines = [line.strip() for line in text.splitlines() if line.strip()] or ["no reason given"]
        return lines[-1].replace(str(self.top), "…")[:160]


def bytes_on_disk(*folders: Path) -> int:
    """Allocated blocks of files and folders; what has several names counts once."""
    seen: dict[tuple[int, int], int] = {}
    for top in folders:
        for folder, _, names in os.walk(top):
            for name in (".", *names):
                found = os.lstat(os.path.join(folder, name))  # noqa: PTH118 - any bytes in names
                seen[found.st_dev, found.st_ino] = found.st_blocks * 512
    return sum(seen.values())
