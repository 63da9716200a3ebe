"""The `subplans` of a step in an action file: their shape, their rules, and their values."""

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from cleveragents.domain.action import (
    SUBPLANS,
    Action,
    MergeStrategy,
    Step,
    Subplan,
    Subplans,
    ToolSpec,
)
from cleveragents.domain.subplan import MOST_LEVELS, in_a_circle
from cleveragents.infrastructure.actionfile.shapes import (
    Mistake,
    Section,
    Shape,
    StepName,
    Text,
    meant,
    one_of,
    quoted,
    shaped,
    told,
    values_of,
)

CHILD_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
MOST_AT_ONCE = 50
MOST_RETRIES = 20

Loc = tuple[str | int, ...]
ReadSteps = Callable[[object, Loc, "Surroundings"], Mapping[int, Step]]


Strategy = Annotated[
    str, AfterValidator(one_of(MergeStrategy)), told(enum=values_of(MergeStrategy))
]


class SpawnShape(Shape):
    name: StepName | None = None
    subplans: Section


class SubplansShape(Shape):
    parallel: bool = False
    merge_strategy: Strategy = MergeStrategy.GIT_THREE_WAY.value
    max_parallel: Annotated[int, Field(ge=1, le=MOST_AT_ONCE)] = 5
    fail_fast: bool = False
    max_retries: Annotated[int, Field(ge=0, le=MOST_RETRIES)] = 2
    plans: Annotated[list[Any], Field(min_length=1)]


class SubplanShape(Shape):
    name: Text
    description: Text | None = None
    resources: Annotated[list[str], Field(min_length=1)] | None = None
    depends_on: list[str] = []
    steps: Annotated[list[Any], Field(min_length=1)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What the plan has whose steps are read, and how deep below the top it is."""

    resources: Sequence[str]
    level: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SubplanRules:
    findings: list[Mistake]
    read_steps: ReadSteps

    def spawn(self, raw: object, loc: Loc, around: Surroundings) -> Step | None:
        """A step that spawns children, or None with the reasons added to the findings."""
        step = shaped(SpawnShape, raw, loc, self.findings)
        inner = (*loc, SUBPLANS)
        shape = shaped(SubplansShape, step.subplans, inner, self.findings) if step else None
        if step is None or shape is None:
            return None
        if around.level >= MOST_LEVELS:
            self._find(f"child plans may be nested {MOST_LEVELS} levels deep, not more", *inner)
            return None
        plans = tuple(self._plans(shape.plans, (*inner, "plans"), around))
        self._check_names(plans, (*inner, "plans"))
        return Step(
            name=step.name or ", ".join(child.name for child in plans)[:200] or SUBPLANS,
            tool=SUBPLANS,
            subplans=Subplans(
                plans=plans,
                parallel=shape.parallel,
                merge_strategy=MergeStrategy(shape.merge_strategy),
                max_parallel=shape.max_parallel,
                fail_fast=shape.fail_fast,
                max_retries=shape.max_retries,
            ),
        )

    def _plans(self, raw: Sequence[object], loc: Loc, around: Surroundings) -> Iterator[Subplan]:
        for index, item in enumerate(raw):
            here = (*loc, index)
            shape = shaped(SubplanShape, item, here, self.findings)
            if shape is None:
                continue
            given = self._given(shape, here, around.resources)
            inside = Surroundings(resources=given, level=around.level + 1)
            steps = self.read_steps(shape.steps, (*here, "steps"), inside)
            yield Subplan(
                name=shape.name,
                description=shape.description or f"The part {shape.name}",
                resources=tuple(given),
                depends_on=tuple(dict.fromkeys(shape.depends_on)),
                steps=tuple(steps.values()),
            )

    def _given(self, shape: SubplanShape, loc: Loc, known: Sequence[str]) -> Sequence[str]:
        if shape.resources is None:
            return known
        for index, name in enumerate(shape.resources):
            if name not in known:
                text = f"the parent has no resource {quoted(name)}{meant(name, known)}"
                self._find(text, *loc, "resources", index)
        return [name for name in known if name in shape.resources]

    def _check_names(self, plans: Sequence[Subplan], loc: Loc) -> None:
        names = [child.name for child in plans]
        for index, child in enumerate(plans):
            here = (*loc, index)
            if not CHILD_NAME.fullmatch(child.name):
                text = "a child's name is a letter, then up to 63 letters, digits, `_` or `-`"
                self._find(text, *here, "name")
            if child.name in names[:index]:
                self._find(f"there is a child {quoted(child.name)} already", *here, "name")
            self._check_order(child, names, here)
        for name in in_a_circle(plans):
            text = "waits for itself: the `depends_on` of these children form a circle"
            self._find(text, *loc, names.index(name), "depends_on")

    def _check_order(self, child: Subplan, names: Collection[str], loc: Loc) -> None:
        for index, name in enumerate(child.depends_on):
            if name not in names:
                text = f"there is no child {quoted(name)} in this step{meant(name, names)}"
                self._find(text, *loc, "depends_on", index)

    def _find(self, text: str, *loc: str | int) -> None:
        self.findings.append(Mistake(loc=loc, text=text))


def child_steps(action: Action, step: Step, loc: Loc) -> Iterator[tuple[Action, Step, Loc]]:
    """Every step of the children below, each with the action of its own plan."""
    for index, child in enumerate(step.subplans.plans if step.subplans else ()):
        inner = action.for_child(child)
        for number, one in enumerate(child.steps):
            here = (*loc, SUBPLANS, "plans", index, "steps", number)
            yield inner, one, here
            yield from child_steps(inner, one, here)


def not_given(everything: Action, child: Action, step: Step) -> str | None:
    """What is wrong if a child's step uses a resource that only its ancestors have."""
    spec: ToolSpec | None = next((t for t in child.tools if t.name == step.tool), None)
    wanted = [step.arguments.get("resource"), *(step.arguments.get("write_scope") or ())]
    if spec is not None:
        wanted += [spec.resource, *spec.write_scope, *(spec.reads or ())]
    for name in wanted:
        if isinstance(name, str) and everything.resource(name) and not child.resource(name):
            return f"this child was not given `{name}`; name it in its `resources`"
    return None
