"""Work in a second thread while this one goes on: for what mostly waits for another process.

Without `concurrent.futures`, which takes longer to load than most of what is done here.
"""

import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Generic, TypeVar

T = TypeVar("T")


class Beside(Generic[T]):
    """Begun at once. Whoever needs what comes of it waits for it, and is told what it raised."""

    def __init__(self, work: Callable[[], T]) -> None:
        self._work = work
        self._found: list[T] = []
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="beside")
        self._thread.start()

    def result(self) -> T:
        self._thread.join()
        if self._error is not None:
            raise self._error
        return self._found[0]

    def _run(self) -> None:
        try:
            self._found.append(self._work())
        except BaseException as error:  # noqa: BLE001 - told to whoever waits for it
            self._error = error

    def wait(self) -> None:
        self._thread.join()


@contextmanager
def beside(work: Callable[[], T]) -> Generator[Beside[T]]:
    """It has ended when the block is left, however that is left."""
    begun = Beside(work)
    try:
        yield begun
    finally:
        begun.wait()
