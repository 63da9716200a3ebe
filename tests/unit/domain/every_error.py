"""Every error of the tree, made with what its constructor asks for, and with what it may take."""

import inspect
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from cleveragents.domain import errors
from cleveragents.domain.errors import PlanError


def tree(root: type[PlanError] = PlanError) -> Iterator[type[PlanError]]:
    for child in root.__subclasses__():
        if child.__module__.startswith(errors.__name__):
            yield child
            yield from tree(child)


ALL = sorted(set(tree()), key=lambda cls: cls.__name__)


@dataclass(frozen=True)
class Sample:
    """An error that is made when it is asked for; each text says which argument it is."""

    cls: type[PlanError]
    given: Mapping[str, Any]

    @property
    def error(self) -> PlanError:
        return self.cls(**self.given)

    @property
    def name(self) -> str:
        return self.cls.__name__

    @property
    def text(self) -> str:
        return f"{self.error.message} {self.error.hint}"


def samples(cls: type[PlanError]) -> Iterator[Sample]:
    """With everything, without what has a default, and with None where that is allowed."""
    parameters = dict(list(inspect.signature(cls.__init__).parameters.items())[1:])
    everything = {name: _value(name, item) for name, item in parameters.items()}
    needed = {
        name: everything[name] for name, item in parameters.items() if item.default is item.empty
    }
    nothing: dict[str, Any] = {
        name: None if "None" in str(parameters[name].annotation) else value
        for name, value in needed.items()
    }
    seen: list[dict[str, Any]] = []
    for given in (everything, needed, nothing):
        if given not in seen:
            seen.append(given)
            yield Sample(cls, given)


def _value(name: str, parameter: inspect.Parameter) -> Any:
    if "Mapping" in str(parameter.annotation):
        return {"first of files": [f"first of {name}"]}
    if "Sequence" in str(parameter.annotation):
        return [f"first of {name}", f"second of {name}"]
    if parameter.annotation in (int, float):
        return 1.5
    if name == "command" and isinstance(parameter.default, str):
        return parameter.default  # part of what is to be typed, and so one of ours
    return f"the {name}"


EVERY = [sample for cls in ALL for sample in samples(cls)]


def named(sample: Sample) -> str:
    return f"{sample.name}-{'-'.join(key for key, value in sample.given.items() if value)}"
