"""Types of resources: which there are, and that a new one may not take the name of another."""

import pytest

from cleveragents.domain.errors import UsageError
from cleveragents.domain.resource_kinds import (
    FS_DIRECTORY,
    GIT_CHECKOUT,
    POSTGRES,
    SQLITE,
    ResourceKind,
    ResourceType,
    add_kind,
    kind_of,
    kinds,
    type_named,
    working,
)


def test_what_is_only_planned_is_told_of_and_cannot_be_used() -> None:
    assert list(kinds())[:4] == [GIT_CHECKOUT, FS_DIRECTORY, SQLITE, POSTGRES]
    assert list(working())[:3] == [GIT_CHECKOUT, FS_DIRECTORY, SQLITE]
    assert POSTGRES not in working()


def test_a_type_is_known_by_its_name() -> None:
    assert kind_of(type_named("sqlite")) is SQLITE
    with pytest.raises(ValueError, match=r"^'mysql' is no type of resource$"):
        type_named("mysql")


def test_a_type_of_ones_own_can_be_named_once_it_is_added(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("cleveragents.domain.resource_kinds._KINDS", {SQLITE.type: SQLITE})
    own = ResourceKind(type=ResourceType("shelf"), is_folder=True)

    add_kind(own)
    add_kind(own)

    assert kind_of(type_named("shelf")) == own
    assert kinds() == (SQLITE, own)


def test_a_type_of_ones_own_may_not_take_the_place_of_another() -> None:
    with pytest.raises(UsageError) as caught:
        add_kind(ResourceKind(type=SQLITE.type, is_folder=True))

    assert caught.value.message == "there is a resource type sqlite already"
    assert caught.value.hint == "give yours another name"
    assert kind_of(SQLITE.type) is SQLITE
