"""Why a result cannot be merged into a checkout as it is, and what helps."""

import os

from cleveragents.domain.errors import ApplyConflictError
from cleveragents.domain.resource import PlanResource
from cleveragents.infrastructure.sandbox.git.command import Git
from cleveragents.infrastructure.sandbox.git.repository.own_place import details_of
from cleveragents.infrastructure.sandbox.git.repository.pins import value_of
from cleveragents.infrastructure.sandbox.git.trees import FolderTree, text_of, tree_changes
from cleveragents.infrastructure.sandbox.git.views import GitView

_NO_COMMIT = "no commit of yours has them yet"
_WAS_UNCOMMITTED = (
    "the plan has changed what was your own uncommitted work when it began, and a commit would take"
    " that along"
)


def refuse_lost_removals(
    git: Git, held: GitView, resource: PlanResource, folder: FolderTree, head: str
) -> None:
    """Of files that no commit has: a commit says nothing of them, and so they would stay."""
    if not details_of(resource).included_uncommitted:
        return
    removed = [c for c in tree_changes(held.git, resource.base, folder.tree) if not c.is_file]
    unknown = {c.path for c in tree_changes(held.git, head, resource.base) if not c.was_file}
    top = os.fsencode(git.directory)
    names = [
        text_of(change.path)
        for change in removed
        if change.path in unknown and os.path.lexists(os.path.join(top, change.path))
    ]
    if names:
        hint = _without_a_commit(resource)
        raise ApplyConflictError(
            resource.plan_id, resource.name, names, f"the plan removes them, and {_NO_COMMIT}", hint
        )


def _without_a_commit(resource: PlanResource) -> str:
    return (
        f"agents plan apply {resource.plan_id} --no-commit puts the result into your files, as"
        " uncommitted as they were; or take what you want of the plan's own version by hand:"
        f" {resource.sandbox_path}"
    )


def with_what_helps(
    git: Git, resource: PlanResource, head: str, ours: str, error: ApplyConflictError
) -> ApplyConflictError:
    """Uncommitted work can be put away, commits cannot."""
    plan_id = resource.plan_id
    trees = {git.text("rev-parse", f"{commit}^{{tree}}") for commit in (head, ours)}
    if len(trees) > 1:
        return error
    helps = (
        f"agents plan apply {plan_id} --branch NAME puts the result on a branch that begins where"
        " the plan did; then decide with git: git merge NAME"
    )
    if error.sides:
        helps = f"take a side with --ours (the project's) or --theirs (the plan's); or {helps}"
    why = "commits since the plan was made change the same lines"
    if details_of(resource).included_uncommitted:  # where it began is no commit of the user's
        helps = _without_a_commit(resource)
        if value_of(git, f"{resource.base}^1") == head:
            why = _WAS_UNCOMMITTED
    return ApplyConflictError(plan_id, resource.name, error.files, why, helps, sides=error.sides)
