"""A resource of an action file, looked at where it is: what a plan would work on."""

from cleveragents.application.ports.runtime import IdSource, Sandboxes
from cleveragents.domain.action import ResourceSpec
from cleveragents.domain.errors import ResourceError
from cleveragents.domain.ids import PlanId, ResourceId
from cleveragents.domain.resource import PlanResource, ResourceInspection


def inspected(
    sandboxes: Sandboxes,
    ids: IdSource,
    spec: ResourceSpec,
    plan_id: PlanId | None = None,
    *,
    include_uncommitted: bool = False,
) -> tuple[PlanResource, ResourceInspection]:
    """Raises ResourceError. Without a plan it is only looked at, and belongs to none."""
    _refuse_unstorable(spec)
    found = sandboxes.inspect(spec, plan_id, include_uncommitted=include_uncommitted)
    whose = plan_id or PlanId(ids.new())
    place = sandboxes.path_for(whose, spec.name, spec.type, found.location)
    resource = PlanResource(
        resource_id=ResourceId(ids.new()),
        plan_id=whose,
        name=spec.name,
        type=spec.type,
        location=found.location,
        base=found.base,
        sandbox_path=found.location if spec.in_place else place,
        include=spec.include,
        exclude=(*spec.exclude, *found.exclude),
        checkpointable=spec.checkpointable,
        in_place=spec.in_place,
        details=found.details,
    )
    return resource, found


def _refuse_unstorable(spec: ResourceSpec) -> None:
    try:
        spec.location.encode("utf-8")
    except UnicodeEncodeError:
        raise ResourceError(
            f"the path of `{spec.name}` is not UTF-8",
            "rename the folder, or reach it through a link with a plain name",
        ) from None
