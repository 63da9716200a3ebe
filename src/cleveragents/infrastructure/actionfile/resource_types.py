"""The types of resources as action files name them, and which keys go with each."""

from cleveragents.domain.resource_kinds import ResourceType, kinds, type_named
from cleveragents.infrastructure.actionfile.model import JsonSchema, Rule, SourcePlace
from cleveragents.infrastructure.actionfile.values import choice


def _read(value: object, place: SourcePlace) -> ResourceType | None:
    """Asked for anew each time: a type may have been registered since this was imported."""
    name = choice([kind.type for kind in kinds()]).read(value, place)
    return None if name is None else type_named(name)


RESOURCE_TYPE = Rule(_read, choice([kind.type for kind in kinds()]).schema)


def located_schema() -> JsonSchema:
    """Which key says where a resource is, and that some keys are only for folders."""
    servers = [kind for kind in kinds() if kind.key == "url"]
    names = [kind.type for kind in servers]
    folders = [kind.type for kind in kinds() if kind.is_folder]
    return {
        "if": {"properties": {"type": {"const": names[0]} if len(names) == 1 else {"enum": names}}},
        "then": {
            "required": ["url"],
            "not": {"required": ["path"]},
            "properties": {"url": {"pattern": "|".join(kind.url_pattern for kind in servers)}},
        },
        "else": {"required": ["path"], "not": {"required": ["url"]}},
        "allOf": [
            {"if": {"required": [key]}, "then": {"properties": {"type": {"enum": folders}}}}
            for key in ("include", "exclude")
        ],
    }
