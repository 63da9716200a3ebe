"""Owns the trees that speed is measured on, and how they are changed: by another process."""

import random
import shutil
import subprocess
from pathlib import Path

from benchmarks.peers.places import Place

FILES_PER_FOLDER = 15
SHELL_STEP = 'while read -r name; do printf "%s %s\\n" "$1" "$name" >> "$name"; done'


class Template:
    """A project of many small files, made once and copied for each tool."""

    def __init__(self, top: Path, files: int) -> None:
        self._place = Place(top)
        self.names = _fill(self._place.project, files)
        # Packed here and now: git would start to do it in the background, under the copies.
        for words in ("init -q -b main", "add -A", "commit -q -m base", "repack -q -a -d"):
            self._place.run("git", "-c", "gc.auto=0", *words.split())

    def copy(self, top: Path) -> Place:
        place = Place(top)
        place.project.rmdir()
        subprocess.run(["cp", "-a", str(self._place.project), str(place.project)], check=True)
        # The index knows files by their number, and those of a copy are new.
        place.run("git", "update-index", "-q", "--refresh", accept=(0, 1))
        return place

    def remove(self) -> None:
        shutil.rmtree(self._place.top)

    def some(self, changed: int) -> list[str]:
        step = max(1, len(self.names) // changed)
        return self.names[::step][:changed]

    def change(self, tree: Path, changed: int, stamp: str) -> None:
        """As a shell step does: nobody declares what it wrote."""
        names = "\n".join(self.some(changed)) + "\n"
        words = ["/bin/sh", "-c", SHELL_STEP, "sh", stamp]
        subprocess.run(words, input=names.encode(), cwd=tree, check=True)

    def contents(self, tree: Path, changed: int) -> list[bytes]:
        return [(tree / name).read_bytes() for name in self.some(changed)]


def _fill(project: Path, files: int) -> list[str]:
    dice = random.Random(files)
    words = [f"{dice.randrange(1 << 32):x}" for _ in range(2000)]
    names: list[str] = []
    for number in range(files):
        folder = number // FILES_PER_FOLDER
        name = f"d{folder % 40}/e{folder // 40}/f{number}.txt"
        path = project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(" ".join(dice.choices(words, k=dice.randrange(20, 500))) + "\n")
        names.append(name)
    return names
