"""What counts after any number of rollbacks, and rollbacks of rollbacks."""

from dataclasses import dataclass, field

from domain_builders import NOW, PLAN, ulid
from hypothesis import given
from hypothesis import strategies as st

from cleveragents.domain.decision import (
    Decision,
    DecisionType,
    Fork,
    Position,
    children_of,
    is_live,
    lineage,
)
from cleveragents.domain.ids import DecisionId, PlanId


@dataclass
class Model:
    """The truth by simpler means: whoever takes a checkpoint copies the list of what happened."""

    timeline: int = 0
    seq: int = 0
    alive: list[Position] = field(default_factory=list[Position])
    everything: list[Position] = field(default_factory=list[Position])
    forks: list[Fork] = field(default_factory=list[Fork])
    checkpoints: list[tuple[Position, list[Position]]] = field(
        default_factory=list[tuple[Position, list[Position]]]
    )

    def happen(self) -> None:
        self.seq += 1
        position = Position(timeline=self.timeline, seq=self.seq)
        self.alive.append(position)
        self.everything.append(position)
        self.checkpoints.append((position, list(self.alive)))

    def roll_back(self, choice: int) -> None:
        if not self.checkpoints:
            return
        position, alive = self.checkpoints[choice % len(self.checkpoints)]
        self.happen()  # the safety group, which makes the rollback undoable
        self.timeline = len(self.forks) + 1
        self.forks.append(Fork(timeline=self.timeline, start=position))
        self.alive = list(alive)

    def judged_alive(self) -> list[Position]:
        reach = lineage(self.timeline, self.forks)
        return [position for position in self.everything if is_live(position, reach)]


MOVES = st.lists(st.none() | st.integers(min_value=0, max_value=50), max_size=40)


def played(moves: list[int | None]) -> Model:
    model = Model()
    for move in moves:
        if move is None:
            model.happen()
        else:
            model.roll_back(move)
    return model


@given(MOVES)
def test_what_counts_is_what_a_copied_list_would_hold(moves: list[int | None]) -> None:
    model = Model()
    for move in moves:
        if move is None:
            model.happen()
        else:
            model.roll_back(move)
        assert model.judged_alive() == model.alive


@given(MOVES, st.integers(min_value=0, max_value=50))
def test_undoing_a_rollback_brings_everything_back(moves: list[int | None], choice: int) -> None:
    model = played([None, *moves])
    before = list(model.alive)

    model.roll_back(choice)
    safety = model.everything[-1]
    model.roll_back([position for position, _ in model.checkpoints].index(safety))

    assert model.judged_alive() == [*before, safety]


def test_without_a_rollback_everything_counts() -> None:
    assert lineage(0, []) == {0: None}
    assert is_live(Position(timeline=0, seq=10**9), lineage(0, []))


def test_what_happened_at_the_very_checkpoint_still_counts_and_the_next_thing_does_not() -> None:
    reach = lineage(1, [Fork(timeline=1, start=Position(timeline=0, seq=5))])

    assert is_live(Position(timeline=0, seq=5), reach)
    assert not is_live(Position(timeline=0, seq=6), reach)
    assert is_live(Position(timeline=1, seq=7), reach)


def test_a_line_that_does_not_lead_here_does_not_count() -> None:
    forks = [
        Fork(timeline=1, start=Position(timeline=0, seq=5)),
        Fork(timeline=2, start=Position(timeline=0, seq=3)),
    ]

    assert lineage(2, forks) == {2: None, 0: 3}
    assert not is_live(Position(timeline=1, seq=1), lineage(2, forks))


def test_the_tree_keeps_the_order_in_which_decisions_were_made() -> None:
    root, first, second = a_decision(1, None), a_decision(2, 1), a_decision(3, 1)

    assert children_of([root, first, second]) == {None: [root], root.decision_id: [first, second]}


def a_decision(number: int, parent: int | None) -> Decision:
    return Decision(
        decision_id=DecisionId(ulid(number)),
        plan_id=PlanId(PLAN),
        parent_id=None if parent is None else DecisionId(ulid(parent)),
        position=Position(timeline=0, seq=number),
        type=DecisionType.TOOL_INVOCATION,
        question="",
        chosen="",
        phase="execute",
        step_index=None,
        attempt=1,
        created_at=NOW,
    )
