"""A program at a terminal of its own, and the user's that is theirs again after it."""

import os
import select
import signal
import termios
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import IO

import pytest

from cleveragents.infrastructure.terminal import own_terminal, relays, user_terminal
from cleveragents.infrastructure.terminal.console import Console
from cleveragents.infrastructure.terminal.own_terminal import OwnTerminal
from cleveragents.infrastructure.terminal.relays import Outlet, PassedThrough
from cleveragents.infrastructure.terminal.user_terminal import (
    UserTerminal,
    guarded,
    has_the_terminal,
)

_LFLAG = 3


class Terminal:
    """`far` is the person's side of it, `near` ours."""

    def __init__(self) -> None:
        self.far, self.near = os.openpty()

    def seen(self) -> bytes:
        """What has been shown by now."""
        shown = b""
        while select.select([self.far], [], [], 0)[0]:
            shown += os.read(self.far, 4096)
        return shown

    def close(self) -> None:
        for number in (self.far, self.near):
            with suppress(OSError):
                os.close(number)


@pytest.fixture
def terminal() -> Iterator[Terminal]:
    made = Terminal()
    yield made
    made.close()


class Nothing:
    """A process that has no pipes."""

    stdout: IO[bytes] | None = None
    stderr: IO[bytes] | None = None


def is_raw(number: int) -> bool:
    return not termios.tcgetattr(number)[_LFLAG] & termios.ICANON


# --- the user's ---------------------------------------------------------------------------------


def test_it_is_handed_over_again_and_again_and_is_what_it_was(terminal: Terminal) -> None:
    user, before = UserTerminal(terminal.near, terminal.near), termios.tcgetattr(terminal.near)

    for _ in range(2):
        user.hand_over()
        user.hand_over(b"\x1b[?1049l")
        assert is_raw(terminal.near)
        user.take_back()
        user.take_back()
        assert termios.tcgetattr(terminal.near) == before
    user.let_go()
    user.let_go()
    assert terminal.seen() == b""  # nobody was killed, so the guard has written nothing


