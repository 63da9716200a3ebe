"""What a signal does while a command works; in processes of their own, as signals are for all."""

import os
import signal
import subprocess
import sys

import pytest

from cleveragents.infrastructure.processes.starting import signals_held_back

BEGIN = """
import gc, os, signal, sys, time
from cleveragents.cli.interruptions import Interruptions
interruptions = Interruptions()
interruptions.heed()
def interrupt(): os.kill(os.getpid(), signal.SIGINT)
"""


def run(program: str, timeout: float = 30) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-c", BEGIN + program],
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


def test_what_undoes_is_not_interrupted_once_more() -> None:
    done = run(
        "try:\n interrupt(); time.sleep(9)\n"
        "except KeyboardInterrupt:\n interrupt(); time.sleep(0.5); print('undone')\n"
    )
    assert (done.returncode, done.stdout) == (0, "undone\n")


def test_but_it_has_only_so_much_time() -> None:
    done = run(
        "try:\n interrupt(); time.sleep(9)\n"
        "except KeyboardInterrupt:\n time.sleep(0.2); interrupt(); time.sleep(60)\n"
    )
    assert done.returncode == 130
    assert "interrupted again" in done.stderr


def test_one_alone_leaves_all_the_time_there_is() -> None:
    done = run(
        "try:\n interrupt(); time.sleep(9)\n"
        "except KeyboardInterrupt:\n time.sleep(6); print('undone')\n"
    )
    assert (done.returncode, done.stdout) == (0, "undone\n")


def test_one_that_was_dropped_comes_again_until_it_is_felt() -> None:
    done = run(
        "for _ in range(3):\n"
        " try:\n  if not _: interrupt()\n  time.sleep(9)\n except BaseException: pass\n"
        "try: time.sleep(9)\nexcept KeyboardInterrupt: print('felt')\n"
    )
    assert (done.returncode, done.stdout) == (0, "felt\n")


@pytest.mark.parametrize("end", ["arrived", "end"])
def test_after_the_end_nothing_comes_again(end: str) -> None:
    done = run(
        "try:\n interrupt(); time.sleep(9)\n"
        f"except KeyboardInterrupt: interruptions.{end}()\n"
        "time.sleep(0.5); print('quiet')\n"
    )
    assert (done.returncode, done.stdout) == (0, "quiet\n")


def test_a_copy_of_the_process_does_not_count_for_it() -> None:
    """A terminal sends its signal to both."""
    done = run(
        "child = os.fork()\nif not child:\n"
        " try: time.sleep(9)\n except KeyboardInterrupt: os._exit(0)\n"
        "time.sleep(0.3)\n"
        "try:\n os.kill(child, signal.SIGINT); interrupt(); time.sleep(9)\n"
        "except KeyboardInterrupt: time.sleep(6); print('undone')\n"
    )
    assert (done.returncode, done.stdout) == (0, "undone\n")


def test_one_that_was_held_back_is_one_signal_and_not_two() -> None:
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    os.set_blocking(reading, False)
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    before = signal.set_wakeup_fd(writing)
    try:
        with pytest.raises(KeyboardInterrupt), signals_held_back():
            os.kill(os.getpid(), signal.SIGINT)
        assert os.read(reading, 9) == bytes([signal.SIGINT])
    finally:
        signal.set_wakeup_fd(before)
        signal.signal(signal.SIGINT, handler)
        os.close(reading)
        os.close(writing)
