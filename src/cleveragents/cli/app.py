"""One run of the program: its options, its settings, its services and how it answers."""

import os
import sys
import time
from collections.abc import Callable, Collection, Generator, Mapping
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING, TextIO

import click
from msgspec.structs import replace

from cleveragents.cli import pager
from cleveragents.cli.framework import LATEST, chosen_format, means_any_place, refuses_pager
from cleveragents.cli.lean import load_for_work
from cleveragents.cli.render import Renderer, make_renderer
from cleveragents.cli.render.blocks import CommandResult, Invocation
from cleveragents.cli.render.text import write
from cleveragents.cli.spelling import Spelling
from cleveragents.cli.streams import OutputLostError
from cleveragents.config import ConfigProblem, LoadedSettings, load_settings
from cleveragents.container import Container
from cleveragents.container.later import later
from cleveragents.container.surroundings import current_folder, home_of
from cleveragents.domain.errors import (
    ConfirmationNeededError,
    DeclinedError,
    OutputNotWrittenError,
    PlanError,
    UsageError,
)
from cleveragents.domain.ids import PlanId

if TYPE_CHECKING:
    from cleveragents.application.services.plans.spoken_names import SpokenName
    from cleveragents.cli.interruptions import Interruptions
    from cleveragents.cli.progress.lines import Progress


