"""The border: whatever a command raises becomes one rendered error and one exit code.

Which code that is, the error's class says (`domain/errors/base.py`).
"""

import os
import sys
from collections.abc import Sequence
from contextlib import suppress

import click

from cleveragents.cli.app import App
from cleveragents.cli.framework import command_name, scan_format, to_plan_error
from cleveragents.cli.streams import OutputLostError
from cleveragents.config import ConfigProblem
from cleveragents.container.surroundings import as_plan_error
from cleveragents.domain.errors import InterruptedCommandError, MachineError, PlanError
from cleveragents.domain.scarcity import scarcity_of

_SPARE_BYTES = 4 << 20


class BugError(PlanError, code="internal-error"):
    """Something that should never happen, with the traceback put away in a file."""


def guarded(root: click.Group, argv: Sequence[str]) -> int:
    app = App()
    app.format_hint = scan_format(argv, os.environ)
    spare = _Spare()
    try:
        spare.take()
        return _answered(app, root, argv)
    except (OSError, MemoryError) as error:
        spare.give_back()
        return _in_the_end(app, scarcity_of(error) or MachineError(str(error)))
    finally:
        spare.give_back()
        app.end()


class _Spare:
    """A file and some memory, kept back because to tell an error needs both."""

    def __init__(self) -> None:
        self._file: int | None = None
        self._memory = b""

    def take(self) -> None:
        self._memory = bytes(_SPARE_BYTES)
        self._file = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)

    def give_back(self) -> None:
        self._memory = b""
        if self._file is not None:
            os.close(self._file)
            self._file = None


def _answered(app: App, root: click.Group, argv: Sequence[str]) -> int:
    try:
        root.main(list(argv), prog_name="agents", standalone_mode=False, obj=app)
        sys.stdout.flush()
        return app.exit_code
    except OutputLostError as lost:
        return app.lost(lost)
    except (click.exceptions.Abort, KeyboardInterrupt):
        return app.fail(InterruptedCommandError())
    except click.ClickException as error:
        context = error.ctx if isinstance(error, click.UsageError) else None
        return app.fail(to_plan_error(error), command_name(context))
    except PlanError as error:
        return app.fail(error)
    except ConfigProblem as problem:
        return app.fail(as_plan_error(problem))
    except OSError as error:
        return app.fail(scarcity_of(error) or MachineError(str(error)))
    except Exception as error:  # noqa: BLE001 - a bug must not show people a traceback
        return app.fail(scarcity_of(error) or _bug(app, error))


def _in_the_end(app: App, error: PlanError) -> int:
    with suppress(OSError, MemoryError):
        return app.fail(error)
    text = f"error: {error.message}\nhint: {error.hint}\ncode: {error.code}\n"
    os.write(2, text.encode("utf-8", "backslashreplace"))
    return error.exit_code


def _bug(app: App, error: Exception) -> BugError:
    import traceback  # noqa: PLC0415 - everyday commands do not pay for bugs

    report = "".join(traceback.format_exception(error))
    where = app.write_crash_report(report)
    return BugError(
        f"this is a bug in agents: {type(error).__name__}: {error}",
        f"please report it with {where}",
    )