def test_without_a_guard_it_is_handed_over_all_the_same(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refusing(*_given: object, **_named: object) -> None:
        raise OSError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(user_terminal.subprocess, "Popen", refusing)
    user, before = UserTerminal(terminal.near, terminal.near), termios.tcgetattr(terminal.near)

    assert guarded(terminal.near, before) is None
    user.hand_over(b"\x1b[?25h")
    assert is_raw(terminal.near)
    user.take_back()
    user.let_go()
    assert termios.tcgetattr(terminal.near) == before


def test_one_that_is_gone_is_taken_back_without_a_word(terminal: Terminal) -> None:
    user, other = UserTerminal(terminal.near, terminal.near), Terminal()
    size = termios.tcgetwinsize(other.near)
    user.hand_over()
    terminal.close()

    user.take_back()
    user.fit(other.near)

    user.let_go()
    assert termios.tcgetwinsize(other.near) == size
    other.close()


def test_another_size_is_followed_until_it_is_not(terminal: Terminal) -> None:
    user, other = UserTerminal(terminal.near, terminal.near), Terminal()
    before = signal.getsignal(signal.SIGWINCH)
    user.follow_size(other.near)
    termios.tcsetwinsize(terminal.near, (33, 77))

    signal.raise_signal(signal.SIGWINCH)
    assert termios.tcgetwinsize(other.near) == (33, 77)
    user.stop_following()
    user.stop_following()
    assert signal.getsignal(signal.SIGWINCH) == before
    other.close()


def test_a_terminal_that_does_not_control_us_is_not_ours(terminal: Terminal) -> None:
    reading, writing = os.pipe()

    assert not has_the_terminal(terminal.near)
    assert not has_the_terminal(reading)
    os.close(reading)
    os.close(writing)


# --- the program's ------------------------------------------------------------------------------


@pytest.fixture
def typing(terminal: Terminal) -> Iterator[OwnTerminal]:
    """The user's terminal is our input, as it is when a person runs us."""
    kept = os.dup(0)
    os.dup2(terminal.near, 0)
    relay = OwnTerminal(terminal.near, typed=True)
    try:
        yield relay
    finally:
        relay.close()
        os.dup2(kept, 0)
        os.close(kept)


def test_keys_reach_the_program_and_what_it_prints_is_shown(
    terminal: Terminal, typing: OwnTerminal
) -> None:
    program = os.dup(typing.ends.stdin)
    typing.started(Nothing())
    os.write(terminal.far, b"hello\r")
    select.select([0], [], [], 5)
    assert 0 in typing.sources
    typing.serve(whole=False)

    assert os.read(program, 100) == b"hello\n"
    os.write(program, b"\x1b[?1049hdrawn")
    assert b"drawn" in typing.serve(whole=True)
    typing.close()
    assert terminal.seen().endswith(b"\x1b[?1049hdrawn\x1b[?1049l")
    assert not is_raw(terminal.near)
    os.close(program)


def test_keys_that_the_program_does_not_take_wait(
    terminal: Terminal, typing: OwnTerminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = os.dup(typing.ends.stdin)
    typing.started(Nothing())
    os.write(terminal.far, b"k\r")
    select.select([0], [], [], 5)

    def full(_number: int, _data: bytes) -> int:
        raise BlockingIOError

    with monkeypatch.context() as patched:
        patched.setattr(own_terminal.os, "write", full)
        typing.serve(whole=False)
    assert typing.sinks
    assert 0 not in typing.sources
    typing.serve(whole=False)
    assert not typing.sinks
    assert os.read(program, 100) == b"k\n"
    os.close(program)


def test_keys_for_a_program_that_is_gone_are_dropped(
    terminal: Terminal, typing: OwnTerminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    typing.started(Nothing())
    os.write(terminal.far, b"k\r")
    select.select([0], [], [], 5)

    def gone(_number: int, _data: bytes) -> int:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patched:
        patched.setattr(own_terminal.os, "write", gone)
        typing.serve(whole=False)
    assert not typing.sinks
    assert list(typing.sources) == [0]  # who types may go on


def test_no_more_keys_are_asked_for_once_the_users_terminal_is_gone(
    terminal: Terminal, typing: OwnTerminal
) -> None:
    typing.started(Nothing())
    assert 0 in typing.sources
    os.close(terminal.far)

    typing.serve(whole=False)

    assert 0 not in typing.sources


def test_a_terminal_that_cannot_be_read_any_more_has_no_keys(
    terminal: Terminal, typing: OwnTerminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    typing.started(Nothing())
    os.write(terminal.far, b"k\r")
    select.select([0], [], [], 5)

    def gone(_number: int, _most: int) -> bytes:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patched:
        patched.setattr(own_terminal.os, "read", gone)
        typing.serve(whole=False)

    assert 0 not in typing.sources


class Running:
    """A program that runs, be it stopped by us or not."""

    def __init__(self, number: int | None, *, is_suspended: bool = False) -> None:
        self.is_suspended = is_suspended
        self._number = number

    def program(self) -> int | None:
        return self._number


def test_one_that_runs_or_that_we_have_stopped_does_not_stop_us(
    typing: OwnTerminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopped: list[int] = []
    monkeypatch.setattr(own_terminal.os, "killpg", lambda group, _number: stopped.append(group))
    typing.started(Nothing())

    typing.look(Running(None))
    typing.look(Running(os.getpid(), is_suspended=True))
    typing.look(Running(os.getpid()))

    assert stopped == []


# --- what is shown where ------------------------------------------------------------------------


def test_an_outlet_waits_where_others_have_set_it_not_to(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    data, found = b"x" * (1 << 18), bytearray()
    real = select.select

    def read_first(sources: list[int], sinks: list[int], others: list[int]) -> object:
        """Who watches goes on as soon as we wait."""
        found.extend(os.read(reading, 1 << 20))
        return real(sources, sinks, others)

    with monkeypatch.context() as patched:
        patched.setattr(relays.select, "select", read_first)
        Outlet(writing).write(data)
    os.close(writing)
    while chunk := os.read(reading, 1 << 20):
        found.extend(chunk)

    assert bytes(found) == data
    os.close(reading)


def test_an_outlet_that_nobody_reads_is_given_up() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    outlet = Outlet(writing)

    outlet.write(b"lost")
    os.close(writing)
    outlet.write(b"not even tried")


@contextmanager
def errors_at(terminal: Terminal) -> Iterator[None]:
    """Our errors go to a terminal."""
    kept = os.dup(2)
    os.dup2(terminal.near, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def test_a_console_has_a_terminal_of_its_own_where_we_have_one(terminal: Terminal) -> None:
    console = Console(aside=True)
    console.take_back()  # nothing is open
    with errors_at(terminal):
        relay = console.open_relay()
        assert isinstance(relay, OwnTerminal)
        relay.started(Nothing())
        sources = list(relay.sources)
        relay.look(Running(os.getpid()))
        console.take_back()
        relay.close()
        relay.close()

    assert sources  # we cannot be typed at: the program reads our input itself
    assert 0 not in sources
    assert list(relay.sources) == []
    assert not is_raw(terminal.near)


def test_a_console_passes_on_where_we_have_no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "isatty", lambda _number: False)

    assert isinstance(Console(aside=True).open_relay(), PassedThrough)
