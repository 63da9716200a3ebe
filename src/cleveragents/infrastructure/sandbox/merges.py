"""Bringing the results of child plans together: the port `Merges`, each type by its adapter."""

from collections.abc import Sequence

from cleveragents.application.ports.merging import Decide, PreparedMerge, undecided
from cleveragents.domain.action import MergeStrategy
from cleveragents.domain.resource import PlanResource
from cleveragents.infrastructure.sandbox.registry import ResourceAdapters


class SandboxMerges:
    def __init__(self, adapters: ResourceAdapters) -> None:
        self._adapters = adapters

    def prepare(
        self,
        parent: PlanResource,
        child: PlanResource,
        strategy: MergeStrategy,
        before: Sequence[PreparedMerge] = (),
        decide: Decide = undecided,
    ) -> PreparedMerge:
        merge = self._adapters.of(parent).merge
        return merge.prepare(parent, child, strategy, before, decide)

    def carry_out(self, parent: PlanResource, child: PlanResource, prepared: PreparedMerge) -> None:
        self._adapters.of(parent).merge.carry_out(parent, child, prepared)
