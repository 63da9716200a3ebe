"""Resources inside of each other: what is inside belongs to the inner one alone, or is refused."""

from collections.abc import Collection, Mapping

import pytest
from domain_builders import CODE, DOCS, a_resource, ulid

from cleveragents.domain.errors import ResourceError
from cleveragents.domain.ids import ResourceId
from cleveragents.domain.overlaps import (
    belongs_elsewhere,
    cut_out,
    overlap_notices,
    refuse_twice,
)
from cleveragents.domain.resource import PlanResource
from cleveragents.domain.resource_kinds import FS_DIRECTORY, SQLITE

OUTER = a_resource(CODE, location="/project")
BESIDE = a_resource(ResourceId(ulid(13)), name="beside", location="/projects")
INNER = a_resource(DOCS, type=FS_DIRECTORY.type, location="/project/docs")
DATABASE = a_resource(
    ResourceId(ulid(14)), name="db", type=SQLITE.type, location="/project/data/app.db"
)
FILES = {
    "data/app.db": "db",
    "data/app.db-wal": "db",
    "data/app.db-shm": "db",
    "data/app.db-journal": "db",
}


def cut(
    *resources: PlanResource, submodules: Mapping[str, Collection[str]] | None = None
) -> Mapping[str, Mapping[str, str]]:
    within = {resource.name: (submodules or {}).get(resource.name, ()) for resource in resources}
    return {found.name: found.cut_out for found in cut_out(resources, within)}


def test_the_outer_one_leaves_out_all_that_others_have_inside_of_it() -> None:
    assert cut(OUTER, BESIDE, DATABASE, INNER) == {
        "code": {"docs": "docs", **FILES},
        "beside": {},
        "db": {},
        "docs": {},
    }


def test_the_whole_disk_has_everything_inside_of_it() -> None:
    root = a_resource(CODE, location="/", type=FS_DIRECTORY.type)

    assert cut(root, INNER)["code"] == {"project/docs": "docs"}


def test_a_database_has_nothing_inside_of_it() -> None:
    odd = a_resource(DOCS, location="/project/data/app.db/x")

    assert cut(DATABASE, odd) == {"db": {}, "docs": {}}


def test_nothing_inside_changes_nothing() -> None:
    assert cut_out([OUTER, BESIDE], {"code": (), "beside": ()}) == [OUTER, BESIDE]


@pytest.mark.parametrize("path", ["docs", "docs/deeper"])
def test_what_is_in_a_submodule_cannot_be_applied_beside_it(path: str) -> None:
    inner = a_resource(DOCS, location=f"/project/{path}")

    with pytest.raises(ResourceError) as caught:
        cut(OUTER, inner, submodules={"code": ["lib", "docs"]})

    assert caught.value.message == (
        "`docs` is in docs, which is a submodule of `code`:"
        " they cannot be applied beside each other"
    )
    assert caught.value.hint == "leave `docs` out: `code` has its submodules with it"


def test_what_only_begins_like_a_submodule_is_not_in_it() -> None:
    assert cut(OUTER, INNER, submodules={"code": ["doc"]})["code"] == {"docs": "docs"}


def test_the_same_thing_under_two_names_is_refused() -> None:
    refuse_twice([OUTER, INNER])
    with pytest.raises(ResourceError) as caught:
        refuse_twice([OUTER, INNER, a_resource(BESIDE.resource_id, name="again")])

    assert caught.value.message == "`code` and `again` are the same: /project"
    assert caught.value.hint == "name it once, and let all steps use that resource"


def test_a_person_is_told_of_each_thing_inside_but_not_of_the_files_beside_a_database() -> None:
    (outer, *_) = cut_out([OUTER, INNER, DATABASE], {"code": (), "docs": (), "db": ()})
    rest = (
        "what steps write there in the sandbox of `code` is not applied,"
        " what they write in that of `{0}` is"
    )

    assert overlap_notices([outer, INNER]) == [
        "code: docs belongs to `docs`; " + rest.format("docs"),
        "code: data/app.db belongs to `db`; " + rest.format("db"),
    ]


@pytest.mark.parametrize(
    ("path", "elsewhere"),
    [
        ("a/docs", True),
        ("a/docs/page", True),
        ("a", True),
        ("a/docs2", False),
        ("a/doc", False),
        ("b", False),
    ],
)
def test_a_change_that_would_reach_what_is_cut_out_belongs_elsewhere(
    path: str, *, elsewhere: bool
) -> None:
    assert belongs_elsewhere(path, ["x", "a/docs"]) is elsewhere
