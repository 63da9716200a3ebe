"""Owns reading JSON that a function or a server made."""

import json
from typing import NoReturn

from cleveragents.domain.errors import ToolError


class NotJsonError(ValueError):
    """Says why in a few words."""


class TooMuchGivenBackError(ToolError):
    """A result has no end that could be kept alone."""

    def __init__(self, name: str, most: int) -> None:
        super().__init__(
            f"{name} gave back more than {most} bytes",
            "let it write a file, or raise tool.output-limit in the config",
        )


def read_json(data: bytes) -> object:
    """Raises NotJsonError, whatever it is that is wrong."""
    try:
        return json.loads(data, parse_constant=_refuse)
    except RecursionError:
        raise NotJsonError("it is nested too deeply") from None
    except ValueError as error:  # also bytes that are no text, and numbers without an end
        raise NotJsonError(str(error)) from None


def _refuse(name: str) -> NoReturn:
    raise NotJsonError(f"{name} is no number")
