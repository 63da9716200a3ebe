"""Which layers a sandbox has, and what lies beside it for them, out of the reach of steps."""

import os
import time
from collections.abc import Sequence

from cleveragents.infrastructure.files.durable_files import put_file, read_file

# No resource has a dot in its name, so that this is never another resource's sandbox.
BESIDE = ".layers"
_KNOWN, _COPIED, _SINCE = "known", "copied", "since"


def beside(sandbox: str) -> str:
    """The folder that belongs to the layers of a sandbox, and goes with it."""
    return f"{sandbox}{BESIDE}"


def known_layers(sandbox: str) -> list[str]:
    """Those that a sandbox has, whether they can be mounted now or not."""
    return _read(sandbox, _KNOWN)


def is_noted(sandbox: str) -> bool:
    """Whether it is on record which ones it has, be it none."""
    return os.path.lexists(os.path.join(beside(sandbox), _KNOWN))


def copied_folders(sandbox: str) -> list[str]:
    """Ignored ones that were copied, where there can be no layers."""
    return _read(sandbox, _COPIED)


def layers_since(sandbox: str) -> dict[str, int]:
    """When each of them was found, in nanoseconds, as far as that is still known."""
    told = _read(sandbox, _SINCE)
    return {path: int(moment) for path, moment in zip(told[::2], told[1::2], strict=True)}


def note_found(sandbox: str, paths: Sequence[str]) -> None:
    """Now, and before they are known."""
    since = layers_since(sandbox) | dict.fromkeys(paths, time.time_ns())
    _note(sandbox, _SINCE, [text for path in since for text in (path, str(since[path]))])


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
