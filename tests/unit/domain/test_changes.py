"""What changed, told in a few words."""

import pytest

from cleveragents.domain.changes import ChangeKind, FileChange, in_words


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
