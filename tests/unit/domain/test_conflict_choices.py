"""The two sides of a conflict: how they are told, and what a person has decided about which."""

import pytest
from domain_builders import OTHER_PLAN, PLAN

from cleveragents.domain.conflicts import (
    MOST_HUNKS,
    UNDECIDED,
    Choice,
    ConflictKey,
    Hunk,
    Loss,
    Resolution,
    Side,
    chosen,
    hunks_of,
    shown_lines,
)
from cleveragents.domain.errors import UsageError
from cleveragents.domain.threeway import Region

PAGE: ConflictKey = (PLAN, "docs", "guide/page.md")
OTHER: ConflictKey = (PLAN, "docs", "guide/other.md")
CODE: ConflictKey = (OTHER_PLAN, "code", "guide/page.md")
OURS, THEIRS, EDIT = Choice.OURS, Choice.THEIRS, Choice.EDIT


# --- told ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lines", "shown"),
    [
        ([], ()),
        ([b"plain\n", b" ends so \r\n", b""], ("plain", " ends so ", "")),
        ([b"\n\rthis \xff\xc3\xbc\n"], ("\n\rthis \\xffü",)),
        ([b"x" * 200 + b"\n"], ("x" * 200,)),
        ([b"x" * 201], ("x" * 199 + "…",)),
        ([b"line"] * 20, ("line",) * 20),
        ([b"line"] * 21, ("line",) * 20 + ("… 1 more lines",)),
        ([b"line"] * 30, ("line",) * 20 + ("… 10 more lines",)),
    ],
)
def test_lines_are_text_for_people_and_long_ones_are_cut(
    lines: list[bytes], shown: tuple[str, ...]
) -> None:
    assert shown_lines(lines) == shown


def region(line: int, *, disputed: bool = True) -> Region:
    return Region(line=line, base=(b"b\n",), ours=(b"o\n",), theirs=(b"t\n",), disputed=disputed)


def test_only_what_is_disputed_is_told_and_only_so_much_of_it() -> None:
    regions = [region(line, disputed=line != 2) for line in range(1, 20)]

    hunks = hunks_of(regions)

    assert hunks[0] == Hunk(line=1, base=("b",), ours=("o",), theirs=("t",))
    assert [hunk.line for hunk in hunks] == [1, *range(3, MOST_HUNKS + 2)]


@pytest.mark.parametrize(
    ("count", "what"), [(0, "what is"), (1, "1 line"), (2, "2 lines"), (30, "30 lines")]
)
def test_what_a_choice_has_lost_is_told_in_words(count: int, what: str) -> None:
    loss = Loss(resource="docs", path="page.md", whose="en", count=count)

    assert str(loss) == f"docs:page.md ({what} of en)"


# --- decided ------------------------------------------------------------------------------------


def test_a_text_of_ones_own_counts_before_a_side_and_that_before_the_side_for_all() -> None:
    said = Resolution(
        side=Side.OURS, sides={PAGE: Side.THEIRS, CODE: Side.THEIRS}, edited={CODE: b"x"}
    )

    assert said.answer(*CODE) == b"x"
    assert said.answer(*PAGE) is Side.THEIRS
    assert said.answer(*OTHER) is Side.OURS
    assert UNDECIDED.answer(*PAGE) is None


@pytest.mark.parametrize(
    ("said", "something"),
    [
        (UNDECIDED, False),
        (Resolution(side=Side.OURS), True),
        (Resolution(sides={PAGE: Side.OURS}), True),
        (Resolution(edited={PAGE: b""}), True),
    ],
)
def test_whoever_has_said_one_thing_has_decided(said: Resolution, *, something: bool) -> None:
    assert bool(said) is something


@pytest.mark.parametrize(
    ("named", "found"),
    [
        ([], {}),
        ([("guide/other.md", OURS)], {OTHER: OURS}),
        ([("guide/page.md", OURS)], {PAGE: OURS, CODE: OURS}),
        ([("docs:guide/page.md", EDIT)], {PAGE: EDIT}),
        ([("code:guide", OURS)], {CODE: OURS}),
        ([("guide/", THEIRS)], {PAGE: THEIRS, OTHER: THEIRS, CODE: THEIRS}),
        (
            [("docs:guide/", THEIRS), ("code:guide/page.md", EDIT)],
            {PAGE: THEIRS, OTHER: THEIRS, CODE: EDIT},
        ),
        ([("guide", THEIRS), ("guide/page.md", OURS)], {PAGE: OURS, OTHER: THEIRS, CODE: OURS}),
        ([("guide/page.md", OURS), ("docs:guide/page.md", OURS)], {PAGE: OURS, CODE: OURS}),
    ],
)
def test_a_name_is_a_path_or_a_folder_of_any_resource_or_of_one(
    named: list[tuple[str, Choice]], found: dict[ConflictKey, Choice]
) -> None:
    assert chosen([PAGE, OTHER, CODE], named) == found


@pytest.mark.parametrize("name", ["guide/pag", "page.md", "/", "code:guide/other.md", "docs:", ""])
def test_a_name_that_no_conflict_has_is_refused_with_those_that_there_are(name: str) -> None:
    with pytest.raises(UsageError) as caught:
        chosen([PAGE, OTHER, CODE, PAGE], [("guide", OURS), (name, OURS)])

    assert caught.value.message == f"no conflict is about {name!r}"
    assert caught.value.hint == (
        "there are: docs:guide/page.md, docs:guide/other.md, code:guide/page.md"
    )


def test_two_choices_for_one_conflict_are_refused() -> None:
    named = [("guide", OURS), ("guide/page.md", THEIRS), ("guide/page.md", EDIT)]
    with pytest.raises(UsageError) as caught:
        chosen([OTHER, PAGE], named)

    assert caught.value.message == "docs:guide/page.md is named twice: edit and theirs"
    assert caught.value.hint == "say one of them"


def test_a_path_that_begins_like_a_resource_is_named_as_it_is_or_with_its_resource() -> None:
    odd: ConflictKey = (PLAN, "docs", "docs:odd/x")

    assert chosen([odd], [("docs:odd/", OURS)]) == {odd: OURS}
    assert chosen([odd], [("docs:docs:odd/x", OURS)]) == {odd: OURS}
