"""What a call is made in: the current folder, the home, and what is wrong with the settings."""

import os
from collections.abc import Mapping

from cleveragents.config import ConfigProblem, way_out
from cleveragents.domain.errors import (
    ConfigFileError,
    ConfigKeyError,
    ConfigValueError,
    CurrentFolderError,
    HomeUnknownError,
    PlanError,
)


def current_folder() -> str:
    """As the system has it, without links. Raises CurrentFolderError."""
    try:
        return os.getcwd()
    except FileNotFoundError:
        raise CurrentFolderError from None


def home_of(environ: Mapping[str, str], folder: str) -> str:
    """Absolute; `folder` is where one stands. An empty HOME says nothing, and is nobody's home.

    Raises HomeUnknownError.
    """
    home = environ.get("HOME", os.path.expanduser("~"))  # without a HOME, that of the account
    if home in ("", "~"):
        raise HomeUnknownError
    return os.path.normpath(os.path.join(folder, home))


def as_plan_error(problem: ConfigProblem) -> PlanError:
    hint = way_out(problem.where, problem.key)
    if problem.kind == "unknown-key":
        return ConfigKeyError(problem.key, problem.where, problem.suggestion, hint)
    if problem.kind == "bad-file":
        return ConfigFileError(str(problem))
    meant = f"; did you mean `{problem.suggestion}`?" if problem.suggestion else ""
    return ConfigValueError(problem.key, problem.where, problem.problem + meant, hint)
