"""What a correction takes back: compared with the plain definition, and example by example."""

from dataclasses import replace

from domain_builders import NOW, PLAN, ulid
from hypothesis import given
from hypothesis import strategies as st

from cleveragents.domain.correction import (
    Correction,
    CorrectionMode,
    CorrectionStatus,
    Deed,
    History,
    Supersession,
    superseded_decisions,
)
from cleveragents.domain.decision import (
    Decision,
    DecisionType,
    Dependency,
    Fork,
    Position,
    lineage,
)
from cleveragents.domain.footprint import Footprint, Touched
from cleveragents.domain.ids import CorrectionId, DecisionId


def number(value: int) -> DecisionId:
    return DecisionId(ulid(value))


def decided(value: int, parent: int | None = 0, timeline: int = 0) -> Decision:
    return Decision(
        decision_id=number(value),
        plan_id=PLAN,
        parent_id=None if parent is None else number(parent),
        position=Position(timeline=timeline, seq=value * 10),
        type=DecisionType.TOOL_INVOCATION,
        question="",
        chosen="",
        phase="execute",
        step_index=value,
        attempt=1,
        created_at=NOW,
    )


def uses(later: int, earlier: int) -> Dependency:
    return Dependency(decision_id=number(later), depends_on=number(earlier), why="")


def did(value: int, **touched: Footprint) -> Deed:
    return Deed(decision_id=number(value), step_index=value, seq=value * 10 + 5, touched=touched)


def history(
    decisions: list[Decision], dependencies: list[Dependency], deeds: list[Deed]
) -> History:
    return History(
        decisions=decisions,
        dependencies=dependencies,
        deeds={deed.decision_id: deed for deed in deeds},
    )


def paths(*names: str) -> Footprint:
    return Footprint(paths=frozenset(names))


WHOLE = Footprint(whole=True)
# A tree and a graph in which everything leads from an older to a younger decision.
SIZES = st.integers(min_value=2, max_value=12)


@st.composite
def histories(draw: st.DrawFn) -> tuple[History, int]:
    size = draw(SIZES)
    decisions = [decided(0, None)]
    decisions += [decided(n, draw(st.integers(0, n - 1))) for n in range(1, size)]
    pairs = st.tuples(st.integers(1, size - 1), st.integers(1, size - 1))
    edges = [uses(max(a, b), min(a, b)) for a, b in draw(st.lists(pairs, max_size=12)) if a != b]
    footprints = st.sampled_from([Footprint(), paths("a"), paths("b", "c"), WHOLE])
    touched = st.dictionaries(st.sampled_from(["code", "db"]), footprints, max_size=2)
    deeds = [did(n, **draw(touched)) for n in range(1, size)]
    return history(decisions, edges, deeds), draw(st.integers(1, size - 1))


def plainly(known: History, start: DecisionId, since: int) -> set[DecisionId]:
    """Add whatever must go too, over and over, until nothing changes."""
    found = {start}
    while True:
        more = {d.decision_id for d in known.decisions if d.parent_id in found}
        more |= {d.decision_id for d in known.dependencies if d.depends_on in found}
        whole = {
            resource
            for decision_id in found
            for resource, footprint in touched(known, decision_id).items()
            if footprint.whole
        }
        more |= {
            deed.decision_id
            for deed in known.deeds.values()
            if deed.seq > since and any(f for r, f in deed.touched.items() if r in whole)
        }
        if more <= found:
            return found
        found |= more


def touched(known: History, decision_id: DecisionId) -> Touched:
    return known.deeds[decision_id].touched if decision_id in known.deeds else {}


@given(histories())
def test_the_affected_set_is_what_the_plain_definition_says(drawn: tuple[History, int]) -> None:
    known, start = drawn
    since = start * 10

    affected = known.affected_by(number(start), since=since)

    assert affected.decisions == plainly(known, number(start), since)
    assert number(0) not in affected.decisions
    for resource, restored in affected.restored.items():
        others = [
            deed.touched[resource]
            for deed in known.deeds.values()
            if resource in deed.touched
            and deed.seq > since
            and deed.decision_id not in affected.decisions
        ]
        if restored is None:
            assert not any(others), "a resource goes back whole only with all who touched it"


def test_unrelated_steps_before_and_after_stay() -> None:
    known = history(
        [decided(0, None), decided(1), decided(2), decided(3), decided(4, 2)],
        [uses(3, 1)],
        [did(1, code=paths("a")), did(2, code=paths("b")), did(3, code=paths("c"))],
    )

    affected = known.affected_by(number(2), since=20)

    assert affected.decisions == {number(2), number(4)}
    assert affected.restored == {"code": ("b",)}


