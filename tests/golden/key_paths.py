"""The keys of an answer as paths, like `checkpoints[].label`, but for what is free in form."""

from collections.abc import Iterator
from typing import Any

# What is in these depends on an actor, a tool, or the names that an action has.
FREE = {"metadata", "context", "json_schema", "example", "values", "reads", "sandboxes_kept",
        "arguments", "confinement", "files_lost", "sandboxes_removed"}  # fmt: skip


def paths(value: Any, above: str = "", key: str = "") -> Iterator[tuple[str, Any]]:
    """Each with the value that is there; children of children are of the same form."""
    if isinstance(value, dict):
        for name, inner in value.items():
            path = f"{above}.{name}" if above else name
            path = path.replace("children[].children", "children")
            yield path, inner
            if name not in FREE:
                yield from paths(inner, path, name)
    elif isinstance(value, list):
        for inner in value:
            yield from paths(inner, f"{above}[]", key)
