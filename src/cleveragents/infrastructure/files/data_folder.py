"""The data folder: that it is the user's own, and closed to everybody else (ADR 0045).

Snapshots hold every file of a project, secrets included; and whoever can write here can have us
write and remove anything.
"""

import os
import stat

from cleveragents.domain.errors import DataDirError

FOLDERS = ("locks", "sandboxes", "scratch", "snapshots", "trash")
DATABASE = "cleveragents.db"
SETTINGS = "config.toml"
FURTHER = ("crashes", "machine.json")
_KNOWN = frozenset((*FOLDERS, *FURTHER, SETTINGS))
_PRIVATE = 0o700
_OTHERS = 0o077


def make_private(path: str) -> None:
    """With all that is missing above it, where `os.makedirs` would leave that open to others."""
    try:
        os.mkdir(path, _PRIVATE)
    except FileExistsError:
        pass
    except FileNotFoundError:
        make_private(os.path.dirname(path))
        make_private(path)


class DataFolder:
    def __init__(self, path: str) -> None:
        self._path = path
        self._closed: list[str] = []

    @property
    def notices(self) -> tuple[str, ...]:
        """What a person should know of what `prepare` has done."""
        if not self._closed:
            return ()
        names = ", ".join(self._closed)
        return (f"was open to other users of this machine, and is closed to them now: {names}",)

    def prepare(self) -> None:
        """Make it and what is in it, as far as it is not there. Raises DataDirError."""
        try:
            self._settle(self._path)
            for name in FOLDERS:
                self._settle(os.path.join(self._path, name))
        except OSError as error:
            raise DataDirError(self._path, error.strerror or str(error)) from error

    def _settle(self, path: str) -> None:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        try:
            os.mkdir(path, _PRIVATE)
        except FileExistsError:
            self._settle_existing(path)

    def _settle_existing(self, path: str) -> None:
        found = os.stat(path)
        if not stat.S_ISDIR(found.st_mode):
            raise DataDirError(self._path, f"{path} is not a folder", "move that away")
        if found.st_uid != os.geteuid():
            raise DataDirError(self._path, f"{path} belongs to another user", "use one of your own")
        if found.st_mode & _OTHERS:
            self._close(path)

    def _close(self, path: str) -> None:
        """One that holds other things too is not ours to close."""
        strange = [] if path != self._path else sorted(filter(_is_strange, os.listdir(path)))
        if strange:
            raise DataDirError(
                self._path,
                f"other users can look into it, and it holds more than ours ({strange[0]})",
                f"use a folder of its own, or close it with `chmod 700 {path}`",
            )
        os.chmod(path, _PRIVATE)
        if os.stat(path).st_mode & _OTHERS:
            raise DataDirError(
                self._path,
                f"{path} cannot be closed to other users",
                "use a file system that keeps modes",
            )
        self._closed.append(path)


def _is_strange(name: str) -> bool:
    return name not in _KNOWN and not name.startswith(DATABASE)
