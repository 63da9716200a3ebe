"""The root of the error tree: each class has its `code` and its `exit_code`.

The whole tree with both is drawn in `errors/__init__.py`.
"""

from typing import ClassVar


class PlanError(Exception):
    """The root: `message` for people, `code` for programs, `hint` for the next thing to type."""

    code: ClassVar[str] = "plan-error"
    exit_code: ClassVar[int] = 1

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class UsageError(PlanError):
    code = "usage"
    exit_code = 2
