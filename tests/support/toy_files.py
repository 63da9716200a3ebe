"""The file of a note, read and written: every change of it is one rename."""

import os
from contextlib import suppress
from pathlib import Path


def read_note(path: str) -> bytes | None:
    with suppress(FileNotFoundError):
        return Path(path).read_bytes()
    return None


def write_note(path: str, content: bytes | None) -> None:
    """What is there is the old or the new one, whenever this is killed."""
    if content is None:
        Path(path).unlink(missing_ok=True)
        return
    Path(path).parent.mkdir(exist_ok=True, parents=True)
    # Elsewhere than beside a sandbox that is watched, a name of its own would do.
    draft = f"{path}.draft"
    with Path(draft).open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    Path(draft).replace(path)
