"""The `actor` of an action file: the keys each actor has, and the value they come to."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, cast

from pydantic import Field

from cleveragents.domain.action import SCRIPTED, ActorSpec
from cleveragents.infrastructure.actionfile.shapes import (
    Mistake,
    Shape,
    Text,
    meant,
    quoted,
    shaped,
)

MOST_STEPS = 10_000


class ActorShape(Shape):
    """What every actor that decides its own steps has; each adds its own keys."""

    type: Text
    tools: list[Text] = []
    max_steps: Annotated[int, Field(ge=1, le=MOST_STEPS)] | None = None
    max_tokens: Annotated[int, Field(ge=1)] | None = None
    max_cost: Annotated[float, Field(gt=0)] | None = None


class LlmShape(ActorShape):
    model: Text
    instructions: Text | None = None
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    strategize: bool = False


class CommandShape(ActorShape):
    """`command` is a program with its arguments, as one text or a list; `resume`, if given, is
    what is run instead once the agent has been started before."""

    command: Text | Annotated[list[Text], Field(min_length=1)]
    resume: Text | Annotated[list[Text], Field(min_length=1)] | None = None
    steps: Literal["hooks", "quiet"] = "hooks"
    quiet_seconds: Annotated[float, Field(gt=0, le=3600)] = 2.0
    timeout: Annotated[float, Field(gt=0)] = 3600.0
    resource: Text | None = None


SHAPES: Mapping[str, type[ActorShape]] = {"llm": LlmShape, "command": CommandShape}


def actor_spec(raw: object, findings: list[Mistake]) -> ActorSpec:
    """What the section says; `scripted` without one, or if it cannot be understood."""
    if raw is None:
        return ActorSpec()
    if isinstance(raw, str):
        raw = {"type": raw}  # `actor: scripted` is all there is to say about that one
    section = cast("dict[str, Any]", raw) if isinstance(raw, dict) else {}
    wanted = cast("object", section.get("type"))
    names = [SCRIPTED, *SHAPES]
    if isinstance(wanted, str) and wanted not in names:
        text = f"{quoted(wanted)} is not one of {', '.join(names)}{meant(wanted, names)}"
        findings.append(Mistake(loc=("actor", "type"), text=text))
        return ActorSpec()
    if wanted == SCRIPTED:
        for key in [name for name in section if name != "type"]:
            findings.append(
                Mistake(loc=("actor", key), text="is not for an actor that is scripted")
            )
        return ActorSpec()
    shape = shaped(SHAPES.get(str(wanted), ActorShape), cast("object", raw), ("actor",), findings)
    return ActorSpec() if shape is None else _spec(shape)


def _spec(shape: ActorShape) -> ActorSpec:
    own = shape.model_dump(exclude_none=True, exclude=set(ActorShape.model_fields))
    return ActorSpec(
        type=shape.type,
        tools=tuple(shape.tools),
        max_steps=shape.max_steps,
        max_tokens=shape.max_tokens,
        max_cost=shape.max_cost,
        options=own,
    )
