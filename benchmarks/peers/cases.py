"""Owns the shape of a fidelity case, and the repository that each of them starts from.

A case is two shell scripts, run in the tree: what is there when the snapshot is taken, and what
happens to it afterwards. `$OUTSIDE` is a folder that is none of the tool's business.
"""

from dataclasses import dataclass

BASE = r"""
git init -q -b main
mkdir -p src/lib data
printf 'first\n' > README.md
printf 'def main():\n    return 1\n' > src/app.py
printf 'one = 1\n' > src/lib/util.py
printf 'a,b\n1,2\n' > data/table.csv
printf '#!/bin/sh\necho run\n' > run.sh
chmod +x run.sh
printf '*.log\n.env\nout/\n*.db\n*.db-*\n' > .gitignore
ln -s README.md link
git add -A
git commit -q -m first
printf 'second\n' >> README.md
git commit -q -a -m second
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """`steps` are scripts with a snapshot before each; the restore is to the first of them, and
    `forth` goes on to one that is taken after the last. `config` goes into the user's git
    settings, `environ` into what the tool sees."""

    name: str
    before: str
    steps: tuple[str, ...]
    config: str
    environ: tuple[tuple[str, str], ...]
    forth: bool


def case(
    name: str,
    before: str,
    *steps: str,
    config: str = "",
    environ: tuple[tuple[str, str], ...] = (),
    forth: bool = False,
) -> Case:
    """Short, since there are many of them."""
    return Case(name=name, before=before, steps=steps, config=config, environ=environ, forth=forth)
