"""For what hardly any command uses: built at its first use, not when it is handed out."""

from collections.abc import Callable
from typing import Any, TypeVar, cast

T = TypeVar("T")


def later(build: Callable[[], T]) -> T:
    """Stands for what `build` gives, which is called when something of it is used."""
    return cast("T", _Later(build))


class _Later:
    def __init__(self, build: Callable[[], object]) -> None:
        self._build = build

    def __getattr__(self, name: str) -> Any:
        return getattr(self._build(), name)
