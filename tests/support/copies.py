"""A folder as it was before: what the kill suites begin each of their runs from."""

import shutil
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Any

_Error = tuple[type[BaseException], BaseException, TracebackType]


def put_back(top: Path, saved: Path) -> None:
    """The folder is a copy of the saved one again, whatever a run has made of it."""
    remove(top)
    subprocess.run(["cp", "-a", str(saved), str(top)], check=True)


def remove(top: Path) -> None:
    """All of it, whatever is gone meanwhile."""
    shutil.rmtree(top, onerror=_unless_gone)


def _unless_gone(_function: object, _path: Any, error: _Error) -> None:
    # What a command throws away is removed by a process of its own, which may still be at it.
    if not isinstance(error[1], FileNotFoundError):
        raise error[1]
