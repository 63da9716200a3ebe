"""What a plan has on record of a checkout: where its repository is, and its submodules."""

import os

from msgspec import Struct

from cleveragents.domain.resource import PlanResource
from cleveragents.infrastructure.sandbox.own_state import read_back


class Submodule(Struct, frozen=True, kw_only=True):
    """`path` is below the top of the project, and `within` that of the submodule it is part of;
    its repository has its `place` below the project's. The plan's base names `commit` for it."""

    path: str
    name: str
    within: str
    place: str
    git_dir: str
    commit: str

    def repository(self, project: str) -> str:
        """The folder of the user's repository of it."""
        return os.path.join(project, self.git_dir)


class CheckoutDetails(Struct, frozen=True, kw_only=True):
    """`git_dir` is the folder of the user's repository, and by its inode that is known again after
    a move. Of the submodules, outer ones come before those inside of them."""

    git_dir: str
    git_inode: int = 0
    included_uncommitted: bool = False
    submodules: tuple[Submodule, ...] = ()


def details_of(resource: PlanResource) -> CheckoutDetails:
    return read_back(resource, resource.details, CheckoutDetails)
