"""What a correction takes back: compared with the plain definition, and example by example."""

from domain_builders import NOW, PLAN, ulid
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from cleveragents.domain.affected import AffectedSet, History, Reason
from cleveragents.domain.decision import (
    Decision,
    DecisionType,
    Dependency,
    Position,
)
from cleveragents.domain.footprint import (
    HIDDEN,
    NO_REACH,
    UNDECLARED,
    UNKNOWN,
    Footprint,
    Reach,
    StepWrites,
    Touched,
    doubt,
)
from cleveragents.domain.ids import DecisionId


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


def did(value: int, reach: Reach = NO_REACH, /, **touched: Footprint) -> StepWrites:
    return StepWrites(
        decision_id=number(value),
        step_index=value,
        seq=value * 10 + 5,
        touched=touched,
        reach=reach,
    )


def history(
    decisions: list[Decision], dependencies: list[Dependency], deeds: list[StepWrites]
) -> History:
    return History(
        decisions=decisions,
        dependencies=dependencies,
        deeds={deed.decision_id: deed for deed in deeds},
    )


def paths(*names: str) -> Footprint:
    return Footprint(paths=frozenset(names))


WHOLE = Footprint(whole=True)
OPEN = Reach(reads={}, reads_hidden=True, writes_hidden=True)
# A tree and a graph in which everything leads from an older to a younger decision.
SIZES = st.integers(min_value=2, max_value=12)


@st.composite
def histories(draw: st.DrawFn) -> tuple[History, int, set[DecisionId]]:
    size = draw(SIZES)
    decisions = [decided(0, None)]
    decisions += [decided(n, draw(st.integers(0, n - 1))) for n in range(1, size)]
    pairs = st.tuples(st.integers(1, size - 1), st.integers(1, size - 1))
    edges = [uses(max(a, b), min(a, b)) for a, b in draw(st.lists(pairs, max_size=12)) if a != b]
    footprints = st.sampled_from([Footprint(), paths("a"), paths("b", "c/d"), paths("c"), WHOLE])
    touched = st.dictionaries(st.sampled_from(["code", "db"]), footprints, max_size=2)
    reaches = st.sampled_from([NO_REACH, NO_REACH, OPEN, UNKNOWN])
    deeds = [did(n, draw(reaches), **draw(touched)) for n in range(1, size)]
    keep = draw(st.sets(st.integers(1, size - 1).map(number)))
    return history(decisions, edges, deeds), draw(st.integers(1, size - 1)), keep


def plainly(
    known: History, start: DecisionId, since: int, keep: set[DecisionId]
) -> set[DecisionId]:
    """Add whatever must go too, over and over, until nothing changes."""
    found = {start}
    while True:
        more = {d.decision_id for d in known.decisions if d.parent_id in found}
        more |= {d.decision_id for d in known.dependencies if d.depends_on in found}
        more |= {
            deed.decision_id
            for deed in known.deeds.values()
            for gone in found
            if deed.seq > since and is_lost(deed.touched, touched(known, gone))
        }
        more |= {
            deed.decision_id
            for deed in known.deeds.values()
            for gone in found
            if deed.decision_id not in keep
            and gone < deed.decision_id
            and (
                doubt(deed.reach, known.deeds[gone]) or (gone == start and deed.reach.reads is None)
            )
        }
        if more <= found:
            return found
        found |= more


def is_lost(mine: Touched, gone: Touched) -> bool:
    """Whether nothing is left of some change once the other goes back."""
    for resource, footprint in gone.items():
        other = mine.get(resource, Footprint())
        below = any(p == q or p.startswith(f"{q}/") for p in other.paths for q in footprint.paths)
        if (footprint.whole and other) or below:
            return True
    return False


def touched(known: History, decision_id: DecisionId) -> Touched:
    return known.deeds[decision_id].touched if decision_id in known.deeds else {}


@given(histories())
def test_the_affected_set_is_what_the_plain_definition_says(
    drawn: tuple[History, int, set[DecisionId]],
) -> None:
    known, start, keep = drawn
    since = start * 10

    affected = known.affected_by(number(start), since=since, keep=keep)

    assert affected.decisions.keys() == plainly(known, number(start), since, keep)
    assert number(0) not in affected.decisions
    assert affected.kept.keys() <= keep - affected.decisions.keys()
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
        else:
            gone = {resource: Footprint(paths=frozenset(restored))}
            assert not any(is_lost({resource: other}, gone) for other in others)


