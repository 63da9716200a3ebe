"""Owns reading a page as a person does: each command in turn, and what it shows is compared."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

FENCE = re.compile(r'^```(\w+)(?: title="([^"]+)")?\n(.*?)^```$', re.DOTALL | re.MULTILINE)
ANYTHING = "…"
# In what a page shows, this stands for an id that later commands on the page use.
NAMED = "DECISION_ID"


class Reader:
    """Types into a shell of its own, in a home of its own; `path` are further folders of programs.

    A file that the page shows with a title is written down, relative to where the reader is.
    """

    def __init__(
        self, home: Path, *, path: tuple[Path, ...] = (), environ: Mapping[str, str] | None = None
    ) -> None:
        self.folder = home
        self.typed = 0
        self._home = home
        self._told = home.parent / f"{home.name}-told"
        self._named = NAMED
        places = [*map(str, path), str(Path(sys.executable).parent), os.environ["PATH"]]
        own = {"HOME": str(home), "PATH": os.pathsep.join(places), "COLUMNS": "100"}
        self._environ = {**own, **(environ or {})}

    def read(self, page: Path) -> None:
        for language, title, text in FENCE.findall(page.read_text("utf-8")):
            if title:
                self._write(title, text)
            elif language == "console":
                for command, shown in commands(text):
                    self.type(command, shown)

    def type(self, command: str, shown: list[str]) -> None:
        script = f"{command.replace(NAMED, self._named)}\ncode=$?; pwd > '{self._told}'; exit $code"
        done = subprocess.run(
            ["bash", "-c", script],
            cwd=self.folder,
            env=self._environ,
            text=True,
            capture_output=True,
            check=False,
        )
        assert done.returncode == 0, (command, done.stdout, done.stderr)
        self.folder = Path(self._told.read_text("utf-8").strip())
        self._compare(command, shown, done.stdout.rstrip("\n"))
        self.typed += 1

    def _write(self, title: str, text: str) -> None:
        path = Path(title.replace("~", str(self._home)))
        (self.folder / path).parent.mkdir(parents=True, exist_ok=True)
        (self.folder / path).write_text(text, "utf-8")

    def _compare(self, command: str, shown: list[str], said: str) -> None:
        pattern = "\n".join(re.escape(line).replace(ANYTHING, ".*") for line in shown)
        new = NAMED in pattern and self._named == NAMED
        pattern = pattern.replace(NAMED, r"(?P<named>\w{26})" if new else self._named, 1)
        found = re.fullmatch(pattern, said, re.DOTALL)
        assert found, f"$ {command}\n{said}"
        if new:
            self._named = found["named"]


def commands(text: str) -> Iterator[tuple[str, list[str]]]:
    """Each command, and the lines that the page shows below it."""
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, *shown = part.rstrip("\n").split("\n")
        while command.endswith("\\"):
            command += "\n" + shown.pop(0).removeprefix("> ")
        yield command, shown


def files(page: Path) -> Mapping[str, str]:
    """What the page shows with a title."""
    return {title: text for _, title, text in FENCE.findall(page.read_text("utf-8")) if title}
