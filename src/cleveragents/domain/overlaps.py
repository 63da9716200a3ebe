"""Resources that lie inside of each other: what is inside belongs to the inner one alone.

Each has a sandbox of its own, so that one path is there twice. If both brought it back, the second
would find that the first had changed it. So the outer one leaves it out (ADR 0060).
"""

from collections.abc import Collection, Iterable, Mapping, Sequence

from msgspec.structs import replace

from cleveragents.domain.errors import ResourceError
from cleveragents.domain.in_place import DRAFT
from cleveragents.domain.resource import PlanResource
from cleveragents.domain.resource_kinds import kinds


def cut_out(
    resources: Sequence[PlanResource], submodules: Mapping[str, Collection[str]]
) -> Sequence[PlanResource]:
    """The same, each with what others have inside of it; `submodules` are by the resource's name.
    Raises ResourceError."""
    return [_without_inner(outer, resources, submodules[outer.name]) for outer in resources]


def refuse_twice(resources: Sequence[PlanResource]) -> None:
    """Two sandboxes of one thing could not both be applied: the second would undo the first.
    Raises ResourceError."""
    seen: dict[str, str] = {}
    for resource in resources:
        other = seen.setdefault(resource.location, resource.name)
        if other != resource.name:
            raise ResourceError(
                f"`{other}` and `{resource.name}` are the same: {resource.location}",
                "name it once, and let all steps use that resource",
            )


def overlap_notices(resources: Iterable[PlanResource]) -> Sequence[str]:
    ends = [DRAFT, *(end for kind in kinds() for end in kind.beside)]
    return [
        f"{outer.name}: {path} is captured and taken back as a database, under its own lock"
        if outer.in_place
        else f"{outer.name}: {path} belongs to `{owner}`; what steps write there in the sandbox of"
        f" `{outer.name}` is not applied, what they write in that of `{owner}` is"
        for outer in resources
        for path, owner in outer.cut_out.items()
        if not any(path == f"{other}{end}" for other in outer.cut_out for end in ends)
    ]


def belongs_elsewhere(path: str, cut: Collection[str]) -> bool:
    """Whether a change at this path would reach what is cut out: it is there, below, or takes the
    place of a folder above."""
    return any(f"{path}/".startswith(f"{one}/") or f"{one}/".startswith(f"{path}/") for one in cut)


def _without_inner(
    outer: PlanResource, resources: Sequence[PlanResource], submodules: Collection[str]
) -> PlanResource:
    cut: dict[str, str] = {}
    for inner in resources:
        inside = inner.location.removeprefix(f"{outer.location.rstrip('/')}/")
        if inner is outer or not outer.kind.is_folder or inside == inner.location:
            continue
        _refuse_in_submodule(outer, inner, inside, submodules)
        drafts = (DRAFT,) if inner.in_place and not inner.kind.is_folder else ()
        cut |= {f"{inside}{end}": inner.name for end in ("", *inner.kind.beside, *drafts)}
    return replace(outer, cut_out=cut)


def _refuse_in_submodule(
    outer: PlanResource, inner: PlanResource, inside: str, submodules: Collection[str]
) -> None:
    for path in submodules:
        if f"{inside}/".startswith(f"{path}/"):
            raise ResourceError(
                f"`{inner.name}` is in {path}, which is a submodule of `{outer.name}`:"
                " they cannot be applied beside each other",
                f"leave `{inner.name}` out: `{outer.name}` has its submodules with it",
            )
