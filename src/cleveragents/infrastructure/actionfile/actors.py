"""The `actor` of an action file: the keys that each actor has."""

from collections.abc import Mapping

from cleveragents.domain.action import SCRIPTED, ActorSpec
from cleveragents.infrastructure.actionfile.model import (
    JsonSchema,
    Rule,
    Section,
    SourcePlace,
    as_mapping,
    key,
    listed,
    reference,
    required,
)
from cleveragents.infrastructure.actionfile.values import (
    BOOLEAN,
    COMMAND_LINE,
    TEXT,
    choice,
    number,
    whole,
)


class ActorKeys(Section):
    """What every actor that decides its own steps has; each adds its own keys."""

    type = required(TEXT, "scripted, llm or command.")
    tools = listed(TEXT, "Names of the tools it may use, `*` standing for anything.")
    max_steps = key(whole(least=1, most=10_000), "How many steps it may take.")
    max_tokens = key(whole(least=1), "How many tokens it may read and write in all.")
    max_cost = key(number(above=0), "How many dollars it may cost.")

    def spec(self) -> ActorSpec:
        values = self.everything()
        own = {name: values.pop(name) for name in self.keys if name not in ActorKeys.keys}
        return ActorSpec(
            **values, options={name: value for name, value in own.items() if value is not None}
        )


class LlmKeys(ActorKeys):
    model = required(TEXT, "Provider and model: openai:..., anthropic:... or google:...")
    instructions = key(TEXT, "What it should keep in mind, beside the task.")
    temperature = key(number(least=0, most=2), "0 to 2; the provider's own if it is not said.")
    strategize = key(BOOLEAN, "Let it say first how it means to go about it.", default=False)


class CommandKeys(ActorKeys):
    command = required(COMMAND_LINE, "The program and its arguments, as a list or one text.")
    resume = key(COMMAND_LINE, "What is run instead once the agent has been started before.")
    steps = key(
        choice(["hooks", "quiet"]),
        "hooks: the agent calls `agents hook`. quiet: a step ends when nothing moves.",
        "hooks",
    )
    quiet_seconds = key(number(above=0, most=3600), "For how long nothing has to move.", 2.0)
    timeout = key(number(above=0), "Seconds for one run of the program.", 3600.0)
    resource = key(TEXT, "In whose sandbox it starts; the first if it is not said.")


_ACTORS: Mapping[str, type[ActorKeys]] = {"llm": LlmKeys, "command": CommandKeys}
_ACTOR_TYPE = choice([SCRIPTED, *_ACTORS])


def _read_actor(value: object, place: SourcePlace) -> ActorSpec | None:
    # `actor: scripted` is all there is to say about that one.
    raw = as_mapping({"type": value} if isinstance(value, str) else value, place)
    if raw is None:
        return None
    wanted = raw.get("type")
    if isinstance(wanted, str) and _ACTOR_TYPE.read(wanted, place.at("type")) is None:
        return None
    if wanted == SCRIPTED:
        for key in [name for name in raw if name != "type"]:
            place.at(key).wrong("is not for an actor that is scripted")
        return ActorSpec()
    keys = _ACTORS.get(str(wanted), ActorKeys)(raw, place)
    return None if keys.wrong else keys.spec()


def actor_schema() -> JsonSchema:
    """By name alone where that says everything, or with the keys that this one has."""
    kinds: list[JsonSchema] = [
        {"const": SCRIPTED},
        {
            "type": "object",
            "properties": {"type": {"const": SCRIPTED}},
            "required": ["type"],
            "additionalProperties": False,
        },
    ]
    for name, keys in _ACTORS.items():
        kind = keys.schema()
        description = kind["properties"]["type"]["description"]
        kind["properties"]["type"] = {"const": name, "description": description}
        kinds.append(kind)
    return {"anyOf": kinds}


ACTOR = Rule(_read_actor, reference("actor"))
