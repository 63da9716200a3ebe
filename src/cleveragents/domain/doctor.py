"""What a crash can leave behind: what each thing found means, and what is to be done."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum

from msgspec import Struct, field

from cleveragents.domain.applied import AppliedChange, ApplySide
from cleveragents.domain.ids import PlanId
from cleveragents.domain.plan import Phase, Plan, State
from cleveragents.domain.resource import PlanResource, SandboxStatus


class Check(StrEnum):
    """In the order in which they are looked at and mended: the ground first."""

    DATABASE = "database"
    LOCKS = "locks"
    SANDBOXES = "sandboxes"
    ROLLBACKS = "rollbacks"
    PLANS = "plans"
    APPLIES = "applies"
    LEFTOVERS = "leftovers"
    STORE = "store"


class Finding(Struct, frozen=True, kw_only=True):
    """`remedy` is what mending does, or what to type where only a person can decide."""

    check: Check
    subject: str
    problem: str
    remedy: str
    mendable: bool = True


class PlanFacts(Struct, frozen=True, kw_only=True):
    """`owner` works on it now. `lost` are the resources whose sandbox is not usable, each with
    whether it can be made again; `strays` those whose project is not where it was, by name, each
    with the place where it seems to be."""

    plan: Plan
    resources: tuple[PlanResource, ...]
    owner: str | None
    lost: Mapping[str, bool] = field(default_factory=dict[str, bool])
    strays: Mapping[str, str | None] = field(default_factory=dict[str, str | None])
    applied: AppliedChange | None = None

    @property
    def keeps(self) -> bool:
        """Whether its apply can be taken back, for which some of what it has left is needed."""
        return self.applied is not None and not self.applied.freed

    @property
    def is_open(self) -> bool:
        """Children are mended with the plan at the top, which knows what to do with them."""
        return self.is_at_rest and self.plan.child_of is None

    @property
    def is_at_rest(self) -> bool:
        """Nobody works on it, and it is not over."""
        child = self.plan.child_of
        is_over = self.plan.is_final or (child is not None and child.settled)
        return self.owner is None and not is_over


class ProjectMove(Struct, frozen=True, kw_only=True):
    """The project at `old` is at `new` now, for this plan and all below it."""

    plan_id: PlanId
    resource: str
    old: str
    new: str


class LeftoverKind(StrEnum):
    REF = "ref"
    FOLDER = "folder"


class Leftover(Struct, frozen=True, kw_only=True):
    """Something of ours: a ref in somebody's repository, or the folder of a sandbox.

    `path` is the sandbox it belongs to, `there` whether that is still on disk. `precious`: it holds
    what exists nowhere else, as far as can be told, and so does whatever nobody has judged. A ref
    has a `commit`; it is `ours` if this data folder has made it, and `young` if its plan may just
    be in the making. One that is `broken` has none, and should have the `base`, if that is known.
    """

    kind: LeftoverKind
    repository: str
    name: str
    plan_id: str
    path: str
    there: bool
    precious: bool = True
    commit: str = ""
    ours: bool = True
    young: bool = False
    broken: bool = False
    base: str = ""


def database_findings(problems: Iterable[str]) -> Sequence[Finding]:
    return [
        Finding(
            check=Check.DATABASE,
            subject="metadata",
            problem=text,
            remedy="put a copy of the file back that is whole; sandboxes are not touched",
            mendable=False,
        )
        for text in problems
    ]


def lock_findings(dead: Mapping[PlanId, str]) -> Sequence[Finding]:
    return [
        Finding(
            check=Check.LOCKS,
            subject=plan_id,
            problem=f"its lock is that of {owner}, which is gone",
            remedy="free it, and end what that had started",
        )
        for plan_id, owner in dead.items()
    ]


def plan_findings(facts: Iterable[PlanFacts]) -> Sequence[Finding]:
    found: list[Finding] = []
    for item in facts:
        if item.is_open:
            found += _unfinished(item.plan)
        if item.applied is not None and item.owner is None:
            found += _half_moved(item.applied)
        if item.is_at_rest:
            found += _lost(item)
    return found


def _unfinished(plan: Plan) -> Sequence[Finding]:
    plan_id = plan.plan_id
    if plan.rollback_target is not None:
        problem = f"its rollback to {plan.rollback_target} was cut off"
        remedy = "finish it, or put the state before back"
        return [Finding(check=Check.ROLLBACKS, subject=plan_id, problem=problem, remedy=remedy)]
    if plan.state is not State.PROCESSING:
        return []
    if plan.phase is Phase.APPLY:
        return [
            Finding(
                check=Check.APPLIES,
                subject=plan_id,
                problem="applying it was cut off, and may have changed the project",
                remedy=f"agents plan apply {plan_id}",
                mendable=False,
            )
        ]
    return [
        Finding(
            check=Check.PLANS,
            subject=plan_id,
            problem="its process died in the middle of a step",
            remedy="undo that step, or keep what a program has done as one, and let the plan wait",
        )
    ]


def _half_moved(change: AppliedChange) -> Sequence[Finding]:
    if change.heading is None:
        return []
    word = "undo" if change.heading is ApplySide.BEFORE else "redo"
    return [
        Finding(
            check=Check.APPLIES,
            subject=change.plan_id,
            problem=f"the {word} of its apply was cut off, and may have changed the project",
            remedy=f"agents {word} --plan {change.plan_id}",
            mendable=False,
        )
    ]


def _lost(item: PlanFacts) -> Sequence[Finding]:
    """Not those whose project has moved: that is to be mended first, and may be all of it."""
    return [
        _lost_sandbox(item.plan.plan_id, resource, is_mendable=item.lost[resource.name])
        for resource in item.resources
        if resource.name in item.lost and resource.name not in item.strays
    ]


def _lost_sandbox(plan_id: PlanId, resource: PlanResource, *, is_mendable: bool) -> Finding:
    remedy = "make it again from its snapshots, as it last was"
    if not is_mendable:
        remedy = (
            f"put it back, or give the plan up with `agents plan cancel {plan_id}`;"
            " checkpoints are kept until then"
        )
    return Finding(
        check=Check.SANDBOXES,
        subject=plan_id,
        problem=f"the sandbox of `{resource.name}` is not usable at {resource.sandbox_path}",
        remedy=remedy,
        mendable=is_mendable,
    )


def moved_findings(facts: Iterable[PlanFacts]) -> Sequence[tuple[Finding, ProjectMove | None]]:
    return [
        _moved(item.plan.plan_id, resource, item.strays[resource.name])
        for item in facts
        if item.is_open
        for resource in item.resources
        if resource.name in item.strays
    ]


def _moved(
    plan_id: PlanId, resource: PlanResource, place: str | None
) -> tuple[Finding, ProjectMove | None]:
    old, move = resource.location, None
    remedy = f"put it back, or say where it is: agents doctor --fix --moved {old}=NEW"
    if place is not None:
        remedy = f"work with it at {place} from now on"
        move = ProjectMove(plan_id=plan_id, resource=resource.name, old=old, new=place)
    finding = Finding(
        check=Check.SANDBOXES,
        subject=plan_id,
        problem=f"the project of `{resource.name}` is not at {old} any more",
        remedy=remedy,
        mendable=move is not None,
    )
    return finding, move


def unneeded(leftovers: Iterable[Leftover], facts: Collection[PlanFacts]) -> Sequence[Leftover]:
    """Only of plans that are over, and of those that this database does not know. Live plans keep
    everything that holds something; what another data folder has made is not ours to judge."""
    plans = {str(item.plan.plan_id): item for item in facts}
    # A database is in a folder of its own, so that what is above a sandbox is needed too.
    needed = {
        place
        for item in facts
        for resource in item.resources
        if resource.status is not SandboxStatus.REMOVED
        for place in _at_and_above(resource.sandbox_path)
    }
    found: list[Leftover] = []
    for leftover in leftovers:
        item = plans.get(leftover.plan_id)
        if leftover.ours and leftover.broken and item is not None:
            found.append(leftover)
            continue
        if not leftover.ours or (item is not None and not _is_over(item)):
            continue
        if item is None and leftover.young:
            continue
        if item is not None and item.keeps:
            continue
        if leftover.there and leftover.path in needed:
            continue  # a plan that is over keeps its sandbox while that holds something
        found.append(leftover)
    return found


def leftover_findings(
    leftovers: Iterable[Leftover], facts: Collection[PlanFacts]
) -> Sequence[tuple[Finding, Leftover]]:
    """Of those that are unneeded.

    Of an unknown plan only a ref of ours can be removed: a crash leaves it while a plan is made.
    A sandbox comes after its plan is on record, so that another database must know it.
    """
    plans = {str(item.plan.plan_id): item for item in facts}
    left = unneeded(leftovers, facts)
    return [(_leftover(leftover, plans.get(leftover.plan_id)), leftover) for leftover in left]


def pins_of_others(
    leftovers: Iterable[Leftover], facts: Collection[PlanFacts]
) -> Sequence[Leftover]:
    """Refs that another data folder has made, or this one before it was copied; ours to name."""
    live = {str(item.plan.plan_id) for item in facts if not _is_over(item)}
    return [item for item in leftovers if not item.ours and item.plan_id not in live]


def _at_and_above(path: str) -> Iterator[str]:
    while path:
        yield path
        path = path.rpartition("/")[0]


def _is_over(item: PlanFacts) -> bool:
    return item.plan.is_final or (item.plan.child_of is not None and item.plan.child_of.settled)


def _leftover(leftover: Leftover, item: PlanFacts | None) -> Finding:
    whose = "a plan that is over" if item is not None else "no plan of this database"
    where = f" in {leftover.repository}" if leftover.repository else ""
    problem = f"the {leftover.kind} {leftover.name}{where} belongs to {whose}"
    gone = item is not None and (
        item.plan.state is State.APPLIED or _was_removed(leftover, item.resources)
    )
    if leftover.broken and item is not None and not _is_over(item):
        return _broken(leftover)
    accountable = item is not None or leftover.kind is LeftoverKind.REF
    if accountable and (gone or not leftover.precious):
        return Finding(
            check=Check.LEFTOVERS, subject=leftover.plan_id, problem=problem, remedy="remove it"
        )
    only = ", and holds what exists nowhere else" if leftover.precious else ""
    return Finding(
        check=Check.LEFTOVERS,
        subject=leftover.plan_id,
        problem=f"{problem}{only}",
        remedy=f"look at it, then: {removing(leftover)}",
        mendable=False,
    )


def _was_removed(leftover: Leftover, resources: Sequence[PlanResource]) -> bool:
    """Whether it is on record that we have removed it: a power cut can bring a folder back."""
    return any(
        resource.status is SandboxStatus.REMOVED and resource.sandbox_path == leftover.path
        for resource in resources
    )


def _broken(leftover: Leftover) -> Finding:
    return Finding(
        check=Check.LEFTOVERS,
        subject=leftover.plan_id,
        problem=f"the ref {leftover.name} in {leftover.repository} holds nothing, as after a "
        "power cut",
        remedy="make it again" if leftover.base else "remove it",
    )


def removing(leftover: Leftover) -> str:
    """What a person types who wants it to go."""
    if leftover.kind is LeftoverKind.REF:
        return f"git -C {leftover.repository} update-ref -d {leftover.name}"
    return f"rm -r {leftover.name}"


def store_findings(
    damages: Mapping[PlanId, Sequence[str]], hints: Mapping[PlanId, str]
) -> Sequence[Finding]:
    """`hints` are for what could not be judged: that need not be damaged."""
    return [
        Finding(
            check=Check.STORE,
            subject=plan_id,
            problem=text,
            remedy=hints.get(plan_id)
            or f"agents plan checkpoint verify {plan_id}, and delete what is damaged",
            mendable=False,
        )
        for plan_id, problems in damages.items()
        for text in problems
    ]


def stranger_findings(paths: Iterable[str]) -> Sequence[Finding]:
    """Snapshots come after their plan is on record: another database may need them."""
    return [
        Finding(
            check=Check.STORE,
            subject=path,
            problem="these snapshots belong to no plan of this database",
            remedy=f"if no other one uses this data folder: rm {path}",
            mendable=False,
        )
        for path in paths
    ]


def scratch_findings(names: Iterable[str]) -> Sequence[Finding]:
    return [
        Finding(
            check=Check.STORE,
            subject=name,
            problem="nobody needs this file any more",
            remedy="remove it",
        )
        for name in names
    ]
