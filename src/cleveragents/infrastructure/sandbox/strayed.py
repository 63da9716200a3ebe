"""What is said about changes in one sandbox that belong to another resource of the plan."""

import os
from collections.abc import Iterable, Sequence

from cleveragents.domain.overlaps import belongs_elsewhere
from cleveragents.domain.resource import PlanResource
from cleveragents.infrastructure.files.entry import Kind, shown
from cleveragents.infrastructure.snapshots.tree.diff import PathDifference


def strayed_notes(resource: PlanResource, paths: Iterable[str]) -> list[str]:
    """For people; one sentence for each resource that they belong to."""
    found: dict[str, list[str]] = {}
    for path in paths:
        found.setdefault(_owner(resource, path), []).append(path)
    return [
        f"not applied from here, since it belongs to `{owner}`: {', '.join(names)}"
        for owner, names in sorted(found.items())
    ]


def without_strayed(
    resource: PlanResource, differences: Sequence[PathDifference]
) -> tuple[Sequence[PathDifference], tuple[str, ...]]:
    """The differences that are the resource's own, and the names of the others."""
    if not resource.cut_out:
        return differences, ()
    strayed = {item.path for item in differences if _is_strayed(resource, item)}
    own = [item for item in differences if item.path not in strayed]
    return own, tuple(sorted(shown(path) for path in strayed))


def _is_strayed(resource: PlanResource, item: PathDifference) -> bool:
    path = os.fsdecode(item.path)
    if not belongs_elsewhere(path, resource.cut_out):
        return False
    # A folder above that stays a folder, with another mode, takes nobody's place.
    below = any(f"{path}/".startswith(f"{one}/") for one in resource.cut_out)
    return below or item.new is None or item.new.kind is not Kind.DIR


def _owner(resource: PlanResource, path: str) -> str:
    cut = resource.cut_out
    return next(owner for one, owner in cut.items() if belongs_elsewhere(path, (one,)))
