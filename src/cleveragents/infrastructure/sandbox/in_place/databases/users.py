"""Refusing to write a database that others use: looked for first, and again under the lock."""

import time
from collections.abc import Sequence

from cleveragents.domain.errors import DatabaseInUseError
from cleveragents.infrastructure.sqlite.in_use import users_of

# A reader is through with it in a moment; who has a log open, or writes, is not.
_SECONDS = 2.0
_PAUSE = 0.05


def refuse_in_use(path: str) -> None:
    """Raises DatabaseInUseError. We have not opened it ourselves."""
    deadline = time.monotonic() + _SECONDS
    while (users := users_of(path)).is_in_use:
        if users.is_written or users.writers or time.monotonic() > deadline:
            raise DatabaseInUseError(path, users.named)
        time.sleep(_PAUSE)


def refuse_writers(path: str) -> None:
    """The same while we have it open and locked: who opened it in between has to be seen."""
    writers = users_of(path).writers
    if writers:
        raise DatabaseInUseError(path, writers)


def in_use(path: str) -> DatabaseInUseError:
    users = users_of(path)
    return DatabaseInUseError(path, users.named or users.readers)


def readers_of(path: str) -> Sequence[str]:
    """Who has it open for reading only: what they remember of it is not what is there."""
    return users_of(path).readers
