"""What cannot be merged: how both sides look, what taking one comes to, and what is undone."""

import hashlib
from collections.abc import Mapping

import pytest

from cleveragents.domain.action import MergeStrategy
from cleveragents.domain.conflicts import LeftOut, Side
from cleveragents.domain.subplan import Conflict, ConflictKind
from cleveragents.infrastructure.files.entry import Entry, Kind, same_state
from cleveragents.infrastructure.merging.disputes import Dispute
from cleveragents.infrastructure.merging.path_merge import Answer, Merged, MergeTrees, PathMerge
from cleveragents.infrastructure.snapshots.tree.diff import PathDifference

Files = Mapping[str, str]


class Bench:
    """Trees given as files by path, `/` being a folder and `+x` an executable file. No two texts
    can be merged: what is of interest here begins where git has given up."""

    def __init__(self) -> None:
        self.contents: dict[bytes, bytes] = {}

    def tree(self, files: Files) -> dict[bytes, Entry]:
        return {path.encode(): self._entry(path.encode(), text) for path, text in files.items()}

    def _entry(self, path: bytes, content: str) -> Entry:
        if content == "/":
            return Entry(path=path, kind=Kind.DIR, mode=0o755)
        mode = 0o755 if content.startswith("+") else 0o644
        data = content.removeprefix("+").encode("latin-1")
        key = hashlib.sha256(data).digest()
        self.contents[key] = data
        return Entry(path=path, kind=Kind.FILE, mode=mode, size=len(data), hash=key)

    def merge(
        self,
        base: Files,
        ours: Files,
        theirs: Files,
        answer: Answer = None,
        began: Files | None = None,
        strategy: MergeStrategy = MergeStrategy.GIT_THREE_WAY,
    ) -> Merged:
        old, mine, new = self.tree(base), self.tree(ours), self.tree(theirs)
        first = None if began is None else self.tree(began)
        trees = MergeTrees(
            changes=_changes(old, new),
            our_changes=lambda: _changes(old, mine),
            ours=mine.get,
            below=lambda folder: [path for path in mine if path.startswith(folder + b"/")],
            folder=lambda path: Entry(path=path, kind=Kind.DIR, mode=0o755),
            content=lambda entry: self.contents[entry.hash],
            began=None if first is None else first.get,
        )
        return PathMerge(trees, strategy, lambda *_: None, 1, lambda _: answer).run()

    def result(self, ours: Files, merged: Merged) -> dict[str, str]:
        now: dict[bytes, Entry | None] = {**self.tree(ours), **merged.wanted}
        known = {**self.contents, **merged.contents}
        return {path.decode(): _shown(entry, known) for path, entry in now.items() if entry}


def _shown(entry: Entry, known: Mapping[bytes, bytes]) -> str:
    if entry.kind is Kind.DIR:
        return "/"
    plus = "+" if entry.mode == 0o755 else ""
    return plus + known[entry.hash].decode("latin-1")


def _changes(old: Mapping[bytes, Entry], new: Mapping[bytes, Entry]) -> list[PathDifference]:
    compared = [PathDifference(path, old.get(path), new.get(path)) for path in sorted({*old, *new})]
    return [item for item in compared if not same_state(item.old, item.new)]


@pytest.fixture
def bench() -> Bench:
    return Bench()


BASE = {"f": "1\n2\n3\n4\n5\n"}
OURS = {"f": "1\ntwo\n3\n4\n5\n"}
THEIRS = {"f": "1\nII\n3\n4\nV\n"}


def told(merged: Merged) -> Conflict:
    (found,) = merged.conflicts
    return found.told("code")


# --- told ---------------------------------------------------------------------------------------


def test_both_sides_of_a_text_are_told_where_they_disagree(bench: Bench) -> None:
    conflict = told(bench.merge(BASE, OURS, THEIRS))

    assert (conflict.kind, conflict.editable, conflict.more) == (ConflictKind.CONTENT, True, 0)
    (hunk,) = conflict.hunks
    assert (hunk.line, hunk.base, hunk.ours, hunk.theirs) == (2, ("2",), ("two",), ("II",))
    assert conflict.ours == "a file of 12 bytes, mode 644"


def test_what_was_decided_is_known_again_as_long_as_both_sides_are_the_same(bench: Bench) -> None:
    conflict = told(bench.merge(BASE, OURS, THEIRS))

    assert conflict.is_as(told(bench.merge(BASE, OURS, THEIRS)))
    for files in ({"f": "1\ntwo\n3\n4\n5\nsix\n"}, {"f": "+1\ntwo\n3\n4\n5\n"}):
        assert not conflict.is_as(told(bench.merge(BASE, files, THEIRS)))


