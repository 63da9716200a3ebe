"""Telling that there is no more of something from every other trouble.

A limit on open files, processes or memory meets whatever asks next: git that is there seems to be
missing, and our own code to be wrong. So those who translate errors ask here first.
"""

import errno
from enum import Enum

from cleveragents.domain.errors import OutOfResourcesError


class Resource(Enum):
    """What there can be no more of: how it is told, and what helps."""

    FILES = (
        "this process may open no more files",
        "raise the limit (see `ulimit -n`)",
    )
    FILES_OF_MACHINE = (
        "this machine can open no more files",
        "end programs that have many open",
    )
    PROCESSES = (
        "no more processes or threads can be started",
        "end some, or raise the limit (see `ulimit -u` and `ulimit -v`, and those of the"
        " container)",
    )
    MEMORY = (
        "there is not enough memory",
        "end other programs, or raise the limit (see `ulimit -v`, and that of the container)",
    )

    @property
    def lacking(self) -> OutOfResourcesError:
        return OutOfResourcesError(*self.value)


_BY_NUMBER = {
    errno.EMFILE: Resource.FILES,
    errno.ENFILE: Resource.FILES_OF_MACHINE,
    errno.EAGAIN: Resource.PROCESSES,
    errno.ENOMEM: Resource.MEMORY,
}
# A library that cannot be loaded is told by the system's loader, in words only.
_BY_WORDS = {
    "Too many open files": Resource.FILES,
    "Cannot allocate memory": Resource.MEMORY,
    "failed to map segment": Resource.MEMORY,
}


def scarcity_of(error: BaseException | None) -> OutOfResourcesError | None:
    """What there is no more of, if that is what an error comes from."""
    while error is not None:
        missing = _missing(error)
        if missing is not None:
            return missing.lacking
        error = error.__cause__
    return None


def scarcity_by_number(number: int | None) -> OutOfResourcesError | None:
    missing = _BY_NUMBER.get(number or 0)
    return None if missing is None else missing.lacking


def _missing(error: BaseException) -> Resource | None:
    if isinstance(error, MemoryError):
        return Resource.MEMORY
    if isinstance(error, OSError):
        return _BY_NUMBER.get(error.errno or 0)
    if isinstance(error, RuntimeError) and str(error) == "can't start new thread":
        return Resource.PROCESSES
    if isinstance(error, ImportError):
        return next((what for words, what in _BY_WORDS.items() if words in str(error)), None)
    return None
