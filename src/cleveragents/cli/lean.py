"""Libraries loaded without what they import and no everyday command asks of them.

click imports `inspect`, which brings a parser, a tokenizer and a disassembler of Python along, to
strip indentation; `uuid`, for a kind of option that we have none of; and `gettext`, which goes
through the folders of the system for translations that click does not have. msgspec prefers
`typing_extensions` to the `typing` that it needs, loads what describes types to people, and asks
for the types of `decimal` and `uuid`, which none of our values has.
Together that is a sixth of a short command. So while such a library is loaded, something small
stands in (ADR 0077). It hands on to the module itself whatever else is asked of it, and nobody but
that library ever sees it.
"""

import sys
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any


class _StandIn(ModuleType):
    """`known` is what it does itself."""

    def __init__(self, name: str, *known: Callable[..., object]) -> None:
        super().__init__(name)
        vars(self).update({function.__name__: function for function in known})

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # who imports it asks whether it is a package, which is no use
            raise AttributeError(name)
        from importlib import import_module  # noqa: PLC0415 - hardly ever needed

        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        return getattr(import_module(self.__name__), name)


def load_click() -> None:
    with _Shadowed(
        _StandIn("inspect", cleandoc),
        _StandIn("uuid", UUID),
        _StandIn("gettext", gettext, ngettext),
    ):
        import click as click  # noqa: PLC0415 - what this is for


def load_msgspec() -> None:
    with _Shadowed(
        _StandIn("textwrap"),
        _StandIn("msgspec.inspect"),
        _StandIn("decimal", Decimal),
        _StandIn("uuid", UUID, SafeUUID),
        hidden=("typing_extensions",),
    ):
        import msgspec as msgspec  # noqa: PLC0415 - what this is for


def load_for_work() -> None:
    """What takes snapshots and starts programs: `zstandard` asks whether this is CPython, and
    `subprocess` for the encoding of what it never decodes."""
    with _Shadowed(_StandIn("platform", python_implementation), _StandIn("locale")):
        import subprocess as subprocess  # noqa: PLC0415 - what this is for

        import zstandard as zstandard  # noqa: PLC0415 - what this is for


class _Shadowed:
    """Until its block is left these stand in for modules, and `hidden` ones are not there."""

    def __init__(self, *stand_ins: ModuleType, hidden: Sequence[str] = ()) -> None:
        shadows: dict[str, ModuleType | None] = {it.__name__: it for it in stand_ins}
        shadows |= dict.fromkeys(hidden)
        self._shadows = {name: it for name, it in shadows.items() if name not in sys.modules}

    def __enter__(self) -> None:
        modules: dict[str, Any] = sys.modules
        modules.update(self._shadows)

    def __exit__(self, *_: object) -> None:
        for name, shadow in self._shadows.items():
            if sys.modules.get(name) is shadow:
                del sys.modules[name]


def cleandoc(doc: str) -> str:
    """As that of `inspect`: without the indentation that all lines but the first share."""
    first, *rest = doc.expandtabs().split("\n")
    margin = min((len(line) - len(line.lstrip()) for line in rest if line.strip()), default=0)
    lines = [first.lstrip(), *(line[margin:] for line in rest)]
    while lines and not lines[-1]:
        lines.pop()
    while lines and not lines[0]:
        lines.pop(0)
    return "\n".join(lines)


class Decimal:
    """Nothing that we have is one: there only has to be something of that name."""


class UUID:
    """The same; who makes one gets that of `uuid`."""

    def __new__(cls, *given: Any) -> Any:
        from uuid import UUID  # noqa: PLC0415 - hardly ever needed

        return UUID(*given)


class SafeUUID:
    """What msgspec asks for is how sure it is that one is not another."""

    unknown = None


def gettext(message: str) -> str:
    """As that of `gettext`, where there is no translation."""
    return message


def ngettext(singular: str, plural: str, n: int) -> str:
    """As that of `gettext`, where there is no translation."""
    return singular if n == 1 else plural


def python_implementation() -> str:
    """As that of `platform`, where it is this one."""
    return {"cpython": "CPython", "pypy": "PyPy"}.get(sys.implementation.name, "")
