"""The types of resources as action files name them, and which keys go with each."""

from cleveragents.domain.resource_kinds import ResourceType, kinds, type_named, working
from cleveragents.infrastructure.actionfile.model import JsonSchema, Rule, SourcePlace
from cleveragents.infrastructure.actionfile.values import choice


def _read(value: object, place: SourcePlace) -> ResourceType | None:
    """Asked for anew each time: a type may have been registered since this was imported."""
    names = [kind.type for kind in working()]
    if any(kind.planned and kind.type == value for kind in kinds()):
        place.wrong(f"{value} is not implemented yet; what works: {', '.join(names)}")
        return None
    name = choice(names).read(value, place)
    return None if name is None else type_named(name)


RESOURCE_TYPE = Rule(_read, choice([kind.type for kind in working()]).schema)


def located_schema() -> JsonSchema:
    """Which key says where a resource is, and that some keys are only for folders."""
    servers = [kind for kind in working() if kind.key == "url"]
    folders = [kind.type for kind in working() if kind.is_folder]
    on_disk: JsonSchema = {"required": ["path"], "not": {"required": ["url"]}}
    on_server: JsonSchema = {
        "if": {"properties": {"type": {"enum": [kind.type for kind in servers]}}},
        "then": {
            "required": ["url"],
            "not": {"required": ["path"]},
            "properties": {"url": {"pattern": "|".join(kind.url_pattern for kind in servers)}},
        },
        "else": on_disk,
    }
    return {
        **(on_server if servers else on_disk),
        "allOf": [
            {"if": {"required": [key]}, "then": {"properties": {"type": {"enum": folders}}}}
            for key in ("include", "exclude", "secrets")
        ],
    }
