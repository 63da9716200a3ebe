"""Whose output a step used, judged from what it read and what it changed."""

from domain_builders import ulid
from hypothesis import given
from hypothesis import strategies as st

from cleveragents.domain.footprint import (
    EVERYTHING,
    HIDDEN,
    NO_REACH,
    UNDECLARED,
    UNKNOWN,
    Footprint,
    Reach,
    StepWrites,
    Touched,
    Writers,
    doubt,
    parents,
)
from cleveragents.domain.ids import DecisionId

ONE, TWO, THREE = (DecisionId(ulid(number)) for number in (1, 2, 3))
PATHS = st.sampled_from(["a", "b", "a/b", "a/b/c", "a/d", "ab", "b/a"])
FOOTPRINTS = st.builds(
    Footprint, paths=st.frozensets(PATHS, max_size=3), whole=st.sampled_from([False] * 5 + [True])
)
TOUCHED = st.dictionaries(st.sampled_from(["code", "db"]), FOOTPRINTS, max_size=2)
READS = st.dictionaries(
    st.sampled_from(["code", "db"]),
    st.lists(PATHS | st.just(EVERYTHING), max_size=2).map(tuple),
    max_size=2,
)


def changed(*paths: str) -> dict[str, Footprint]:
    return {"code": Footprint(paths=frozenset(paths))}


def did(
    decision_id: DecisionId, touched: Touched, index: int | None = 0, reach: Reach = NO_REACH
) -> StepWrites:
    return StepWrites(
        decision_id=decision_id, step_index=index, seq=0, touched=touched, reach=reach
    )


def overlap(one: str, two: str) -> bool:
    """The plain definition: the same, or one below the other."""
    return one == two or one.startswith(two + "/") or two.startswith(one + "/")


def touches(footprint: Footprint, path: str) -> bool:
    if path == EVERYTHING or footprint.whole:
        return bool(footprint)
    return any(overlap(path, known) for known in footprint.paths)


def meets(earlier: Footprint, later: Footprint) -> bool:
    if later.whole:
        return bool(earlier)
    return any(touches(earlier, path) for path in later.paths)


@given(st.lists(TOUCHED, max_size=6), TOUCHED, READS)
def test_every_step_whose_output_was_used_is_reached(
    history: list[dict[str, Footprint]],
    touched: dict[str, Footprint],
    reads: dict[str, tuple[str, ...]],
) -> None:
    """Directly, or over a step in between that had changed the same."""
    ids = [DecisionId(ulid(number)) for number in range(len(history))]
    writers = Writers()
    behind: dict[DecisionId, set[DecisionId]] = {}
    for decision_id, step in zip(ids, history, strict=True):
        behind[decision_id] = set(writers.behind(step, NO_REACH))
        writers.add(did(decision_id, step))

    found = writers.behind(touched, Reach(reads=reads))

    used = {
        decision_id
        for decision_id, step in zip(ids, history, strict=True)
        for resource, footprint in step.items()
        if any(touches(footprint, path) for path in reads.get(resource, ()))
        or meets(footprint, touched.get(resource, Footprint()))
    }
    assert set(found) <= used
    reached = set(found)
    for decision_id in reversed(ids):
        if decision_id in reached:
            reached |= behind[decision_id]
    assert used <= reached


def test_a_step_that_changes_a_path_depends_on_the_last_one_that_did() -> None:
    writers = Writers([did(ONE, changed("a")), did(TWO, changed("a", "b"))])

    assert writers.behind(changed("a"), NO_REACH) == {TWO: "changes code:a after it"}


def test_paths_that_only_look_alike_are_strangers() -> None:
    writers = Writers([did(ONE, changed("docs/a")), did(TWO, changed("docs-old"))])

    assert writers.behind(changed("docs/b", "doc"), Reach(reads={"code": ("docs/aa",)})) == {}


def test_reading_everything_uses_whatever_was_changed() -> None:
    writers = Writers([did(ONE, changed("a")), did(TWO, {"db": Footprint(whole=True)})])

    assert writers.behind({}, Reach(reads={"code": (EVERYTHING,)})) == {ONE: "reads code"}
    assert writers.behind({}, Reach(reads={"db": ("any",)})) == {TWO: "reads db:any"}


def test_what_was_to_be_written_counts_even_if_it_was_there_already() -> None:
    writers = Writers([did(ONE, changed("a")), did(TWO, changed("b"))])
    same = Reach(reads={}, targets={"code": ("a",)})

    assert writers.behind({}, same) == {ONE: "writes code:a after it"}
    assert writers.behind(changed("a"), same) == {ONE: "changes code:a after it"}


def test_a_folder_that_came_with_its_files_is_nobodys() -> None:
    made = {"code": Footprint(paths=frozenset({"new/a"}), folders=frozenset({"new"}))}

    assert Writers([did(ONE, made)]).behind(changed("new/b"), NO_REACH) == {}


def test_parents_come_from_the_nearest_on() -> None:
    assert list(parents("a/b/c")) == ["a/b", "a"]
    assert list(parents("a")) == []


def test_a_footprint_is_nothing_only_if_nothing_at_all_was_changed() -> None:
    assert not Footprint()
    for changed in (
        Footprint(whole=True),
        Footprint(paths=frozenset({"a"})),
        Footprint(folders=frozenset({"a"})),
    ):
        assert changed


