"""The tutorial is run as it is read: each command in turn, and what it shows is compared."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FENCE = re.compile(r'^```(\w+)(?: title="([^"]+)")?\n(.*?)^```$', re.DOTALL | re.MULTILINE)
ANYTHING = "…"
DECISION = re.compile(r"lower the orders  \((\w{26})")


def test_the_tutorial_is_true(tmp_path: Path) -> None:
    reader = Reader(tmp_path)
    for language, title, text in FENCE.findall((ROOT / "docs/tutorial.md").read_text("utf-8")):
        if title:
            (reader.folder / title).write_text(text, "utf-8")
        elif language == "console":
            for command, shown in commands(text):
                reader.type(command, shown)
    assert reader.typed > 10


class Reader:
    """Types into a shell of its own, in a home of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.typed = 0
        self._decision = "DECISION_ID"
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        self._environ = {"HOME": str(folder), "PATH": path, "COLUMNS": "100"}

    def type(self, command: str, shown: list[str]) -> None:
        told = self.folder.parent / "folder"
        script = f"{command.replace('DECISION_ID', self._decision)} && pwd > '{told}'"
        done = subprocess.run(
            ["bash", "-c", script],
            cwd=self.folder,
            env=self._environ,
            text=True,
            capture_output=True,
            check=False,
        )
        assert done.returncode == 0, (command, done.stdout, done.stderr)
        self.folder = Path(told.read_text("utf-8").strip())
        found = DECISION.search(done.stdout)
        if found is not None:
            self._decision = found[1]
        assert_shown(command, [line.replace("DECISION_ID", self._decision) for line in shown], done)
        self.typed += 1


def commands(text: str) -> Iterator[tuple[str, list[str]]]:
    """Each command, and the lines that the page shows below it."""
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, *shown = part.rstrip("\n").split("\n")
        yield command, shown


def assert_shown(command: str, shown: list[str], done: "subprocess.CompletedProcess[str]") -> None:
    pattern = "\n".join(re.escape(line).replace(ANYTHING, ".*") for line in shown)
    assert re.fullmatch(pattern, done.stdout.rstrip("\n"), re.DOTALL), (command, done.stdout)
