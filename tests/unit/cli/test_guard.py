"""The last way to tell an error: where there is no room left even for the usual one."""

import pytest

from cleveragents.cli import guard
from cleveragents.cli.app import App
from cleveragents.domain.errors import MachineError, PlanError


class Speechless(App):
    """As where neither a file nor memory is left to show anything with."""

    def fail(self, error: PlanError, command: str | None = None) -> int:
        raise MemoryError


def test_an_error_is_told_although_nothing_can_be_shown(
    capfd: pytest.CaptureFixture[str],
) -> None:
    error = MachineError("no files are \udcff left")

    assert guard._in_the_end(Speechless(), error) == error.exit_code

    said = capfd.readouterr().err.splitlines()
    assert said[0] == "error: the operating system refused: no files are \\udcff left"
    assert said[1].startswith("hint: ") and len(said[1]) > len("hint: ")
    assert said[2] == f"code: {error.code}"


def test_what_was_kept_back_is_given_back_once() -> None:
    spare = guard._Spare()
    spare.take()
    spare.give_back()
    spare.give_back()
    assert (spare._file, spare._memory) == (None, b"")
