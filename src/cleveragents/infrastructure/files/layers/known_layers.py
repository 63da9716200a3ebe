"""Which layers a sandbox has, and what lies beside it for them, out of the reach of steps."""

import os
from collections.abc import Sequence

from cleveragents.infrastructure.files.durable_files import put_file, read_file

# No resource has a dot in its name, so that this is never another resource's sandbox.
BESIDE = ".layers"
_KNOWN, _COPIED = "known", "copied"


def beside(sandbox: str) -> str:
    """The folder that belongs to the layers of a sandbox, and goes with it."""
    return f"{sandbox}{BESIDE}"


def known_layers(sandbox: str) -> list[str]:
    """Those that a sandbox has, whether they can be mounted now or not."""
    return _read(sandbox, _KNOWN)


def copied_folders(sandbox: str) -> list[str]:
    """Ignored ones that were copied, where there can be no layers."""
    return _read(sandbox, _COPIED)


def note_layers(sandbox: str, known: Sequence[str]) -> None:
    _note(sandbox, _KNOWN, known)


def note_copied(sandbox: str, copied: Sequence[str]) -> None:
    _note(sandbox, _COPIED, copied)


def branch_layers(parent: str, child: str) -> None:
    """The child's sandbox has the layers of its parent's; their upper parts are copied with it."""
    for name in (_KNOWN, _COPIED):
        if paths := _read(parent, name):
            _note(child, name, paths)


def _read(sandbox: str, name: str) -> list[str]:
    try:
        told = read_file(beside(sandbox), name) or b""
    except OSError:
        return []
    return [os.fsdecode(path) for path in told.split(b"\0") if path]


def _note(sandbox: str, name: str, paths: Sequence[str]) -> None:
    folder = beside(sandbox)
    os.makedirs(folder, mode=0o700, exist_ok=True)
    put_file(folder, name, b"\0".join(map(os.fsencode, paths)))
