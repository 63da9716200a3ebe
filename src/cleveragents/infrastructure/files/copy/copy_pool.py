"""Spreading the copying of many files over processors, by helper processes (ADR 0026).

Threads would wait for each other: what they do is mostly system calls that are too short to be
worth a change of thread.
"""

import marshal
import os
import subprocess
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager

from cleveragents.infrastructure.files.copy import copy_worker as plain_copy
from cleveragents.infrastructure.files.copy.copy_worker import NUMBER, Done, Job, Order, PlainCopy

# Below, a helper would hardly begin before all is done.
ENOUGH = 800
_MOST = 3
# What fits into a pipe at once, so that filling it does not wait for a reader.
_PIPE = 65536 // NUMBER

_Helper = subprocess.Popen[bytes]


def copy_all(plain: PlainCopy, jobs: list[Job]) -> list[Done]:
    """Do all jobs, each by whoever is free first. Raises OSError."""
    files = sum(len(names) for _, names in jobs)
    wanted = min(_MOST, len(os.sched_getaffinity(0)) - 1, files // ENOUGH)
    if not wanted or len(jobs) > _PIPE:
        return [(number, *plain.copy(job)) for number, job in enumerate(jobs)]
    with _numbers(len(jobs)) as numbers, _helpers(wanted, plain, jobs, numbers) as helpers:
        done = plain.run(jobs, numbers, for_process=None)
        for helper in helpers:
            done += _answer(helper)
    if len(done) != len(jobs):
        raise OSError("a helper that copies files has stopped before its end")
    return done


@contextmanager
def _numbers(count: int) -> Generator[int]:
    """A pipe with the numbers of all jobs in it: whoever reads one has that job."""
    reading, writing = os.pipe()
    try:
        try:
            os.write(writing, b"".join(n.to_bytes(NUMBER, "big") for n in range(count)))
        finally:
            os.close(writing)
        yield reading
    finally:
        os.close(reading)


@contextmanager
def _helpers(
    count: int, plain: PlainCopy, jobs: list[Job], numbers: int
) -> Generator[list[_Helper]]:
    # -I and -S: nothing of the user's is loaded, and it starts in half the time.
    argv = [sys.executable, "-I", "-S", plain_copy.__file__]
    started: list[_Helper] = []
    try:
        with _order((*plain.order, numbers, os.getpid(), jobs)) as order:
            for _ in range(count):
                started.append(_start(argv, order, numbers))
        yield started
    finally:
        for helper in started:
            with helper:  # its end is waited for: it must not write behind our back
                helper.kill()


@contextmanager
def _order(told: Order) -> Generator[int]:
    """In a file, as a pipe would make us wait until its reader is there."""
    fd = os.memfd_create("order", os.MFD_CLOEXEC)
    try:
        with os.fdopen(fd, "wb", closefd=False) as file:
            marshal.dump(told, file)
        yield fd
    finally:
        os.close(fd)


def _start(argv: Sequence[str], order: int, numbers: int) -> _Helper:
    return subprocess.Popen(
        argv,
        stdin=order,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd="/",
        pass_fds=[numbers],
    )


def _answer(helper: _Helper) -> list[Done]:
    output, _ = helper.communicate()
    try:
        done: list[Done] = marshal.loads(output)
    except (EOFError, ValueError, TypeError) as error:
        raise OSError(f"a helper that copies files ended with {helper.returncode}") from error
    return done