class App:
    def __init__(self) -> None:
        self._started = datetime.now(UTC)
        self._ticks = time.monotonic()
        self._data_dir: str | None = None
        self._verbose = 0
        self.config_path: str | None = None
        self.command = ""
        self.format_hint: str | None = None
        self.exit_code = 0
        self._reports = self._hushed = False
        self._plans: dict[str, PlanId] = {}

    def use_options(self, *, data_dir: str | None, config_path: str | None, verbose: int) -> None:
        self._data_dir = data_dir
        self.config_path = config_path
        self._verbose = verbose

    # --- what commands use ----------------------------------------------------------------------

    @property
    def started(self) -> datetime:
        """When this command began."""
        return self._started

    @cached_property
    def settings(self) -> LoadedSettings:
        flags = {} if self._data_dir is None else {"data-dir": self._data_dir}
        return load_settings(
            os.environ, home=self.home, cwd=self.cwd, flags=flags, config_path=self.config_path
        )

    @cached_property
    def container(self) -> Container:
        events = later(lambda: self.progress)
        return Container(self.settings.settings, os.environ, self.cwd, events)

    @cached_property
    def progress(self) -> "Progress":
        from cleveragents.cli.progress.lines import make_progress  # noqa: PLC0415 - who only asks

        # A person watches only if stderr is a terminal; a program that reads it gets nothing.
        interactive = sys.stderr.isatty() and self.is_for_people
        verbose, people = self._verbose, self.is_for_people
        if self._hushed:  # a program has the terminal, which nobody else may write to
            # What takes long may be told until its plan has started, and after its end.
            interactive, verbose = False, 0 if sys.stderr.isatty() else verbose
        return make_progress(
            sys.stderr, interactive=interactive, verbose=verbose, for_people=people
        )

    def hush(self) -> None:
        """Show no progress: what a program prints is seen instead."""
        self._hushed = True

    def at_the_latest(self, action: Callable[[], None]) -> None:
        """Done before a signal ends us, if nothing else can be."""
        self._interruptions.last_act = action

    @cached_property
    def home(self) -> str:
        """Absolute, also for whatever we start, which may be started somewhere else."""
        if not os.environ.get("HOME"):
            os.environ.pop("HOME", None)  # Python would take an empty one for `/`
        home = home_of(os.environ, self.cwd)
        if "HOME" in os.environ:
            os.environ["HOME"] = home
        return home

    @cached_property
    def cwd(self) -> str:
        return current_folder()

    @cached_property
    def spelling(self) -> Spelling:
        return Spelling(self._spoken)

    def _spoken(self, ids: Collection[str]) -> "Mapping[str, SpokenName]":
        """Whatever is wrong with the record is told by who needs it, and not by how it is said."""
        try:
            return self.container.spoken_names.of(ids)
        except (PlanError, ConfigProblem, OSError):
            return {}

    def plan(self, wanted: str | None) -> PlanId:
        """The plan that an argument names; without one, the latest of here."""
        wanted = LATEST if wanted is None else wanted
        # A whole id is looked up too: a lock that is taken for a plan that nobody has would stay.
        # Once: a newer plan must not take the place of the one that a person has just confirmed.
        if wanted not in self._plans:
            anywhere = means_any_place(click.get_current_context(silent=True))
            self._plans[wanted] = self.container.plan_finder.find(wanted, anywhere=anywhere)
        return self._plans[wanted]

    def project(self, plan_id: PlanId) -> str:
        """Where a plan belongs, in words."""
        return self.container.plan_finder.project(plan_id) or "no place on this machine"

    @cached_property
    def _interruptions(self) -> "Interruptions":
        from cleveragents.cli.interruptions import Interruptions  # noqa: PLC0415 - who only asks

        return Interruptions()  # is ended by a signal as any program is

    def _arrived(self) -> None:
        if "_interruptions" in self.__dict__:
            self._interruptions.arrived()

    def end(self) -> None:
        """The command is over, and its signals are nobody's any more."""
        if "_interruptions" in self.__dict__:
            self._interruptions.end()

    @contextmanager
    def working(self) -> Generator[Container]:
        """The services, with progress shown while they work, and signals heeded."""
        load_for_work()
        self._interruptions.heed()
        with closing(self.progress):
            try:
                yield self.container
            finally:
                self.container.close()

    def close(self) -> None:
        """End what the services have left running, and close what they have opened."""
        if "container" in self.__dict__:
            self.container.close()
            self.container.close_files()

    def confirm(
        self, question: str, *, yes: bool, show: Callable[[], CommandResult] | None = None
    ) -> bool:
        """Ask a person; where nobody can answer, `--yes` must have been said.

        `show` is what the question is about; it is looked up only if somebody is asked.
        """
        if yes:
            return True
        if not self.can_ask:
            raise ConfirmationNeededError(question)
        if show is not None:
            self.preview(show())
        self.still()
        return click.confirm(f"{self.spelling.text(question)}?", err=True, default=False)

    @property
    def can_ask(self) -> bool:
        """Whether somebody sits there who could answer."""
        return sys.stdin.isatty() and sys.stderr.isatty()

    @property
    def is_watched(self) -> bool:
        """Whether a person sits at a terminal that a whole screen can be drawn on."""
        return self.is_for_people and pager.watched() and os.environ.get("TERM") != "dumb"

    @property
    def has_listed_steps(self) -> bool:
        """Whether whoever reads the answer has each step of the plan before their eyes already."""
        return sys.stdout.isatty() and self.progress.lists_all_steps

    @property
    def has_colours(self) -> bool:
        return not os.environ.get("NO_COLOR")

    def refuse_without_terminal(self, option: str, hint: str) -> None:
        """Raise UsageError unless a person sits there who could answer."""
        if not self.can_ask:
            raise UsageError(f"{option} needs a terminal", hint)

    def preview(self, outcome: CommandResult) -> None:
        """On stderr: the answer itself is still to come on stdout, and may be read by a program."""
        self.still()
        format = self._format()
        renderer = self._on_stderr("plain" if format in ("json", "yaml") else format)
        renderer.show(self.spelling.outcome(outcome))

    def require(
        self, question: str, *, yes: bool, show: Callable[[], CommandResult] | None = None
    ) -> None:
        if not self.confirm(question, yes=yes, show=show):
            raise DeclinedError("it")

    def report(self, outcome: CommandResult) -> None:
        """Show what was done. It stays done, and is no failure, if that cannot be written."""
        self._reports = True
        self.show(replace(outcome, done=True))

    def show(self, outcome: CommandResult) -> None:
        """Show what was asked for, which is all that the command is for."""
        self.still()
        extra = (*self._setting_warnings(), *self._folder_notices())
        if extra:
            outcome = replace(outcome, warnings=(*extra, *outcome.warnings))
        self.exit_code = outcome.exit_code
        if self.is_for_people:
            outcome = self.spelling.outcome(outcome)
        if not outcome.done and self._pages():
            self._show_in_pages(outcome)
        else:
            self._renderer(self._format(), sys.stdout).show(outcome)

    def still(self) -> None:
        """Nothing moves any more where something is about to be written or asked."""
        if "progress" in self.__dict__:
            self.progress.close()

    def _pages(self) -> bool:
        """Whether a pager may come between: not where something was done, nor for programs."""
        if not (self.is_for_people and pager.watched()):
            return False
        if refuses_pager(click.get_current_context(silent=True)):
            return False
        try:
            return self.settings.settings.pager == "on"
        except (ConfigProblem, PlanError):
            return False

    def _show_in_pages(self, outcome: CommandResult) -> None:
        answer, notices = (pager.HeldAnswer(stream.encoding) for stream in (sys.stdout, sys.stderr))
        self._renderer(self._format(), answer, notices).show(outcome)
        pager.put(answer.getvalue(), sys.stdout, os.environ)
        # Last, so that no warning is above what has scrolled away.
        write(sys.stderr, notices.getvalue())

    def _setting_warnings(self) -> tuple[str, ...]:
        try:
            return self.settings.warnings
        except ConfigProblem:
            return ()  # `config set` must be able to mend a broken file

    def _folder_notices(self) -> tuple[str, ...]:
        made = self.__dict__.get("container")
        return made.data_folder.notices if isinstance(made, Container) else ()

    # --- what the guard uses --------------------------------------------------------------------

    def fail(self, error: PlanError, command: str | None = None) -> int:
        self._arrived()
        self.still()
        for notice in self._folder_notices():  # it is done, whatever else went wrong
            sys.stderr.write(f"warning: {notice}\n")
        try:
            if self.is_for_people:
                error = self.spelled(error)
            self._renderer(self._format(), sys.stdout, command=command).show_error(error)
        except OutputLostError:
            # The envelope has no place left; what went wrong must be heard all the same.
            self._on_stderr().show_error(error)
        return error.exit_code

    def spelled(self, error: PlanError) -> PlanError:
        """The same, with names for ids."""
        error.message = self.spelling.text(error.message)
        error.hint = self.spelling.text(error.hint)
        return error

    def lost(self, lost: OutputLostError) -> int:
        """The answer could not be written; gives back the exit code."""
        self._arrived()
        if lost.reader_left:
            return self.exit_code
        error = OutputNotWrittenError(lost.reason, self.command if self._reports else None)
        if not self._reports:
            self._on_stderr().show_error(error)
            return error.exit_code
        told = (error.message, f"hint: {error.hint}", f"code: {error.code}")
        outcome = CommandResult(data={}, warnings=("\n".join(told),))
        self._on_stderr().show(outcome)
        return self.exit_code

    def write_crash_report(self, report: str) -> str:
        """Put a traceback away; gives back where."""
        import tempfile  # noqa: PLC0415 - everyday commands do not pay for bugs

        try:
            folder = os.path.join(self.settings.settings.data_dir, "crashes")
            os.makedirs(os.path.dirname(folder), mode=0o700, exist_ok=True)
            os.makedirs(folder, mode=0o700, exist_ok=True)
        except (OSError, ConfigProblem, PlanError):
            folder = tempfile.gettempdir()
        descriptor, name = tempfile.mkstemp(prefix="crash-", suffix=".txt", dir=folder, text=True)
        with os.fdopen(descriptor, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(report)
        return name

    def _on_stderr(self, format: str = "plain") -> Renderer:
        return self._renderer(format, sys.stderr)

    def _renderer(
        self,
        format: str,
        stdout: TextIO,
        stderr: TextIO | None = None,
        command: str | None = None,
    ) -> Renderer:
        name = self.command if command is None else command
        duration = int((time.monotonic() - self._ticks) * 1000)
        call = Invocation(command=name, started=self._started, duration_ms=duration)
        return make_renderer(
            format,
            call,
            stdout=stdout,
            stderr=stderr or sys.stderr,
            no_color=not self.has_colours,
        )

    def _format(self) -> str:
        context = click.get_current_context(silent=True)
        asked = (chosen_format(context) if context else None) or self.format_hint
        if asked:
            return asked
        try:
            configured = self.settings.settings.format
        except (ConfigProblem, PlanError):
            configured = None  # the problem itself is about to be shown
        return configured or ("rich" if sys.stdout.isatty() else "plain")

    @property
    def is_for_people(self) -> bool:
        """Or for a program that reads it."""
        return self._format() not in ("json", "yaml")
