"""The root of the error tree: each class has its `code` and its `exit_code`.

The whole tree with both is drawn in `errors/__init__.py`.
"""

from typing import ClassVar


class PlanError(Exception):
    """The root: `message` for people, `code` for programs, `hint` for the next thing to type."""

    code: ClassVar[str] = "plan-error"
    exit_code: ClassVar[int] = 1

    def __init_subclass__(cls, *, code: str | None = None, exit_code: int | None = None) -> None:
        """What a class does not say is as in the one above it."""
        super().__init_subclass__()
        if code is not None:
            cls.code = code
        if exit_code is not None:
            cls.exit_code = exit_code

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class UsageError(PlanError, code="usage", exit_code=2): ...
