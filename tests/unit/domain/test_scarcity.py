"""Whether an error comes from a limit of the machine: by its number, its kind, its words."""

import errno

import pytest

from cleveragents.domain.scarcity import Resource, scarcity_by_number, scarcity_of

NO_THREAD = "can't start new thread"
BY_NUMBER = [
    (errno.EMFILE, Resource.FILES),
    (errno.ENFILE, Resource.FILES_OF_MACHINE),
    (errno.EAGAIN, Resource.PROCESSES),
    (errno.ENOMEM, Resource.MEMORY),
]


def told(error: BaseException | None) -> str | None:
    found = scarcity_of(error)
    return None if found is None else found.message


@pytest.mark.parametrize(("number", "lacking"), BY_NUMBER)
def test_a_number_of_the_system_says_what_there_is_no_more_of(
    number: int, lacking: Resource
) -> None:
    found = scarcity_by_number(number)

    assert found is not None
    assert found.message == lacking.lacking.message
    assert told(OSError(number, "")) == lacking.lacking.message


@pytest.mark.parametrize(
    ("error", "lacking"),
    [
        (MemoryError(), Resource.MEMORY),
        (RuntimeError(NO_THREAD), Resource.PROCESSES),
        (ImportError("x.so: Too many open files"), Resource.FILES),
        (ImportError("x.so: failed to map segment from it"), Resource.MEMORY),
        (ImportError("x.so: Cannot allocate memory"), Resource.MEMORY),
    ],
)
def test_some_errors_say_it_by_their_kind_or_their_words(
    error: Exception, lacking: Resource
) -> None:
    assert told(error) == lacking.lacking.message


@pytest.mark.parametrize(
    "error",
    [
        None,
        OSError("without a number"),
        OSError(errno.EPERM, "not permitted"),
        OSError(errno.ENOENT, "Too many open files"),
        RuntimeError("something else"),
        ValueError(NO_THREAD),
        ImportError("no module x"),
    ],
)
def test_every_other_trouble_is_none_of_it(error: Exception | None) -> None:
    assert told(error) is None
    assert scarcity_by_number(errno.EPERM) is None
    assert scarcity_by_number(None) is None


def test_what_an_error_comes_from_counts_however_far_below() -> None:
    below = ValueError("below")
    below.__cause__ = OSError(errno.EMFILE, "")
    above = RuntimeError("above")
    above.__cause__ = below

    assert told(above) == Resource.FILES.lacking.message
