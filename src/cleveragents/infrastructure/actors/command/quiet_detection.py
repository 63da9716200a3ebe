"""Hearing whether anything moves below some folders, and when an agent makes a pause.

For agents that tell nothing: a pause is that something has moved, and then nothing for a while.
"""

import errno
import os
import time
from collections.abc import Callable, Iterable

from cleveragents.domain.errors import ActorError
from cleveragents.infrastructure.files.walk import folders_below
from cleveragents.infrastructure.snapshots.changes.inotify import (
    CREATE,
    FOLDER_EVENTS,
    IS_FOLDER,
    MOVED_TO,
    Inotify,
)

_GONE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG)
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
        for name, _ in folders_below(os.fsdecode(top)):
            folder = os.fsencode(name)
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


class Pauses:
    """To watch every folder costs something: an agent that tells what it does is watched only
    once it has been silent for so long. `problem` is why it cannot be."""

    def __init__(self, watch: Callable[[], Stillness], seconds: float) -> None:
        self._watch = watch
        self._seconds = seconds
        self._stillness: Stillness | None = None
        self._since = time.monotonic()
        self.problem = ""

    def begin(self) -> None:
        """Watch from now on. Raises ActorError."""
        self._stillness = self._watch()

    def forget(self) -> None:
        """What has moved until now does not count."""
        self._since = time.monotonic()
        if self._stillness is not None:
            self._stillness.forget()

    def is_one_now(self) -> bool:
        if self._stillness is not None:
            return self._stillness.lasts(self._seconds)
        if not self.problem and time.monotonic() - self._since >= self._seconds:
            self._begin_late()
        return False

    def close(self) -> None:
        if self._stillness is not None:
            self._stillness.close()

    def _begin_late(self) -> None:
        try:
            self.begin()
        except ActorError as error:
            self.problem = error.message
        else:
            assert self._stillness is not None
            # What happened before is not known, so that it is worth a look.
            self._stillness.suspect()