# --- how far a step looks -----------------------------------------------------------------------

READS_A = Reach(reads={"code": ("a",)}, reads_hidden=False, writes_hidden=False)
NOBODY_SEES = Reach(reads={}, reads_hidden=False, writes_hidden=True)
LOOKS_OUT = Reach(reads={}, reads_hidden=True, writes_hidden=False)


def test_who_may_read_anything_may_have_used_whatever_was_left() -> None:
    assert doubt(UNKNOWN, did(ONE, changed("a"))) == UNDECLARED
    assert doubt(UNKNOWN, did(ONE, {}, reach=NOBODY_SEES)) == UNDECLARED
    assert doubt(UNKNOWN, did(ONE, {}, reach=READS_A)) is None
    assert doubt(UNKNOWN, did(ONE, {"code": Footprint()})) is None


def test_what_no_snapshot_shows_is_used_only_by_who_looks_there() -> None:
    assert doubt(LOOKS_OUT, did(ONE, {}, reach=NOBODY_SEES)) == HIDDEN
    assert doubt(LOOKS_OUT, did(ONE, changed("a"))) is None
    assert doubt(READS_A, did(ONE, {}, reach=NOBODY_SEES)) is None


def test_two_reach_as_far_as_either_does() -> None:
    both = READS_A.joined(Reach(reads={"code": ("b",), "db": (EVERYTHING,)}, reads_hidden=False))

    assert both.reads == {"code": ("a", "b"), "db": (EVERYTHING,)}
    assert (both.reads_hidden, both.writes_hidden) == (False, True)
    assert NO_REACH.joined(READS_A) == READS_A
    assert READS_A.joined(UNKNOWN) == UNKNOWN
    assert NO_REACH.joined(LOOKS_OUT) == LOOKS_OUT
    told = Reach(targets={"code": ("a",), "db": ("x",)}).joined(Reach(targets={"code": ("b",)}))
    assert told.targets == {"code": ("a", "b"), "db": ("x",)}


def overtaken(mine: StepWrites, later: StepWrites, *, unproven: bool = True) -> str | None:
    return Writers([mine, later]).overtaken(mine.decision_id, unproven=unproven)


def test_a_step_is_overtaken_by_one_before_it_that_changed_later_what_it_had_used() -> None:
    mine = did(TWO, changed("b"), 1, READS_A)

    assert overtaken(mine, did(ONE, changed("a"), 0)) == "reads code:a"
    assert overtaken(mine, did(ONE, changed("b/c"), 0)) == "changes code:b after it"
    assert overtaken(mine, did(ONE, changed("a"), 2)) is None, "it comes after it anyway"
    assert overtaken(mine, did(ONE, changed("c"), 0)) is None
    assert Writers([did(ONE, changed("a"), 0), mine]).overtaken(TWO) is None, "it ran before it"
    assert Writers().overtaken(TWO) is None


def test_a_step_that_a_person_kept_is_overtaken_only_by_what_is_proven() -> None:
    mine = did(TWO, changed("b"), 1, UNKNOWN)

    assert overtaken(mine, did(ONE, changed("a"), 0)) == UNDECLARED
    assert overtaken(mine, did(ONE, changed("a"), 0), unproven=False) is None
    assert overtaken(mine, did(ONE, changed("b"), 0), unproven=False) is not None
    assert overtaken(mine, did(ONE, {}, 0)) is None


def test_only_the_last_time_that_a_step_ran_counts() -> None:
    mine = did(TWO, {}, 1, READS_A)

    assert Writers([mine, did(ONE, changed("a"), 0), mine]).overtaken(TWO) is None


def test_of_several_that_ran_late_only_those_before_it_overtake_a_step() -> None:
    mine, far = did(TWO, {}, 1, READS_A), did(THREE, {}, 2)

    assert Writers([mine, far, did(ONE, changed("a"), 1)]).overtaken(TWO) is None, "beside it"
    assert Writers([mine, far, did(ONE, changed("a"), 0)]).overtaken(TWO) == "reads code:a"


def test_what_is_no_step_comes_before_none_and_after_none() -> None:
    nowhere, late = did(TWO, changed("a"), None, READS_A), did(ONE, changed("a"), 0)

    assert Writers([nowhere, did(THREE, {}, 2), late]).overtaken(TWO) is None
    mine = did(TWO, {}, 1, READS_A)
    assert Writers([mine, did(THREE, {}, 2), did(ONE, changed("a"), None)]).overtaken(TWO) is None


def test_who_changes_all_of_a_resource_depends_on_everybody_who_changed_something_there() -> None:
    known = Writers([did(ONE, changed("a")), did(TWO, changed("b"))])

    assert known.behind({"code": Footprint(whole=True)}, NO_REACH) == {
        ONE: "changes code after it",
        TWO: "changes code after it",
    }


def test_unless_a_person_kept_it_a_step_that_may_read_anything_is_overtaken() -> None:
    mine = did(TWO, {}, 1, UNKNOWN)

    assert Writers([mine, did(ONE, changed("a"), 0)]).overtaken(TWO) == UNDECLARED
