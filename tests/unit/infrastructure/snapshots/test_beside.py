"""What is done in a second thread: its result, its error, and that nothing of it is left behind."""

import threading

import pytest

from cleveragents.infrastructure.snapshots.beside import Beside, beside


def test_what_came_of_it_is_there_as_often_as_it_is_asked_for() -> None:
    begun = Beside(lambda: [1])
    assert begun.result() is begun.result()


def test_it_goes_on_beside_its_caller() -> None:
    told = threading.Event()
    begun = Beside(lambda: told.wait(10))
    told.set()
    assert begun.result()


def test_an_error_comes_to_whoever_waits() -> None:
    begun = Beside(lambda: 1 // 0)
    with pytest.raises(ZeroDivisionError):
        begun.result()


def test_the_end_of_the_block_is_its_end_too() -> None:
    told, ended = threading.Event(), threading.Event()

    def work() -> None:
        told.wait(10)
        ended.set()

    with pytest.raises(KeyError), beside(work):
        told.set()
        raise KeyError
    assert ended.is_set()