def test_unrelated_steps_before_and_after_stay() -> None:
    known = history(
        [decided(0, None), decided(1), decided(2), decided(3), decided(4, 2)],
        [uses(3, 1)],
        [did(1, code=paths("a")), did(2, code=paths("b")), did(3, code=paths("c"))],
    )

    affected = known.affected_by(number(2), since=20)

    assert affected.decisions.keys() == {number(2), number(4)}
    assert affected.restored == {"code": ("b",)}


def test_a_chain_of_uses_goes_to_its_end() -> None:
    known = history(
        [decided(0, None), *(decided(n) for n in range(1, 6))],
        [uses(2, 1), uses(3, 2), uses(5, 3)],
        [did(n, code=paths(str(n))) for n in range(1, 6)],
    )

    affected = known.affected_by(number(1), since=10)

    assert affected.decisions.keys() == {number(n) for n in (1, 2, 3, 5)}
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

    assert affected.decisions.keys() == {number(2), number(3), number(4)}
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

    assert affected.decisions.keys() == {number(n) for n in (1, 2, 3, 4)}
    assert affected.restored == {"code": None, "db": None, "docs": ("what it said",)}


def test_a_step_of_before_that_moment_takes_nobody_along() -> None:
    known = history(
        [decided(0, None), decided(1), decided(2)], [], [did(1, db=WHOLE), did(2, code=WHOLE)]
    )

    assert known.affected_by(number(1), since=99).decisions.keys() == {number(1)}


def test_what_happened_at_that_very_moment_is_part_of_the_state() -> None:
    known = history(
        [decided(0, None), decided(1), decided(2)], [], [did(1, db=WHOLE), did(2, db=WHOLE)]
    )

    assert known.affected_by(number(2), since=15).decisions.keys() == {number(2)}


def test_folders_that_came_with_their_files_are_named_apart() -> None:
    made = Footprint(paths=frozenset({"new/a"}), folders=frozenset({"new"}))
    known = history([decided(0, None), decided(1)], [], [did(1, code=made)])

    assert known.affected_by(number(1), since=10).restored == {"code": ("new/", "new/a")}


def test_dependencies_of_what_no_longer_counts_do_not_count() -> None:
    known = history([decided(0, None), decided(1), decided(3)], [uses(2, 1), uses(3, 2)], [])

    assert known.affected_by(number(1), since=10).decisions.keys() == {number(1)}


# --- what is not proven -------------------------------------------------------------------------


def chain(*deeds: StepWrites, keep: tuple[int, ...] = ()) -> AffectedSet:
    """Of steps one after the other, the first of which is corrected."""
    decisions = [decided(0, None), *(decided(n) for n in range(1, len(deeds) + 1))]
    return history(decisions, [], list(deeds)).affected_by(
        number(1), since=10, keep=[number(n) for n in keep]
    )


def test_who_may_read_anything_goes_whatever_the_corrected_step_had_done() -> None:
    affected = chain(did(1), did(2), did(3, UNKNOWN, code=paths("x")))

    assert affected.decisions.keys() == {number(1), number(3)}
    assert affected.decisions[number(3)].why == UNDECLARED
    assert affected.decisions[number(3)].source == number(1)
    assert not affected.decisions[number(3)].proven
    assert affected.restored == {"code": ("x",)}


def test_who_looks_at_what_nobody_sees_goes_with_who_may_have_changed_that() -> None:
    affected = chain(did(1, OPEN), did(2, OPEN), did(3))

    assert affected.decisions.keys() == {number(1), number(2)}
    assert affected.decisions[number(2)].why == HIDDEN
    assert chain(did(1), did(2, OPEN)).decisions.keys() == {number(1)}


def test_steps_before_the_corrected_one_are_not_asked() -> None:
    known = history(
        [decided(0, None), decided(1), decided(2)], [], [did(1, UNKNOWN), did(2, UNKNOWN)]
    )

    assert known.affected_by(number(2), since=20).decisions.keys() == {number(2)}


