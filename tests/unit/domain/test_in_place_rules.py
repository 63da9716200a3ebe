"""In the user's own tree: what a step of others is called, and what does not go back by itself."""

import pytest

from cleveragents.domain.in_place import left_name, others_name, to_install


@pytest.mark.parametrize(
    ("paths", "name"),
    [
        ([], "changed by others: the state of the repository"),
        (["a"], "changed by others: a"),
        (list("abcde"), "changed by others: a, b, c, d, e"),
        (list("abcdef"), "changed by others: a, b, c, d, e and 1 more"),
        (list("abcdefg"), "changed by others: a, b, c, d, e and 2 more"),
    ],
)
def test_a_step_of_others_is_called_by_what_they_changed(paths: list[str], name: str) -> None:
    assert others_name(paths) == name


def test_what_a_step_left_that_did_not_come_to_its_end_is_called_by_both() -> None:
    assert left_name("step 2", ["a", "b"]) == "left by step 2: a, b"
    assert left_name("step 2", []) == "left by step 2: the state of the repository"


def test_a_lock_file_that_went_back_is_told_with_what_installs_it_again() -> None:
    paths = ["web/app/package-lock.json", "uv.lock", "src/uv.lock.py", "uv.lock/readme"]

    assert to_install(paths) == [
        "uv.lock went back: uv sync",
        "web/app/package-lock.json went back: npm ci",
    ]
