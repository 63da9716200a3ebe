"""Whose output a step used, judged from what it read and what it changed."""

from domain_builders import ulid
from hypothesis import given
from hypothesis import strategies as st

from cleveragents.domain.footprint import EVERYTHING, Footprint, Writers, parents
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
        behind[decision_id] = set(writers.behind(step, {}))
        writers.add(decision_id, step)

    found = writers.behind(touched, reads)

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
    writers = Writers([(ONE, changed("a")), (TWO, changed("a", "b"))])

    assert writers.behind(changed("a"), {}) == {TWO: "changes code:a after it"}


def test_paths_that_only_look_alike_are_strangers() -> None:
    writers = Writers([(ONE, changed("docs/a")), (TWO, changed("docs-old"))])

    assert writers.behind(changed("docs/b", "doc"), {"code": ("docs/aa",)}) == {}


def test_reading_everything_uses_whatever_was_changed() -> None:
    writers = Writers([(ONE, changed("a")), (TWO, {"db": Footprint(whole=True)})])

    assert writers.behind({}, {"code": (EVERYTHING,)}) == {ONE: "reads code"}
    assert writers.behind({}, {"db": ("any",)}) == {TWO: "reads db:any"}


def test_a_folder_that_came_with_its_files_is_nobodys() -> None:
    made = {"code": Footprint(paths=frozenset({"new/a"}), folders=frozenset({"new"}))}

    assert Writers([(ONE, made)]).behind(changed("new/b"), {}) == {}


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
