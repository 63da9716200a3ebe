"""A folder with work in its sandbox, for the tests of applying it."""

import os
from pathlib import Path

from fs_world import FolderWorld

BEGIN = """
mkdir -p d/sub empty keep gone/deep; echo one > a; echo b > d/b; echo s > d/sub/s; echo k > keep/k
echo g > gone/deep/g; echo gg > gone/gg; ln -s a link; printf r > run; echo swap > swap
echo m > mode
printf 'bad' > "$(printf 'n\\377')"
"""
WORK = """
echo two > a; rm d/b; echo new > d/new; rm -r gone; echo file > gone; rm swap; mkdir swap
echo in > swap/in; rm link; ln -s keep/k link; chmod 700 run; mkdir -p x/y/z; echo deep > x/y/z/f
rmdir empty; chmod 600 mode; mkdir -m 700 hollow; printf 'n
l' > 'new
line'; printf d > ./-dash; printf 'worse' > "$(printf 'n\\377')"; chmod 750 d/sub
"""


def quick() -> Path | None:
    shm = Path("/dev/shm")
    return shm if os.access(shm, os.W_OK) else None


def begun(world: FolderWorld, *exclude: str) -> None:
    world.in_project(BEGIN)
    world.begin(*exclude)
