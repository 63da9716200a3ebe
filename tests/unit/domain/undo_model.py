"""A plan's past that grows as the services let it grow: steps, rollbacks, corrections, labels."""

from typing import Any

from domain_builders import CODE, NOW, a_group, a_plan, ulid
from hypothesis import strategies as st
from msgspec.structs import replace

from cleveragents.domain.checkpoint import CheckpointGroup, CheckpointReason, ResourceState
from cleveragents.domain.decision import Decision, DecisionType, Fork, is_live, lineage
from cleveragents.domain.ids import DecisionId
from cleveragents.domain.plan import Plan
from cleveragents.domain.undo import PlanPast, redoable, undoable

R = CheckpointReason


class Past:
    """`content` is what the sandbox holds: a text, of which each group keeps the present one."""

    def __init__(self) -> None:
        self.plan: Plan = a_plan()
        self.groups: list[CheckpointGroup] = []
        self.forks: list[Fork] = []
        self.decisions: list[Decision] = []
        self.content = "start"
        self.made = 0
        self.half_done_on: str | None = None
        self.record(R.DECISION)

    @property
    def value(self) -> PlanPast:
        return PlanPast(plan=self.plan, groups=tuple(self.groups), forks=tuple(self.forks))

    @property
    def done(self) -> int:
        """How many steps are over."""
        return self.plan.last_completed_step + 1

    def record(self, reason: R, **fields: Any) -> CheckpointGroup:
        self.plan = self.plan.tick()
        boundary = fields.pop("boundary", None) or self.content
        state = ResourceState(
            resource_id=CODE, snapshot=self.content, state_hash=self.content, boundary=boundary
        )
        group = a_group(
            self.plan.seq,
            position=self.plan.here,
            reason=reason,
            resource_states=(state,),
            last_completed_step=self.plan.last_completed_step,
            attempt=self.plan.attempt,
            **{"step_index": self.done, **fields},
        )
        self.groups.append(group)
        self.plan = self.plan.at(group.head)
        return group

    def step(self, *, changes: bool = True) -> None:
        index = self.done
        if self.half_done_on is not None:  # a resume undoes it first
            self.content, self.half_done_on = self.half_done_on, None
        decision = self.decide(index)
        self.record(R.DECISION, decision_id=decision)
        self.record(R.ON_TOOL_WRITE, decision_id=decision)
        if changes:
            self.made += 1
            self.content = f"content {self.made}"
        self.plan = self.plan.advance(index, {})
        self.record(R.ON_TOOL_WRITE_COMPLETE, step_index=index, decision_id=decision)

    def decide(self, index: int) -> DecisionId:
        """To do a step that no other one is called like."""
        decision = DecisionId(ulid(10_000 + len(self.decisions)))
        self.decisions.append(
            Decision(
                decision_id=decision,
                plan_id=self.plan.plan_id,
                parent_id=None,
                position=self.plan.here,
                type=DecisionType.TOOL_INVOCATION,
                question="",
                chosen=f"file.write: step {len(self.decisions) + 1}",
                phase="execute",
                step_index=index,
                attempt=self.plan.attempt,
                created_at=NOW,
            )
        )
        return decision

    def complete(self) -> None:
        """The actor has nothing more to do, and knows more than before."""
        self.record(R.COMPLETE, step_index=max(self.done - 1, 0))

    def fail(self) -> None:
        """A step that leaves its work half done."""
        self.record(R.DECISION)
        self.half_done_on = self.half_done_on or self.content
        self.made += 1
        self.content = f"half {self.made}"
        self.record(R.ON_ERROR, boundary=self.half_done_on)

    def tell(self) -> None:
        """A person says something to the actor."""
        self.record(R.DECISION, source="prompt")

    def label(self) -> None:
        stands_on = self.groups[-1].decision_id
        self.record(
            R.MANUAL, labelled_by_hand=True, boundary=self.half_done_on, decision_id=stands_on
        )

    def restore_file(self) -> None:
        """`rollback --only`: a change like any other, on the same line."""
        self.record(R.BEFORE_ROLLBACK, source="rollback", boundary=self.half_done_on)
        self.made += 1
        self.half_done_on = None
        self.content = f"restored {self.made}"
        self.record(R.FILES_RESTORED)

    def correct(self, first: int) -> None:
        """Steps from this one on are to be done again; on the same line."""
        self.record(R.BEFORE_ROLLBACK, source="correct", boundary=self.half_done_on)
        self.made += 1
        self.half_done_on = None
        self.content = f"corrected {self.made}"
        self.plan = self.plan.corrected(first, {})
        self.record(R.DECISION, source="correct")

    def rollback(self, target: CheckpointGroup) -> None:
        self.record(R.BEFORE_ROLLBACK, source="rollback", boundary=self.half_done_on)
        line = len(self.forks) + 1
        self.forks.append(Fork(timeline=line, start=target.position))
        self.plan = self.plan.restore(target, line)
        state = target.resource_states[0]
        self.content = state.state_hash
        self.half_done_on = None if state.boundary == state.snapshot else state.boundary
        reach = lineage(line, self.forks)
        self.groups = [
            replace(group, superseded=not is_live(group.position, reach)) for group in self.groups
        ]

    def undo(self, changes: int = 1) -> bool:
        found = undoable(self.value)
        if len(found) >= changes:
            self.rollback(found[changes - 1])
        return len(found) >= changes

    def redo(self) -> bool:
        found = redoable(self.value)
        if found:
            self.rollback(found[0])
        return bool(found)

    def forget(self, group: CheckpointGroup) -> None:
        """It is pruned."""
        self.groups.remove(group)

    @property
    def stands(self) -> tuple[str, int]:
        return self.content, self.done


DEEDS = st.lists(
    st.one_of(
        st.just("step"),
        st.just("step"),
        st.sampled_from(("quiet step", "fail", "label", "tell", "only", "correct", "undo", "redo")),
        st.tuples(st.just("rollback"), st.integers(0, 1000)),
    ),
    max_size=14,
)


def lived(deeds: list[object]) -> Past:
    past = Past()
    simple = {
        "step": past.step,
        "quiet step": lambda: past.step(changes=False),
        "correct": lambda: past.correct(past.done // 2),
        "only": past.restore_file,
        "fail": past.fail,
        "label": past.label,
        "tell": past.tell,
        "undo": past.undo,
        "redo": past.redo,
    }
    for deed in deeds:
        match deed:
            case ("rollback", int(pick)):
                past.rollback(past.groups[pick % len(past.groups)])
            case str(word):
                simple[word]()
    return past
