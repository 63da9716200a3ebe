"""One call: the services built for it, as a command would have them, and closed after it."""

import os
from collections.abc import Generator
from contextlib import contextmanager

from msgspec import Struct

from cleveragents.application.plan_events import Unheard
from cleveragents.config import ConfigProblem, load_settings
from cleveragents.container import Container
from cleveragents.container.surroundings import as_plan_error, current_folder, home_of
from cleveragents.domain.errors import MachineError
from cleveragents.domain.ids import PlanId
from cleveragents.domain.scarcity import scarcity_of

LATEST = "latest"


class CallOptions(Struct, frozen=True, kw_only=True):
    data_dir: str | os.PathLike[str] | None = None
    config_path: str | os.PathLike[str] | None = None
    anywhere: bool = False


class PlanSession(Struct, frozen=True, kw_only=True):
    """The plan that the caller means, and what can be done with it."""

    plan_id: PlanId
    services: Container


@contextmanager
def opened(plan: str | os.PathLike[str], options: CallOptions) -> Generator[PlanSession]:
    """Whatever goes wrong in here, and is no bug, is an error of the tree."""
    try:
        folder, wanted = _meant(plan)
        services = _services(folder, options)
        try:
            found = services.plan_finder.find(wanted, anywhere=options.anywhere)
            yield PlanSession(plan_id=found, services=services)
        finally:
            services.close()
            services.close_files()
    except ConfigProblem as problem:
        raise as_plan_error(problem) from problem
    except OSError as error:
        raise scarcity_of(error) or MachineError(str(error)) from error


def _meant(plan: str | os.PathLike[str]) -> tuple[str, str]:
    """The folder to stand in, and what to call the plan there: a path means the latest of it.

    No id and no name begins with a dot or a slash, so that text can be a path too.
    """
    wanted = os.fspath(plan)
    if isinstance(plan, str) and not plan.startswith((".", "/")):
        return current_folder(), wanted
    return os.path.realpath(wanted), LATEST


def _services(folder: str, options: CallOptions) -> Container:
    environ = dict(os.environ)
    home = home_of(environ, folder)
    if "HOME" in environ:
        environ["HOME"] = home  # absolute, for what we start may be started somewhere else
    flags = {} if options.data_dir is None else {"data-dir": _absolute(options.data_dir)}
    config = None if options.config_path is None else _absolute(options.config_path)
    loaded = load_settings(environ, home=home, cwd=folder, flags=flags, config_path=config)
    return Container(loaded.settings, environ, folder, Unheard())


def _absolute(path: str | os.PathLike[str]) -> str:
    """From where the caller stands, also if the plan is of another folder."""
    return os.path.abspath(os.fspath(path))
