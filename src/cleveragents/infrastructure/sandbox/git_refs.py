"""Owns the names that a plan has in the user's repository, all of them pins against gc.

refs/cleveragents/plan-<plan>/base/<name>    what the sandbox was made from
refs/cleveragents/plan-<plan>/result/<name>  what is being applied
refs/cleveragents/applied/<plan>/<name>      what was applied without a commit; stays for good
"""

import re

from cleveragents.domain.ids import PlanId
from cleveragents.domain.sandbox import PlanResource
from cleveragents.infrastructure.sandbox.git import Git


def sandbox_branch(resource: PlanResource) -> str:
    """The branch that a sandbox is on, in its own repository."""
    return f"cleveragents/plan-{resource.plan_id}"


def base_pin(plan_id: PlanId, name: str) -> str:
    return f"{_pins(plan_id)}base/{_part(name)}"


def result_pin(resource: PlanResource) -> str:
    return f"{_pins(resource.plan_id)}result/{_part(resource.name)}"


def applied_pin(resource: PlanResource) -> str:
    return f"refs/cleveragents/applied/{resource.plan_id}/{_part(resource.name)}"


def pin(git: Git, ref: str, commit: str) -> None:
    git.run("update-ref", ref, commit)


def unpin(git: Git, resource: PlanResource) -> None:
    """Let go of the pins of this resource, and with the last one of all the plan's."""
    delete_ref(git, base_pin(resource.plan_id, resource.name))
    delete_ref(git, result_pin(resource))
    pins = _pins(resource.plan_id)
    if git.text("for-each-ref", "--format=%(refname)", f"{pins}base/"):
        return
    for ref in git.text("for-each-ref", "--format=%(refname)", pins).split():
        delete_ref(git, ref)


def delete_ref(git: Git, ref: str) -> None:
    if value_of(git, ref) is not None:
        # Not `git branch -D`: that rewrites the user's config file.
        git.run("update-ref", "--no-deref", "-d", ref)


def value_of(git: Git, ref: str) -> str | None:
    """The commit that a reference or name stands for, if there is one."""
    found = git.run("rev-parse", "--verify", "--quiet", f"{ref}^{{commit}}", check=False)
    return found.stdout.decode().strip() if found.code == 0 else None


def _pins(plan_id: PlanId) -> str:
    return f"refs/cleveragents/plan-{plan_id}/"


def _part(name: str) -> str:
    """A resource name as part of a reference, whatever characters it has."""
    return re.sub(r"[^A-Za-z0-9_-]", lambda found: f"%{ord(found[0]):x}", name)
