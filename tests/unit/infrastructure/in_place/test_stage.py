"""Where files lie ready in the user's own tree: nothing that somebody planted there is followed."""

import os
from pathlib import Path

import pytest
from own_tree import TREE, OwnTree

from cleveragents.domain.errors import RestoreFailedError
from cleveragents.infrastructure.sandbox.in_place.marker import in_the_way, stage_root


@pytest.fixture
def tree(tmp_path: Path) -> OwnTree:
    return OwnTree(tmp_path)


def test_a_link_in_the_stage_is_removed_and_not_what_it_leads_to(
    tree: OwnTree, tmp_path: Path
) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "letter").write_text("dear")
    first = tree.capture()
    (tree.path / "a.txt").write_text("other")
    Path(stage_root(str(tree.path))).mkdir(parents=True)
    Path(stage_root(str(tree.path)), f"restore-{TREE}").symlink_to(mine)

    tree.back_to(first)

    assert (mine / "letter").read_text() == "dear"
    assert (tree.path / "a.txt").read_text() == "one\n"
    assert not os.path.lexists(stage_root(str(tree.path)))


def test_a_link_for_the_stage_is_in_the_way_and_never_used(tree: OwnTree, tmp_path: Path) -> None:
    first = tree.capture()
    (tree.path / "a.txt").write_text("other")
    Path(stage_root(str(tree.path))).symlink_to(tmp_path)

    assert in_the_way(str(tree.path)) == stage_root(str(tree.path))
    with pytest.raises(RestoreFailedError):
        tree.back_to(first)
    assert (tree.path / "a.txt").read_text() == "other"
    assert not (tmp_path / f"restore-{TREE}").exists()


def test_a_link_for_the_repository_is_none_of_ours(tree: OwnTree, tmp_path: Path) -> None:
    Path(tree.gitdir).rename(tmp_path / "elsewhere")
    Path(tree.gitdir).symlink_to(tmp_path / "elsewhere")

    assert stage_root(str(tree.path)) == str(tree.path / ".cleveragents-stage")
