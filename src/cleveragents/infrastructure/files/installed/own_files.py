"""All that an installation keeps on the disk, and removing it: nothing that somebody else made."""

import os
import shutil
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress

from cleveragents.domain.holdings import FolderContents
from cleveragents.infrastructure.files.data_folder import DATABASE, FOLDERS, FURTHER, SETTINGS
from cleveragents.infrastructure.files.installed.disk_usage import bytes_below
from cleveragents.infrastructure.files.installed.trash import Trash

_SQLITE = ("", "-wal", "-shm", "-journal")


class InstalledFiles:
    """The port OwnFiles. `close` ends what is open in the data folder, so that nothing of it is
    written again."""

    def __init__(self, folder: str, database: str, close: Callable[[], None]) -> None:
        self._folder = folder
        self._database = database
        self._close = close

    def contents(self) -> FolderContents:
        found = {path: bytes_below(path) for path in self._ours() if os.path.lexists(path)}
        settings = os.path.join(self._folder, SETTINGS)
        known = {os.path.basename(path) for path in self._ours()} | {SETTINGS}
        return FolderContents(
            location=self._folder,
            ours=found,
            strange=tuple(name for name in _names(self._folder) if name not in known),
            settings=(settings,) if os.path.lexists(settings) else (),
        )

    def remove(self, *, keep_settings: bool) -> Mapping[str, str]:
        found = self.contents()
        self._close()
        Trash(self._folder).empty_now()  # nobody else deletes there while we do
        failed: dict[str, str] = {}
        for path in (*found.ours, *(() if keep_settings else found.settings)):
            try:
                with suppress(FileNotFoundError):  # a journal went with the connection
                    _remove(path)
            except OSError as error:
                failed[path] = error.strerror or str(error)
        if not _names(self._folder) and os.path.isdir(self._folder):
            os.rmdir(self._folder)
        return failed

    def _ours(self) -> Iterator[str]:
        """The records last: until they are gone, all the rest is found again."""
        for name in (*FOLDERS, *FURTHER):
            yield os.path.join(self._folder, name)
        database = self._database or os.path.join(self._folder, DATABASE)
        yield from (f"{database}{end}" for end in reversed(_SQLITE))


def _names(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def _remove(path: str) -> None:
    if os.path.islink(path) or not os.path.isdir(path):
        os.unlink(path)
        return
    # Of a sandbox a tool may have left folders read-only, which would keep their files from going.
    for _, folders, _, descriptor in os.fwalk(path):
        for name in folders:
            if stat.S_ISDIR(os.stat(name, dir_fd=descriptor, follow_symlinks=False).st_mode):
                os.chmod(name, 0o700, dir_fd=descriptor)
    shutil.rmtree(path)