def test_many_and_long_places_are_cut_and_counted(bench: Bench) -> None:
    base = {"f": "".join(f"{n}\nsame\nsame\n" for n in range(30))}
    ours = {"f": base["f"].replace("7\n", "o" * 500 + "\n" + "x\n" * 50)}
    theirs = {"f": "".join(f"t{n}\nsame\nsame\n" for n in range(30))}

    conflict = told(bench.merge(base, ours, theirs))
    assert len(conflict.hunks) + conflict.more == 3
    (first, *_) = conflict.hunks
    assert len(first.ours) == 21
    assert first.ours[-1].startswith("…")
    assert len(first.ours[0]) == 200

    everything = {"f": "".join(f"o{n}\nsame\nsame\n" for n in range(30))}
    many = told(bench.merge(base, everything, theirs))
    assert (len(many.hunks), many.more) == (10, 20)


def test_a_draft_has_both_sides_and_marks(bench: Bench) -> None:
    (dispute,) = bench.merge(BASE, OURS, {"f": "1\nII\n3\n4\n5"}).conflicts

    draft = dispute.draft or b""
    assert b"<<<<<<< ours\ntwo\n=======\nII\n>>>>>>> theirs\n" in draft


# --- a side is taken ----------------------------------------------------------------------------


def test_a_side_wins_only_where_they_disagree(bench: Bench) -> None:
    ours = bench.merge(BASE, OURS, THEIRS, Side.OURS)
    assert bench.result(OURS, ours) == {"f": "1\ntwo\n3\n4\nV\n"}
    assert ours.left_out == [LeftOut(path="f", side=Side.THEIRS, lines=("II",), count=1)]

    theirs = bench.merge(BASE, OURS, THEIRS, Side.THEIRS)
    assert bench.result(OURS, theirs) == {"f": "1\nII\n3\n4\nV\n"}
    assert theirs.left_out == [LeftOut(path="f", side=Side.OURS, lines=("two",), count=1)]
    assert ours.conflicts == theirs.conflicts == []


def test_a_text_of_ones_own_is_taken_as_it_is(bench: Bench) -> None:
    merged = bench.merge(BASE, {"f": "+1\ntwo\n3\n4\n5\n"}, THEIRS, b"mine\n")

    assert bench.result(OURS, merged) == {"f": "+mine\n"}, "the mode that one side changed stays"


def test_lines_that_git_cannot_tell_apart_are_disputed_altogether(bench: Bench) -> None:
    base, ours, theirs = {"f": "1\n2\n"}, {"f": "one\n2\n"}, {"f": "1\ntwo\n"}

    assert [hunk.ours for hunk in told(bench.merge(base, ours, theirs)).hunks] == [("one", "2")]
    assert bench.result(ours, bench.merge(base, ours, theirs, Side.THEIRS)) == theirs


def test_two_files_that_both_made_are_one_or_the_other(bench: Bench) -> None:
    ours, theirs = {"n": "a\nb\nc\n"}, {"n": "a\nX\nc\n"}

    assert told(bench.merge({}, ours, theirs)).kind is ConflictKind.CREATE
    for side, wanted in ((Side.OURS, ours), (Side.THEIRS, theirs)):
        assert bench.result(ours, bench.merge({}, ours, theirs, side)) == wanted


def test_who_goes_one_after_the_other_disputes_the_whole_file(bench: Bench) -> None:
    apart = {"f": "1\n2\n3\n4\nfive\n"}
    strategy = MergeStrategy.SEQUENTIAL_APPLY

    for side, wanted in ((Side.OURS, OURS), (Side.THEIRS, apart)):
        merged = bench.merge(BASE, OURS, apart, side, strategy=strategy)
        assert bench.result(OURS, merged) == wanted


def test_two_modes_are_one_or_the_other_with_the_file(bench: Bench) -> None:
    dispute = Dispute(
        path=b"f",
        kind=ConflictKind.CONTENT,
        base=Entry(path=b"f", kind=Kind.FILE, mode=0o644),
        ours=Entry(path=b"f", kind=Kind.FILE, mode=0o600),
        theirs=Entry(path=b"f", kind=Kind.FILE, mode=0o755),
    )

    assert dispute.told("code").theirs == "a file of 0 bytes, mode 755"
    assert not dispute.told("code").editable


