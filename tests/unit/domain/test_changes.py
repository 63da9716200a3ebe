"""What changed, told in a few words."""

import pytest

from cleveragents.domain.changes import ChangeKind, FileChange, ResourceDiff, in_words


def changes(*paths: str) -> list[FileChange]:
    return [FileChange(path=path, kind=ChangeKind.ADDED) for path in paths]


@pytest.mark.parametrize(
    ("paths", "told"),
    [
        (["a.py"], "a.py"),
        (["shop/money.py", "b", "c"], "shop/money.py, 2 more"),
        ([".cache", "d/.x", "shop.py"], "shop.py, 2 more"),
        ([".env", ".cache"], ".env, 1 more"),
        (["x" * 60], "x" * 60),
        (["d/" + "x" * 60], "…" + "x" * 59),
    ],
)
def test_one_path_stands_for_all(paths: list[str], told: str) -> None:
    assert in_words(changes(*paths)) == told


def test_what_apply_does_not_take_is_told_as_another_look_says() -> None:
    first = ResourceDiff(patch="text", left_behind=("a",), empty_folders=("b",), brought=("c",))
    other = ResourceDiff(patch="other", left_behind=("x",), empty_folders=("y",), brought=("z",))

    assert first.leaving_out(other) == ResourceDiff(
        patch="text", left_behind=("x",), empty_folders=("y",), brought=("c",)
    )