def test_a_change_that_would_be_lost_is_made_again_and_who_made_it_is_told_why() -> None:
    affected = chain(did(1), did(2, code=paths("b")), did(3, UNKNOWN, code=paths("b")))

    assert affected.decisions.keys() == {number(1), number(2), number(3)}
    assert affected.decisions[number(2)].why == "changed code:b, which goes back"
    assert affected.decisions[number(2)].proven


def test_a_folder_that_goes_back_takes_along_who_changed_something_in_it() -> None:
    affected = chain(did(1, code=paths("d")), did(2, code=paths("d/e")), did(3, code=paths("dd")))

    assert affected.decisions.keys() == {number(1), number(2)}
    above = chain(did(1, code=paths("d/e")), did(2, code=paths("d")))
    assert above.decisions.keys() == {number(1)}


def test_a_step_that_a_person_keeps_stays_and_so_does_what_only_it_takes_along() -> None:
    deeds = (did(1), did(2, UNKNOWN, code=paths("b")), did(3, code=paths("b")))

    affected = chain(*deeds, keep=(2,))

    assert affected.decisions.keys() == {number(1)}
    assert affected.kept.keys() == {number(2)}
    assert affected.kept[number(2)].why == UNDECLARED
    assert affected.restored == {}


def test_what_is_proven_to_depend_cannot_be_kept() -> None:
    deeds = (did(1, code=paths("a")), did(2, UNKNOWN, code=paths("a")))

    affected = chain(*deeds, keep=(2,))

    assert affected.decisions.keys() == {number(1), number(2)}
    assert affected.decisions[number(2)].proven
    assert affected.kept == {}


def test_each_that_goes_is_told_why_because_of_which_and_whether_that_is_proven() -> None:
    used = Dependency(decision_id=number(3), depends_on=number(1), why="reads code:a")
    deeds = [did(1, code=paths("a"), db=WHOLE), did(4, code=paths("a")), did(5, db=paths("x"))]
    decisions = [decided(0, None), decided(1), decided(2, 1), *map(decided, range(3, 7))]

    affected = history(decisions, [used], [*deeds, did(6, UNKNOWN)]).affected_by(
        number(1), since=10
    )

    by = number(1)
    assert affected.decisions == {
        by: Reason(why="is corrected"),
        number(2): Reason(why="was made because of it", source=by),
        number(3): Reason(why="reads code:a", source=by),
        number(4): Reason(why="changed code:a, which goes back", source=by),
        number(5): Reason(why="changed db, which goes back whole", source=by),
        number(6): Reason(why=UNDECLARED, source=by, proven=False),
    }


def test_who_is_kept_and_what_went_before_keep_nobody_else() -> None:
    kept = chain(did(1), did(2, UNKNOWN), did(3, UNKNOWN), keep=(2,))
    assert (kept.decisions.keys(), kept.kept.keys()) == ({number(1), number(3)}, {number(2)})

    again = [
        did(2, code=paths("a", *"bcdef")),
        *(did(3 + n, code=paths("bcdef"[n])) for n in range(5)),
    ]
    assert len(chain(did(1, code=paths("a")), *again).decisions) == 7


def test_files_that_nobody_has_changed_since_take_nobody_along() -> None:
    deeds = [did(1, code=paths("a")), did(2, code=paths("b"))]
    known = history([decided(1, None), decided(2, None)], [], deeds)

    assert known.affected_by(number(1), since=20).decisions.keys() == {number(1)}


def test_only_steps_after_the_corrected_one_may_have_used_what_it_did() -> None:
    unsure = Reach(reads=None, reads_hidden=False, writes_hidden=False)
    decisions = [decided(1, None), decided(2, None)]
    start = number(1)

    def goes(first: Decision, *deeds: StepWrites) -> bool:
        known = history([first, decisions[1]], [], list(deeds))
        return number(2) in known.affected_by(start, since=0).decisions

    assert goes(decisions[0], did(2, unsure)), "whoever takes its place may change anything"
    assert goes(decisions[0], did(1), did(2, unsure))
    assert not goes(decisions[0], did(1), replace(did(2, unsure), step_index=1)), "the same step"
    assert not goes(decisions[0], did(1), replace(did(2, unsure), step_index=None))
    assert not goes(replace(decisions[0], step_index=None), did(1), did(2, unsure)), "no step"
