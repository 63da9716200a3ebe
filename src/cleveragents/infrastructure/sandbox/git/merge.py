"""The merge of a plan's result with what the project has become: trees, and no files.

`git merge-tree` does it, and follows renamed files by itself, as `git merge` would.
Inside, since drivers may be configured for it, which are programs, and read what a step wrote.
"""

import re
from collections.abc import Mapping, Sequence

from cleveragents.domain.conflicts import Side
from cleveragents.domain.errors import ApplyConflictError
from cleveragents.domain.resource import PlanResource
from cleveragents.infrastructure.sandbox.git.clashes import (
    Clash,
    clashes,
    name_of,
    told,
    with_side,
)
from cleveragents.infrastructure.sandbox.git.command import Git
from cleveragents.infrastructure.sandbox.git.trees import own_commit
from cleveragents.infrastructure.sandbox.git.views import GitView

_ATTRIBUTES = b".gitattributes"
# Both sides of more files than these are not told; their names are.
_MOST_TOLD = 5


def merged_tree(
    held: GitView, resource: PlanResource, ours: str, result: str, side: Side | None = None
) -> str:
    """Three-way merge of trees with exactly the plan's base between them. Conflicts raise, unless
    they are about files and a side is to be taken."""
    git = held.git
    base, present = _tree(git, resource.base), _tree(git, ours)
    if result == base:
        return present
    if present == base:
        return result
    # Made-up children of the base: HEAD may have been rewound, or know nothing of the base.
    mine = own_commit(git, present, "ours", resource.base)
    theirs = own_commit(git, result, "theirs", resource.base)
    args = ("merge-tree", "--write-tree", "-z", "--no-messages", mine, theirs)
    with held.trees.folder() as place:
        held.trees.materialise(git, ours, _needed(git, ours), place)
        there = git.at(str(place)).with_env({"GIT_WORK_TREE": str(place)})
        merged = there.run(*args, check=False)
        if merged.code not in (0, 1):
            there.run(*args)  # the same again, for its error
    tree, *listed = merged.stdout.split(b"\0")[:-1]
    if merged.code == 0:
        return tree.decode()
    found = clashes([line for line in listed if line])
    # Where file and folder collide, git makes up a second name out of ours.
    made_up = re.compile(f"~({mine}|{theirs})(_[0-9]+)?$")
    names = {clash.path: made_up.sub("", name_of(clash)) for clash in found}
    of_files = all(clash.is_of_files and names[clash.path] == name_of(clash) for clash in found)
    if side is not None and of_files:
        return with_side(held, tree.decode(), found, side)
    why = "the project changed the same lines since the plan was made"
    lines = _lines(git, {names[clash.path]: clash for clash in found})
    raise ApplyConflictError(
        resource.plan_id, resource.name, sorted(lines), why, sides=lines if of_files else {}
    )


def _lines(git: Git, found: Mapping[str, Clash]) -> Mapping[str, Sequence[str]]:
    first = set(sorted(found)[:_MOST_TOLD])
    return {name: [*told(git, clash)] if name in first else () for name, clash in found.items()}


def _needed(git: Git, ours: str) -> list[bytes]:
    """What git reads in the folder that it merges in: attributes, and whatever a driver needs."""
    listed = git.run("ls-tree", "-r", "-z", "--full-tree", ours).stdout.split(b"\0")[:-1]
    files = [line for line in listed if not line.startswith(b"160000")]
    paths = [line.partition(b"\t")[2] for line in files]
    if git.succeeds("config", "--get-regexp", r"^merge\..*\.driver$"):
        return paths
    return [path for path in paths if path.rpartition(b"/")[2] == _ATTRIBUTES]


def _tree(git: Git, commit: str) -> str:
    return git.text("rev-parse", "--verify", f"{commit}^{{tree}}")
