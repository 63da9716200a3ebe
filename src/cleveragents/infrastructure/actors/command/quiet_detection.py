"""Hearing whether anything moves below some folders, for agents that tell nothing."""

import errno
import os
import time
from collections.abc import Iterable

from cleveragents.domain.errors import ActorError
from cleveragents.infrastructure.snapshots.changes.inotify import (
    CREATE,
    FOLDER_EVENTS,
    IS_FOLDER,
    MOVED_TO,
    Inotify,
)

_GONE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)
_ARRIVES = CREATE | MOVED_TO


class Stillness:
    """A hint and no more: which files changed is found by the checkpoint itself."""

    def __init__(self, folders: Iterable[str]) -> None:
        try:
            self._queue = Inotify()
            self._paths: dict[int, bytes] = {}
            for folder in folders:
                self._watch(os.fsencode(folder))
        except OSError as error:
            raise ActorError(
                f"the agent's work cannot be watched: {error.strerror}",
                "raise fs.inotify.max_user_watches, or let the agent call `agents hook`"
                " and say `steps: hooks`",
            ) from error
        self._last_move: float | None = None

    def forget(self) -> None:
        """What has moved until now does not count."""
        self._listen()
        self._last_move = None

    def suspect(self) -> None:
        """Something may have moved before, as if it was just now."""
        self._last_move = time.monotonic()

    def lasts(self, seconds: float) -> bool:
        """Whether something has moved, and then nothing for so long."""
        self._listen()
        return self._last_move is not None and time.monotonic() - self._last_move >= seconds

    def _listen(self) -> None:
        while events := self._queue.read():
            self._last_move = time.monotonic()
            for event in events:
                if event.mask & IS_FOLDER and event.mask & _ARRIVES and event.wd in self._paths:
                    self._watch(os.path.join(self._paths[event.wd], event.name))

    def close(self) -> None:
        self._queue.close()

    def _watch(self, top: bytes) -> None:
        for folder, _, _ in os.walk(top):
            try:
                fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            except OSError as error:
                if error.errno in _GONE:
                    continue  # it moved on; the next look at the files is the checkpoint's
                raise
            try:
                self._paths[self._queue.watch(fd, FOLDER_EVENTS)] = folder
            finally:
                os.close(fd)
