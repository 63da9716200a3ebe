"""How a plan stands: its steps, its children, what has failed, and what to type next."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from cleveragents.application.services.subplans.queries import counting
from cleveragents.cli.render.blocks import Block, Cell, CommandResult, Fields, Grid, Shown
from cleveragents.cli.views import confinement, unchecked
from cleveragents.cli.views.acting import acting_data, acting_rows
from cleveragents.cli.views.children import child_data, child_grid
from cleveragents.cli.views.conflicts import conflict_blocks, conflict_steps, overwritten
from cleveragents.cli.views.failures import (
    failure_block,
    failure_data,
    next_after_failure,
    next_of_program,
)
from cleveragents.cli.views.timelines import about
from cleveragents.cli.views.words import count, picked, state_word, step_word, toned
from cleveragents.domain.confinement import Enforcement
from cleveragents.domain.places import place_of
from cleveragents.domain.plan import Phase, Plan, State
from cleveragents.domain.resource import SandboxStatus
from cleveragents.domain.timeline_use import IN_PLACE

if TYPE_CHECKING:  # the services behind it are slow to import
    from cleveragents.application.services.plans.plan_queries import PlanStatus


def status(found: "PlanStatus", holds: Enforcement | None = None) -> CommandResult:
    """`holds` is what this machine can do of the confinement that the action asks for."""
    asked, data, rows = found.plan.action.confinement, dict(_status_data(found)), []
    if holds is not None:
        data["confinement"] = confinement.data(asked, holds)
        rows = [confinement.row(asked, holds)]
    return CommandResult(
        data=data,
        blocks=_status_blocks(found, rows),
        messages=_next_steps(found),
        # The question was answered, so that the exit code is 0; how the plan stands is told too.
        status="error" if found.plan.state in (State.ERRORED, State.CONSTRAINED) else "ok",
        warnings=[*_status_warnings(found), *(confinement.warnings(holds) if holds else ())],
    )


def executed(
    found: "PlanStatus", holds: Enforcement | None = None, *, listed: bool = False
) -> CommandResult:
    """A plan that has done all its steps; one that failed is an error instead. Steps that are
    `listed` just above are not listed again."""
    outcome = status(found, holds)
    done = f"{found.plan.name} is {state_word(found.plan, abandoned=found.abandoned)}"
    blocks = outcome.blocks
    if listed and not found.unchecked:
        blocks = [block for block in blocks if not (isinstance(block, Grid) and block.facts)]
        blocks.insert(0, Fields(found.plan.name, [], facts=_known(found)))
    return replace(outcome, blocks=blocks, messages=[done, *outcome.messages])


def _status_data(found: "PlanStatus") -> Mapping[str, Any]:
    plan = found.plan
    data: dict[str, Any] = {
        **picked(plan, "plan_id name phase state"),
        "action": plan.action.name,
        "attempt": plan.attempt,
        "progress": [{"step": item.step, "status": item.status} for item in found.progress],
        "timing": {
            "started": plan.started_at,
            "elapsed": round(found.elapsed.total_seconds(), 3),
        },
        "execution": {
            "sandbox": ", ".join(sorted({r.status.value for r in found.resources})),
            "tool_calls": found.tool_calls,
            "files_modified": found.files_modified,
            "child_plans": sum(1 for _ in counting(found.children)),
            "checkpoints": found.checkpoints,
        },
        "sandboxes": [
            {
                "resource": r.name,
                "type": r.type,
                "strategy": IN_PLACE if r.in_place else r.kind.strategy,
                "path": r.sandbox_path,
                "status": r.status,
            }
            for r in found.resources
        ],
        "last_completed_step": plan.last_completed_step,
        "last_checkpoint_id": plan.head,
        **acting_data(found),
        **unchecked.data(found.unchecked),
    }
    data |= cancel_data(plan)
    if found.applied is not None:
        from cleveragents.cli.views.applied_changes import kept  # noqa: PLC0415 - this one alone

        data["apply"] = kept(found.applied, found.now)
    if found.children:
        data["children"] = [child_data(item) for item in found.children]
    if plan.error is not None:
        data["error"] = failure_data(plan.error)
    return data


def cancel_data(plan: Plan) -> Mapping[str, Any]:
    return {"cancel_reason": plan.cancel_reason} if plan.state is State.CANCELLED else {}


def _status_blocks(
    found: "PlanStatus", further: Sequence[tuple[str, str | Cell]]
) -> Sequence[Block]:
    plan = found.plan
    blocks: list[Block] = [
        Grid(
            plan.name,
            ["#", "step", "status"],
            _step_rows(found),
            empty="no step yet",
            facts=_known(found),
            cut=("step",),
        ),
        Fields("", [*_facts(found), *further, *_sandboxes(found), *acting_rows(found)]),
    ]
    if any(counting(found.children)):
        blocks.insert(1, child_grid(found.children))
        blocks.extend(conflict_blocks(found.children))
    if plan.error:
        blocks.append(failure_block(plan.error))
    return blocks


def _known(found: "PlanStatus") -> Sequence[Shown]:
    changed = count(found.files_modified, "file")
    return [*about(found.plan, found.resources, found.now, abandoned=found.abandoned), changed]


def _facts(found: "PlanStatus") -> Iterator[tuple[str, Shown]]:
    plan = found.plan
    yield "project", place_of(found.resources) or "-"
    if plan.attempt > 1:
        yield "attempt", str(plan.attempt)
    if plan.started_at is not None:
        yield "took", f"{found.elapsed.total_seconds():.1f} s"
    if found.checkpoints:
        yield "checkpoints", str(found.checkpoints)
        yield "stands on", plan.head or "-"
    if found.owner:
        yield "in use by", found.owner
    if plan.cancel_reason:
        yield "because", plan.cancel_reason


def _sandboxes(found: "PlanStatus") -> Iterator[tuple[str, Shown]]:
    """As long as there is something there."""
    for resource in found.resources:
        if resource.status is SandboxStatus.REMOVED:
            continue
        word = toned(resource.status)
        told = f"{resource.status}, {resource.type}: {resource.sandbox_path}"
        told = f"in place, {told}" if resource.in_place else told
        yield f"sandbox {resource.name}", Cell(told, word.tone if word.tone == "bad" else "plain")


def _step_rows(found: "PlanStatus") -> Sequence[Sequence[str | Cell]]:
    marked = {u.step_index for u in found.unchecked if u.plan_id == found.plan.plan_id}
    rows: list[list[str | Cell]] = []
    for index, item in enumerate(found.progress):
        word = step_word(item.status)
        status = Cell(f"{word}, unchecked", "warn") if index in marked else toned(word)
        rows.append([str(index + 1), item.step, status])
    return rows


def _status_warnings(found: "PlanStatus") -> Sequence[str]:
    warnings: list[str] = []
    if found.abandoned:
        warnings.append(f"the process that worked on this plan is gone; {_go_on(found.plan)}")
    if found.plan.rollback_target is not None:
        warnings.append("a rollback was interrupted; the next command that runs finishes it")
    lost = overwritten(found.children)
    return [*warnings, *lost, *unchecked.warnings(found.unchecked)]


def _go_on(plan: Plan) -> str:
    if plan.phase is Phase.APPLY:
        return f"go on with `agents plan apply {plan.plan_id}`"
    if plan.action.is_program:
        where = "your tree" if plan.action.in_place else "the sandbox"
        return f"what the program did until then is in {where}"
    return f"go on with `agents plan resume {plan.plan_id}`"


def _on_a_timeline(plan: Plan) -> Sequence[str]:
    """An action file that is not through goes on; a program is started anew by whoever wants it."""
    if plan.action.is_program or plan.executed:
        return []
    word = "next" if plan.error is None else "try again"
    return [f"{word}: agents plan execute {plan.plan_id}"]


def _next_steps(found: "PlanStatus") -> Sequence[str]:
    plan = found.plan
    if found.applied is not None:
        from cleveragents.cli.views.applied_changes import (  # noqa: PLC0415 - this one alone
            sentences,
        )

        return sentences(found.applied, found.now)
    program = plan.action.is_program
    if plan.action.in_place and not (plan.is_final or found.owner):
        return [*_on_a_timeline(plan), "back: agents undo", "close the timeline: agents apply"]
    if program and found.abandoned and plan.phase is not Phase.APPLY:
        return next_of_program(plan)
    if plan.is_final or found.owner or found.abandoned:
        return []
    if plan.executed:
        # The same apply would be refused again.
        word = "apply" if program else "plan apply"
        look = f"diff --plan {plan.plan_id}" if program else f"plan diff {plan.plan_id}"
        further = plan.error.hint if plan.error else f"next: agents {word} {plan.plan_id}"
        return [f"look: agents {look}", further]
    if plan.is_result:
        return [
            f"next: agents apply {plan.plan_id}",
            f"forward again: agents redo --plan {plan.plan_id}",
        ]
    if plan.error is None:
        return [f"next: agents plan execute {plan.plan_id}"]
    return [*conflict_steps(plan.plan_id, found.children), *next_after_failure(plan)]
