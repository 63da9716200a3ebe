"""Where a plan belongs, and which of the plans around one is the latest."""

import pytest
from domain_builders import a_resource

from cleveragents.domain.ids import PlanId
from cleveragents.domain.places import PlacedPlan, folder_of, latest_of, place_of
from cleveragents.domain.resource_kinds import (
    FS_DIRECTORY,
    GIT_CHECKOUT,
    POSTGRES,
    SQLITE,
    ResourceType,
)

FIRST, SECOND, THIRD = (PlanId(f"01J{'0' * 22}{n}") for n in "123")


def placed(plan_id: PlanId, place: str | None) -> PlacedPlan:
    return PlacedPlan(plan_id=plan_id, action="demo", place=place)


@pytest.mark.parametrize(
    ("type_", "location", "place"),
    [
        (GIT_CHECKOUT.type, "/home/u/shop", "/home/u/shop"),
        (FS_DIRECTORY.type, "/home/u/pages", "/home/u/pages"),
        (SQLITE.type, "/home/u/data/app.db", "/home/u/data"),
        (SQLITE.type, "/app.db", "/"),
        (POSTGRES.type, "postgresql://u@h/d", None),
    ],
)
def test_a_resource_says_its_folder(type_: ResourceType, location: str, place: str | None) -> None:
    assert folder_of(type_, location) == place


def test_the_innermost_folder_that_has_plans_counts_and_there_the_first_of_the_list() -> None:
    plans = [placed(THIRD, "/a"), placed(SECOND, "/a/b"), placed(FIRST, "/a/b")]
    assert latest_of(plans, ["/a/b/c", "/a/b", "/a", "/"]) == plans[1]
    assert latest_of(plans, ["/a/c", "/a", "/"]) == plans[0]


def test_a_plan_without_a_place_or_of_another_is_never_meant() -> None:
    plans = [placed(THIRD, None), placed(SECOND, "/a/bc")]
    assert latest_of(plans, ["/a/b", "/a", "/"]) is None


def test_a_plan_belongs_where_its_first_resource_is_and_without_one_nowhere() -> None:
    first, second = (a_resource(location=place) for place in ("/home/u/shop", "/srv"))

    assert place_of([first, second]) == "/home/u/shop"
    assert place_of([]) is None
