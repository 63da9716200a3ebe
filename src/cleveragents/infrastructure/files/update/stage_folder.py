"""A private folder on a project's own file system: new files lie ready in it, old ones are kept."""

import os
from contextlib import suppress

from cleveragents.infrastructure.files.copy.one_file import copy_one
from cleveragents.infrastructure.files.filesystems import sync_all
from cleveragents.infrastructure.files.rooted_folder import FOLDER_FLAGS

_HALF = b"half"


class StageFolder:
    """Names in it are given by the caller, and survive a kill."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.fd = os.open(path, FOLDER_FLAGS)

    def close(self) -> None:
        os.close(self.fd)

    def keep(self, name: bytes, folder: int, original: bytes) -> None:
        """Hold on to the very file of the user's, or to a copy where the file system cannot."""
        self.drop(name)
        try:
            os.link(original, name, src_dir_fd=folder, dst_dir_fd=self.fd, follow_symlinks=False)
        except OSError:
            self.drop(_HALF)
            copy_one(folder, original, self.fd, _HALF, synced=False)
            os.rename(_HALF, name, src_dir_fd=self.fd, dst_dir_fd=self.fd)

    def drop(self, name: bytes) -> None:
        with suppress(FileNotFoundError):
            os.unlink(name, dir_fd=self.fd)

    def make_durable(self) -> None:
        """All that lies here, and whatever else was written to its file system (ADR 0065)."""
        sync_all(self.fd)
