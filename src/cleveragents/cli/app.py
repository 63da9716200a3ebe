"""One run of the program: its options, its settings, its services and how it answers."""

import os
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path

import click

from cleveragents.cli.framework import chosen_format, means_any_place
from cleveragents.cli.interruptions import Interruptions
from cleveragents.cli.progress.lines import Progress, make_progress
from cleveragents.cli.render import Renderer, make_renderer
from cleveragents.cli.render.blocks import CommandResult
from cleveragents.cli.streams import OutputLostError
from cleveragents.config import ConfigProblem, LoadedSettings, load_settings
from cleveragents.container import Container
from cleveragents.domain.errors import (
    ConfigFileError,
    ConfigKeyError,
    ConfigValueError,
    ConfirmationNeededError,
    CurrentFolderError,
    DeclinedError,
    HomeUnknownError,
    OutputNotWrittenError,
    PlanError,
    UsageError,
)
from cleveragents.domain.ids import PlanId


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
        self._reports = False
        self._plans: dict[str, PlanId] = {}
        self.interruptions = Interruptions()

    def use_options(self, *, data_dir: str | None, config_path: str | None, verbose: int) -> None:
        self._data_dir = data_dir
        self.config_path = config_path
        self._verbose = verbose

    # --- what commands use ----------------------------------------------------------------------

    @cached_property
    def settings(self) -> LoadedSettings:
        flags = {} if self._data_dir is None else {"data-dir": self._data_dir}
        return load_settings(
            os.environ, home=self.home, cwd=self.cwd, flags=flags, config_path=self.config_path
        )

    @cached_property
    def container(self) -> Container:
        return Container(self.settings.settings, os.environ, self.cwd, self.progress)

    @cached_property
    def progress(self) -> Progress:
        # A person watches only if stderr is a terminal; a program that reads it gets nothing.
        interactive = sys.stderr.isatty() and self._format() not in ("json", "yaml")
        return make_progress(sys.stderr, interactive=interactive, verbose=self._verbose)

    @cached_property
    def home(self) -> str:
        """Absolute, also for whatever we start, which may be started somewhere else."""
        if not os.environ.get("HOME"):
            os.environ.pop("HOME", None)  # Python would take an empty one for `/`
        try:
            home = Path.home()
        except RuntimeError:
            raise HomeUnknownError from None
        if not home.is_absolute():
            home = Path(os.path.normpath(Path(self.cwd, home)))
            os.environ["HOME"] = str(home)
        return str(home)

    @cached_property
    def cwd(self) -> str:
        try:
            return str(Path.cwd())
        except FileNotFoundError:
            raise CurrentFolderError from None

    def plan(self, wanted: str) -> PlanId:
        """The plan that an argument names: an id, the beginning of one, or `latest` of here."""
        # A whole id is looked up too: a lock that is taken for a plan that nobody has would stay.
        # Once: a newer plan must not take the place of the one that a person has just confirmed.
        if wanted not in self._plans:
            anywhere = means_any_place(click.get_current_context(silent=True))
            self._plans[wanted] = self.container.plan_queries.find(wanted, anywhere=anywhere)
        return self._plans[wanted]

    def project(self, plan_id: PlanId) -> str:
        """Where a plan belongs, in words."""
        return self.container.plan_queries.project(plan_id) or "no place on this machine"

    @contextmanager
    def working(self) -> Generator[Container]:
        """The services, with progress shown while they work, and signals heeded."""
        self.interruptions.heed()
        with self.progress:
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
        if not (sys.stdin.isatty() and sys.stderr.isatty()):
            raise ConfirmationNeededError(question)
        if show is not None:
            self._show_before_asking(show())
        return click.confirm(f"{question}?", err=True, default=False)

    def refuse_without_terminal(self, option: str, hint: str) -> None:
        """Raise UsageError unless a person sits there who could answer."""
        if not (sys.stdin.isatty() and sys.stderr.isatty()):
            raise UsageError(f"{option} needs a terminal", hint)

    def _show_before_asking(self, outcome: CommandResult) -> None:
        """On stderr: the answer itself is still to come on stdout, and may be read by a program."""
        format = self._format()
        renderer = make_renderer(
            "plain" if format in ("json", "yaml") else format,
            stdout=sys.stderr,
            stderr=sys.stderr,
            no_color=bool(os.environ.get("NO_COLOR")),
        )
        renderer.show(self.command, outcome, self._started, self._duration())

    def require(
        self, question: str, *, yes: bool, show: Callable[[], CommandResult] | None = None
    ) -> None:
        if not self.confirm(question, yes=yes, show=show):
            raise DeclinedError("it")

    def report(self, outcome: CommandResult) -> None:
        """Show what was done. It stays done, and is no failure, if that cannot be written."""
        self._reports = True
        self.show(outcome)

    def show(self, outcome: CommandResult) -> None:
        """Show what was asked for, which is all that the command is for."""
        extra = (*self._setting_warnings(), *self._folder_notices())
        if extra:
            outcome = CommandResult(
                data=outcome.data,
                blocks=outcome.blocks,
                messages=outcome.messages,
                warnings=(*extra, *outcome.warnings),
                status=outcome.status,
                exit_code=outcome.exit_code,
            )
        self.exit_code = outcome.exit_code
        self._renderer().show(self.command, outcome, self._started, self._duration())

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
        self.interruptions.arrived()
        for notice in self._folder_notices():  # it is done, whatever else went wrong
            sys.stderr.write(f"warning: {notice}\n")
        name = self.command if command is None else command
        try:
            self._renderer().show_error(name, error, self._started, self._duration())
        except OutputLostError:
            # The envelope has no place left; what went wrong must be heard all the same.
            self._on_stderr().show_error(name, error, self._started, self._duration())
        return error.exit_code

    def lost(self, lost: OutputLostError) -> int:
        """The answer could not be written; gives back the exit code."""
        self.interruptions.arrived()
        if lost.reader_left:
            return self.exit_code
        error = OutputNotWrittenError(lost.reason, self.command if self._reports else None)
        if not self._reports:
            self._on_stderr().show_error("", error, self._started, self._duration())
            return error.exit_code
        told = (error.message, f"hint: {error.hint}", f"code: {error.code}")
        outcome = CommandResult(data={}, warnings=("\n".join(told),))
        self._on_stderr().show("", outcome, self._started, self._duration())
        return self.exit_code

    def write_crash_report(self, report: str) -> str:
        """Put a traceback away; gives back where."""
        import tempfile  # noqa: PLC0415 - everyday commands do not pay for bugs

        try:
            folder = Path(self.settings.settings.data_dir) / "crashes"
            folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            folder.mkdir(mode=0o700, exist_ok=True)
        except (OSError, ConfigProblem, PlanError):
            folder = Path(tempfile.gettempdir())
        descriptor, name = tempfile.mkstemp(prefix="crash-", suffix=".txt", dir=folder, text=True)
        with os.fdopen(descriptor, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(report)
        return name

    def _on_stderr(self) -> Renderer:
        return make_renderer("plain", stdout=sys.stderr, stderr=sys.stderr)

    def _renderer(self) -> Renderer:
        no_color = bool(os.environ.get("NO_COLOR"))
        return make_renderer(
            self._format(), stdout=sys.stdout, stderr=sys.stderr, no_color=no_color
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

    def _duration(self) -> int:
        return int((time.monotonic() - self._ticks) * 1000)


def as_plan_error(problem: ConfigProblem) -> PlanError:
    if problem.kind == "unknown-key":
        return ConfigKeyError(problem.key, problem.where, problem.suggestion)
    if problem.kind == "bad-file":
        return ConfigFileError(str(problem))
    meant = f"; did you mean `{problem.suggestion}`?" if problem.suggestion else ""
    return ConfigValueError(problem.key, problem.where, problem.problem + meant)
