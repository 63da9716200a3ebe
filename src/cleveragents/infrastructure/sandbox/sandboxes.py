"""Owns which adapter makes the sandboxes of which resource type: the port `Sandboxes`."""

from pathlib import Path

from cleveragents.application.ports import ApplyOptions, PreparedApply
from cleveragents.domain.action import ResourceSpec, ResourceType
from cleveragents.domain.changes import ResourceDiff
from cleveragents.domain.errors import ResourceError
from cleveragents.domain.ids import PlanId
from cleveragents.domain.sandbox import PlanResource, ResourceInspection
from cleveragents.infrastructure.sandbox.git_apply import GitApply
from cleveragents.infrastructure.sandbox.git_checkout import GitCheckouts


class SandboxRegistry:
    def __init__(self, sandboxes_dir: str, scratch_dir: str) -> None:
        self._sandboxes = Path(sandboxes_dir)
        self._checkouts = {ResourceType.GIT_CHECKOUT: GitCheckouts(sandboxes_dir, scratch_dir)}
        self._applies = {ResourceType.GIT_CHECKOUT: GitApply(scratch_dir)}

    def inspect(
        self, spec: ResourceSpec, plan_id: PlanId, *, include_uncommitted: bool
    ) -> ResourceInspection:
        adapter = self._checkout(spec.name, spec.type)
        return adapter.inspect(spec, plan_id, include_uncommitted=include_uncommitted)

    def path_for(self, plan_id: PlanId, name: str, type_: ResourceType) -> str:
        self._checkout(name, type_)
        return str(self._sandboxes / plan_id / name)

    def create(self, resource: PlanResource) -> None:
        self._checkout(resource.name, resource.type).create(resource)

    def check(self, resource: PlanResource) -> None:
        self._checkout(resource.name, resource.type).check(resource)

    def remove(self, resource: PlanResource) -> None:
        self._checkout(resource.name, resource.type).remove(resource)

    def release(self, resource: PlanResource) -> None:
        self._checkout(resource.name, resource.type).release(resource)

    def diff(self, resource: PlanResource) -> ResourceDiff:
        return self._checkout(resource.name, resource.type).diff(resource)

    def applied_diff(self, resource: PlanResource, applied_ref: str) -> ResourceDiff:
        return self._checkout(resource.name, resource.type).applied_diff(resource, applied_ref)

    def prepare_apply(self, resource: PlanResource, options: ApplyOptions) -> PreparedApply:
        return self._apply(resource.name, resource.type).prepare_apply(resource, options)

    def carry_out(self, resource: PlanResource, prepared: PreparedApply) -> str:
        return self._apply(resource.name, resource.type).carry_out(resource, prepared)

    def _checkout(self, name: str, type_: ResourceType) -> GitCheckouts:
        if type_ not in self._checkouts:
            raise _unknown(name, type_, list(self._checkouts))
        return self._checkouts[type_]

    def _apply(self, name: str, type_: ResourceType) -> GitApply:
        if type_ not in self._applies:
            raise _unknown(name, type_, list(self._applies))
        return self._applies[type_]


def _unknown(name: str, type_: ResourceType, known: list[ResourceType]) -> ResourceError:
    return ResourceError(
        f"`{name}` is of type {type_}, which this version cannot work on yet",
        f"use a resource of type {', '.join(known)}",
    )
