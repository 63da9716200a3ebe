"""Rules for action files that work in place: what they may say, and how their steps are counted.

A place has one timeline, and each use of a file is a stretch of it, between steps of programs and
of others. So the steps of the file have no numbers of their own there: whoever takes them counts
them in its memory, which says of which use it is (ADR 0104).
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from cleveragents.domain.action import Action, ResourceSpec, Step, TimelineUse
from cleveragents.domain.errors import TimelineTermsError
from cleveragents.domain.in_place import ACTION
from cleveragents.domain.plan import Plan
from cleveragents.domain.resource import PlanResource
from cleveragents.domain.secrets import Secrets, skips_secrets

USE = "use"
"""In the state of an actor: of which use of an action file it is."""

NEXT = "next_step"
"""In the state of whoever takes the steps of a file: the index of the next one."""

SANDBOX = "sandbox"
IN_PLACE = "in-place"
STRATEGIES = (SANDBOX, IN_PLACE)


def problems(action: Action) -> Iterator[tuple[tuple[str, ...], str]]:
    """What of an action does not go together with working in place: where, and why not."""
    if not action.in_place:
        return
    trees = [spec.name for spec in action.resources if spec.in_place and spec.kind.is_folder]
    for spec in action.resources:
        if not spec.in_place:
            yield (
                ("resources", spec.name),
                "all resources of a plan are worked on in place, or none: what goes back together"
                f" would not be together; say `strategy: {IN_PLACE}` here too, or nowhere",
            )
        elif spec.name in trees[1:]:
            yield (
                ("resources", spec.name, "strategy"),
                f"a timeline is of one place, and `{trees[0]}` is one already; leave out one of"
                " the two, or make an action file for each",
            )
        if spec.in_place and not spec.checkpointable:
            yield (
                ("resources", spec.name, "checkpointable"),
                "in place there is no other way back than checkpoints; leave it out",
            )
    if not action.rollback_policy.enabled:
        yield (
            ("rollback_policy", "enabled"),
            "in place there is no other way back than checkpoints; leave it out",
        )


def on_a_timeline(action: Action, use_id: str) -> Action:
    """As it is carried out on the timeline of its place."""
    script = action.steps if action.is_scripted else ()
    return replace(action, name=ACTION, steps=(), use=TimelineUse(use_id=use_id, script=script))


def own_state(action: Action, state: Mapping[str, Any]) -> Mapping[str, Any]:
    """What an actor of this use remembers: a rollback may have led into the use of another file."""
    if action.use is None or state.get(USE) == action.use.use_id:
        return state
    return {}


def steps_ahead(plan: Plan) -> Sequence[Step]:
    """Those of the file that the timeline does not have yet."""
    use = plan.action.use
    if use is None:
        return ()
    pending = max(len(plan.action.steps) - plan.last_completed_step - 1, 0)
    following = int(own_state(plan.action, plan.actor_state).get(NEXT, 0))
    return use.script[following + pending :]


def refuse_other_terms(
    plan: Plan,
    resources: Sequence[PlanResource],
    wanted: Sequence[ResourceSpec],
    *,
    by_name: bool = True,
) -> None:
    """What checkpoints hold is said when a timeline begins. Raises TimelineTermsError where
    something else is said later. `by_name`: databases are called what they are called there."""
    known = {resource.name: resource for resource in resources}
    for spec in wanted:
        if not spec.kind.is_folder:
            tree = next(item.location for item in wanted if item.kind.is_folder)
            _refuse_other_database(plan, databases_at(resources, tree), spec, by_name=by_name)
            continue
        found = known.get(spec.name)
        if found is None or found.type != spec.type:
            told = ", ".join(f"`{r.name}` ({r.type})" for r in resources)
            raise TimelineTermsError(
                plan.name, f"it is of {told}, and not of `{spec.name}` ({spec.type})"
            )
        if spec.secrets is Secrets.SKIP and not skips_secrets(found.exclude):
            raise TimelineTermsError(
                plan.name, "that secrets are skipped was not said when it began, and they are in it"
            )
        for word, said, held in (
            ("include", spec.include, found.include),
            ("exclude", spec.exclude, found.exclude),
        ):
            more = [path for path in said if path not in held]
            if more:
                raise TimelineTermsError(
                    plan.name, f"{word} {', '.join(more)} was not said when it began"
                )


def _refuse_other_database(
    plan: Plan, known: Mapping[str, PlanResource], spec: ResourceSpec, *, by_name: bool
) -> None:
    """One that comes later would be in no group before, or a file of the tree in each of them."""
    found = known.get(spec.location)
    if found is None:
        raise TimelineTermsError(plan.name, f"{spec.location} is no part of it")
    if by_name and found.name != spec.name:
        told = f"{spec.location} is called `{found.name}` there, and not `{spec.name}`"
        raise TimelineTermsError(plan.name, told)


def databases_at(resources: Sequence[PlanResource], tree: str) -> Mapping[str, PlanResource]:
    """Those of a timeline, by where they are if its tree is there now."""
    old = next((f"{item.location}/" for item in resources if item.kind.is_folder), "/")
    return {
        f"{tree}/{item.location.removeprefix(old)}"
        if item.location.startswith(old)
        else item.location: item
        for item in resources
        if not item.kind.is_folder
    }