@pytest.mark.parametrize(
    ("ours", "theirs", "kind"),
    [
        ({}, {"f": "x\n"}, ConflictKind.DELETE),
        ({"f": "x\n"}, {}, ConflictKind.DELETE),
        ({"f": "x\0"}, {"f": "y\0"}, ConflictKind.BINARY),
        ({"f": "/", "f/i": "x"}, {"f": "y\n"}, ConflictKind.CONTENT),
        ({"f": "y\n"}, {"f": "/", "f/i": "x"}, ConflictKind.CONTENT),
    ],
)
def test_what_is_no_text_is_one_side_or_the_other(
    bench: Bench, ours: Files, theirs: Files, kind: ConflictKind
) -> None:
    undecided = bench.merge(BASE, ours, theirs).conflicts
    assert kind in [found.kind for found in undecided]
    assert all(found.draft is None for found in undecided)

    for side, wanted in ((Side.OURS, ours), (Side.THEIRS, theirs)):
        assert bench.result(ours, bench.merge(BASE, ours, theirs, side)) == wanted


LONG = "".join(f"{n}\n" for n in range(20))


def test_of_a_move_and_a_change_that_do_not_fit_either_is_taken(bench: Bench) -> None:
    base, moved = {"f": LONG}, {"g": LONG.replace("7\n", "seven\n")}
    changed = {"f": LONG.replace("7\n", "VII\n")}

    for ours, theirs in ((moved, changed), (changed, moved)):
        assert told(bench.merge(base, ours, theirs)).kind is ConflictKind.RENAME
        for side, wanted in ((Side.OURS, ours), (Side.THEIRS, theirs)):
            assert bench.result(ours, bench.merge(base, ours, theirs, side)) == wanted


# --- what is undone -----------------------------------------------------------------------------


def again(bench: Bench, theirs: Files, answer: Answer = None, began: Files = BASE) -> Merged:
    """By a child that began anew on top of ours."""
    return bench.merge(OURS, OURS, theirs, answer, began)


def test_a_child_that_began_anew_and_undoes_what_was_merged_conflicts(bench: Bench) -> None:
    conflict = told(again(bench, THEIRS))

    assert conflict.kind is ConflictKind.OVERWRITE
    assert [(hunk.ours, hunk.theirs) for hunk in conflict.hunks] == [(("two",), ("II",))]
    assert bench.merge(OURS, OURS, THEIRS).conflicts == [], "the first time it is its own"


def test_one_that_writes_what_was_there_before_conflicts_too(bench: Bench) -> None:
    old = {"f": "1\n2\n3\n4\nV\n"}

    assert told(again(bench, old)).kind is ConflictKind.OVERWRITE
    assert bench.result(OURS, again(bench, old, Side.OURS)) == {"f": "1\ntwo\n3\n4\nV\n"}
    assert bench.result(OURS, again(bench, old, Side.THEIRS)) == old


def test_one_that_leaves_it_alone_or_adds_to_it_does_not(bench: Bench) -> None:
    for theirs in ({"f": "1\ntwo\n3\n4\nV\n"}, {"f": "1\ntwo\nmore\n3\n4\n5\n"}):
        merged = again(bench, theirs)
        assert merged.conflicts == []
        assert bench.result(OURS, merged) == theirs


def test_what_nobody_had_changed_since_is_the_childs(bench: Bench) -> None:
    assert again(bench, THEIRS, began=OURS).conflicts == []


def test_deleting_or_bringing_back_what_others_changed_is_undoing(bench: Bench) -> None:
    assert told(again(bench, {})).theirs == "deleted"
    brought = bench.merge({}, {}, {"f": "x\n"}, began=BASE)
    assert (told(brought).kind, told(brought).ours) == (ConflictKind.OVERWRITE, "deleted")


def test_of_what_is_no_text_any_change_is_undoing(bench: Bench) -> None:
    mine, new, old = {"f": "m\0"}, {"f": "n\0"}, {"f": "o\0"}

    assert bench.merge(mine, mine, new, began=old).conflicts != []
    assert bench.merge(mine, mine, new, began=mine).conflicts == []


def test_a_mode_counts_by_itself(bench: Bench) -> None:
    plain, executable = {"f": "x\n"}, {"f": "+x\n"}

    assert bench.merge(executable, executable, plain, began=plain).conflicts != []
    changed = bench.merge(executable, executable, {"f": "+y\n"}, began=plain)
    assert changed.conflicts == [], "only the mode was somebody else's"
    assert bench.merge(executable, executable, {"f": "y\n"}, began=plain).conflicts != []


def test_the_last_wins_whatever_it_undoes_and_says_so(bench: Bench) -> None:
    merged = bench.merge(BASE, OURS, THEIRS, strategy=MergeStrategy.LAST_WINS)

    assert bench.result(OURS, merged) == THEIRS
    assert merged.left_out == [LeftOut(path="f", side=Side.OURS)]
