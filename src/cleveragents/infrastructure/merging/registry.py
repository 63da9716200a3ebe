"""Which merge is for which type of resource: the port `Merges`."""

from collections.abc import Sequence
from typing import Any

from cleveragents.application.ports.merging import Decide, PreparedMerge, undecided
from cleveragents.domain.action import MergeStrategy, ResourceType
from cleveragents.domain.errors import SandboxError
from cleveragents.domain.resource import PlanResource
from cleveragents.infrastructure.merging.checkout_merge import CheckoutMerge
from cleveragents.infrastructure.merging.database_merge import DatabaseMerge, DatabaseStates
from cleveragents.infrastructure.merging.text_merge import TextMerge
from cleveragents.infrastructure.merging.tree_merge import TreeMerge, TreeSnapshots
from cleveragents.infrastructure.sandbox.git.inside import GitInside
from cleveragents.infrastructure.sandbox.git.repository.state import GitState
from cleveragents.infrastructure.sandbox.git.trees import nul_ended
from cleveragents.infrastructure.sandbox.git.views import GitViews


class SandboxMerges:
    def __init__(
        self,
        checkouts: TreeSnapshots,
        folders: TreeSnapshots,
        databases: DatabaseStates,
        inside: GitInside,
    ) -> None:
        text = TextMerge(inside)
        self._views = GitViews(inside)
        # The types of a merge and of what it prepared belong together, which this table knows.
        self._merges: dict[ResourceType, Any] = {
            ResourceType.GIT_CHECKOUT: CheckoutMerge(
                TreeMerge(checkouts, text, self._ignored_by_git),
                checkouts,
                lambda resource: GitState(resource, self._views),
            ),
            ResourceType.FS_DIRECTORY: TreeMerge(folders, text, _nothing),
            ResourceType.SQLITE: DatabaseMerge(databases),
        }

    def prepare(
        self,
        parent: PlanResource,
        child: PlanResource,
        strategy: MergeStrategy,
        before: Sequence[PreparedMerge] = (),
        decide: Decide = undecided,
    ) -> PreparedMerge:
        return self._merge(parent).prepare(parent, child, strategy, before, decide)

    def carry_out(self, parent: PlanResource, child: PlanResource, prepared: PreparedMerge) -> None:
        self._merge(parent).carry_out(parent, child, prepared)

    def _merge(self, resource: PlanResource) -> Any:
        if resource.type not in self._merges:
            raise SandboxError(
                f"`{resource.name}` is a {resource.type}, which child plans cannot work on",
                "give the children other resources with `resources`",
            )
        return self._merges[resource.type]

    def _ignored_by_git(self, resource: PlanResource, paths: Sequence[bytes]) -> frozenset[bytes]:
        if not paths:
            return frozenset()
        with self._views.of_files(resource) as held:
            asked = held.git.run(
                "check-ignore", "-z", "--stdin", input=nul_ended(list(paths)), check=False
            )
        return frozenset(asked.stdout.split(b"\0")[:-1])


def _nothing(resource: PlanResource, paths: Sequence[bytes]) -> frozenset[bytes]:  # noqa: ARG001 - of a folder nothing is ignored
    return frozenset()
