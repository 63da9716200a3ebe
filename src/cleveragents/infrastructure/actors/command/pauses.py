"""When an agent makes a pause: something has moved, and then nothing for a while."""

import time
from collections.abc import Callable

from cleveragents.domain.errors import ActorError
from cleveragents.infrastructure.actors.command.quiet_detection import Stillness


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
