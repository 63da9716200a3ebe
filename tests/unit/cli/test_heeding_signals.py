"""The parts of heeding a signal, one by one; what a process does is in test_signals."""

import os
import signal
import sys
from collections.abc import Generator
from types import SimpleNamespace
from typing import Any

import pytest

from cleveragents.cli import interruptions as module
from cleveragents.cli.interruptions import (
    INTERRUPTED,
    INTERRUPTIONS,
    Interruption,
    Interruptions,
    leave_with,
)


class _Left(BaseException):
    """In place of the end of the process."""


@pytest.fixture(autouse=True)
def left(monkeypatch: pytest.MonkeyPatch) -> Generator[list[int]]:
    """With which codes the process would have ended; its signals are as before afterwards."""
    codes: list[int] = []

    def leave(code: int) -> None:
        codes.append(code)
        raise _Left

    handlers = {number: signal.getsignal(number) for number in INTERRUPTIONS}
    monkeypatch.setattr(os, "_exit", leave)
    yield codes
    for number, handler in handlers.items():
        signal.signal(number, handler)


def _interrupt(heeding: Interruptions) -> None:
    heeding._interrupt(signal.SIGINT, None)  # as the signal would


def test_the_first_one_is_raised_and_more_of_it_are_not(left: list[int]) -> None:
    heeding = Interruptions()
    with pytest.raises(Interruption) as caught:
        _interrupt(heeding)
    _interrupt(heeding)  # what undoes goes on
    assert isinstance(caught.value, KeyboardInterrupt)
    assert left == []


def test_after_the_arrival_nothing_is_raised_and_after_the_end_it_leaves(left: list[int]) -> None:
    heeding = Interruptions()
    heeding.arrived()
    _interrupt(heeding)
    heeding.end()
    with pytest.raises(_Left):
        _interrupt(heeding)
    assert left == [INTERRUPTED]


def test_a_copy_of_the_process_tells_nobody_of_its_signals() -> None:
    heeding = Interruptions()
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    before = signal.set_wakeup_fd(writing)
    try:
        heeding._be_silent()  # nothing is heeded yet
        assert signal.set_wakeup_fd(writing) == writing
        heeding._pipe = (reading, writing)  # as if it were
        heeding._be_silent()  # as in a new process
        assert signal.set_wakeup_fd(-1) == -1
    finally:
        signal.set_wakeup_fd(before)
        os.close(reading)
        os.close(writing)


@pytest.mark.parametrize("number", INTERRUPTIONS)
def test_who_has_nothing_left_to_do_leaves_at_once(number: int, left: list[int]) -> None:
    leave_with(3)
    with pytest.raises(_Left):
        signal.raise_signal(number)
    assert left == [3]


def test_the_second_one_leaves_a_while_and_then_the_last_act_is_done(
    left: list[int], monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    acts: list[str] = []
    monkeypatch.setattr(module, "_SECONDS_LEFT", 0.0)
    heeding = Interruptions()
    heeding.last_act = lambda: acts.append("done")
    reading, writing = os.pipe()
    os.write(writing, bytes([signal.SIGINT, signal.SIGCHLD, signal.SIGTERM]))
    with pytest.raises(_Left):
        heeding._watch(reading)  # the thread
    os.close(reading)
    os.close(writing)
    assert (acts, left) == (["done"], [INTERRUPTED])
    assert "interrupted again" in capfd.readouterr().err


def test_it_ends_even_if_the_last_act_fails(left: list[int]) -> None:
    def fail() -> None:
        raise ValueError

    with pytest.raises(_Left):
        module._end_at_once(fail)  # there is no other way to it but to wait
    assert left == [INTERRUPTED]


def test_a_watch_that_is_over_lets_go_of_its_end(left: list[int]) -> None:
    reading, writing = os.pipe()
    os.write(writing, bytes([signal.SIGINT]))
    os.close(writing)
    Interruptions()._watch(reading)  # the thread
    with pytest.raises(OSError, match="Bad file"):
        os.fstat(reading)
    assert left == []


def test_that_an_interruption_was_dropped_is_no_news(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[Any] = []
    monkeypatch.setattr(sys, "__unraisablehook__", told.append)
    lost: Any = SimpleNamespace(exc_value=Interruption())
    other: Any = SimpleNamespace(exc_value=ValueError())
    module._quiet(lost)  # Python calls it
    module._quiet(other)  # as above
    assert told == [other]
