"""One of each error of the tree, made with what its constructor asks for."""

import inspect
from collections.abc import Iterator
from typing import Any

from cleveragents.domain import errors
from cleveragents.domain.errors import PlanError


def tree(root: type[PlanError] = PlanError) -> Iterator[type[PlanError]]:
    for child in root.__subclasses__():
        if child.__module__.startswith(errors.__name__):
            yield child
            yield from tree(child)


ALL = sorted(set(tree()), key=lambda cls: cls.__name__)


def required(cls: type[PlanError]) -> dict[str, inspect.Parameter]:
    given = list(inspect.signature(cls.__init__).parameters.items())[1:]
    return {name: parameter for name, parameter in given if parameter.default is parameter.empty}


def made(cls: type[PlanError]) -> PlanError:
    """Each text says which argument it is."""
    arguments: dict[str, Any] = {}
    for name, parameter in required(cls).items():
        annotation = str(parameter.annotation)
        if "Sequence" in annotation:
            arguments[name] = ["first", "second"]
        elif parameter.annotation is float:
            arguments[name] = 1.5
        else:
            arguments[name] = f"the {name}"
    return cls(**arguments)