def test_a_chain_of_uses_goes_to_its_end() -> None:
    known = history(
        [decided(0, None), *(decided(n) for n in range(1, 6))],
        [uses(2, 1), uses(3, 2), uses(5, 3)],
        [did(n, code=paths(str(n))) for n in range(1, 6)],
    )

    affected = known.affected_by(number(1), since=10)

    assert affected.decisions == {number(n) for n in (1, 2, 3, 5)}
    assert affected.restored == {"code": ("1", "2", "3", "5")}


def test_a_resource_that_goes_back_whole_takes_all_along_that_touched_it_since() -> None:
    known = history(
        [decided(0, None), *(decided(n) for n in range(1, 5))],
        [uses(4, 2)],
        [
            did(1, code=paths("before")),
            did(2, code=paths("a")),
            did(3, code=paths("b"), docs=paths("c")),
            did(4, code=Footprint(paths=frozenset({"a"}), whole=True)),
        ],
    )

    affected = known.affected_by(number(2), since=20)

    assert affected.decisions == {number(2), number(3), number(4)}
    assert affected.restored == {"code": None, "docs": ("c",)}


def test_a_step_that_takes_two_resources_back_whole_takes_along_who_touched_or_used_either() -> (
    None
):
    known = history(
        [decided(0, None), *(decided(n) for n in range(1, 6))],
        [uses(2, 1)],
        [
            did(1, code=WHOLE, db=WHOLE),
            did(2, docs=paths("what it said")),
            did(3, code=paths("a")),
            did(4, db=WHOLE),
            did(5, docs=paths("another")),
        ],
    )

    affected = known.affected_by(number(1), since=10)

    assert affected.decisions == {number(n) for n in (1, 2, 3, 4)}
    assert affected.restored == {"code": None, "db": None, "docs": ("what it said",)}


def test_a_step_of_before_that_moment_takes_nobody_along() -> None:
    known = history(
        [decided(0, None), decided(1), decided(2)], [], [did(1, db=WHOLE), did(2, code=WHOLE)]
    )

    assert known.affected_by(number(1), since=99).decisions == {number(1)}


def test_what_happened_at_that_very_moment_is_part_of_the_state() -> None:
    known = history(
        [decided(0, None), decided(1), decided(2)], [], [did(1, db=WHOLE), did(2, db=WHOLE)]
    )

    assert known.affected_by(number(2), since=15).decisions == {number(2)}


def test_folders_that_came_with_their_files_are_named_apart() -> None:
    made = Footprint(paths=frozenset({"new/a"}), folders=frozenset({"new"}))
    known = history([decided(0, None), decided(1)], [], [did(1, code=made)])

    assert known.affected_by(number(1), since=10).restored == {"code": ("new/", "new/a")}


def test_dependencies_of_what_no_longer_counts_do_not_count() -> None:
    known = history([decided(0, None), decided(1), decided(3)], [uses(2, 1), uses(3, 2)], [])

    assert known.affected_by(number(1), since=10).decisions == {number(1)}


# --- what counts --------------------------------------------------------------------------------

BY = CorrectionId(ulid(90))


def replaced_at(value: int, seq: int, timeline: int = 0) -> Supersession:
    position = Position(timeline=timeline, seq=seq)
    return Supersession(decision_id=number(value), correction_id=BY, position=position)


def test_a_decision_is_gone_as_long_as_the_correction_of_it_counts() -> None:
    decisions = [decided(0, None), decided(1), decided(2)]
    gone = [replaced_at(1, seq=25)]

    now = superseded_decisions(decisions, gone, lineage(0, []))
    before_it = Fork(timeline=1, start=Position(timeline=0, seq=22))
    after_it = Fork(timeline=2, start=Position(timeline=0, seq=26))

    assert now == {number(1)}
    assert superseded_decisions(decisions, gone, lineage(1, [before_it])) == set()
    assert superseded_decisions(decisions, gone, lineage(2, [before_it, after_it])) == {number(1)}


def test_what_a_rollback_left_behind_is_gone_with_or_without_a_correction() -> None:
    decisions = [
        decided(0, None),
        decided(1),
        decided(3),
    ]
    fork = Fork(timeline=1, start=Position(timeline=0, seq=12))

    assert superseded_decisions(decisions, [], lineage(1, [fork])) == {number(3)}


def test_a_correction_is_about_what_it_corrects_what_it_adds_and_what_it_takes_back() -> None:
    correction = Correction(
        correction_id=BY,
        plan_id=PLAN,
        decision_id=number(1),
        mode=CorrectionMode.REVERT,
        guidance="",
        status=CorrectionStatus.PENDING,
        intervention_id=number(2),
        affected=(number(3), number(4)),
        created_at=NOW,
    )

    assert [n for n in range(6) if correction.is_about(number(n))] == [1, 2, 3, 4]
    assert correction.done() == replace(correction, status=CorrectionStatus.DONE)
    assert correction.abandoned() == replace(correction, status=CorrectionStatus.ABANDONED)
