"""A hostile program in place: what it plants in `.git` leads nowhere, runs nothing, and does not
keep files from going back."""

import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.support.agents import Agents, Answer
from tests.support.in_place import Place, error_of
from tests.support.trees import tree_of
from tests.support.world import World

_LATIN = "$(printf 'caf\\351')"


@pytest.fixture
def place(world: World) -> Place:
    made = Place(world)
    made.project.git("tag", "-am", "annotated", "heavy")
    return made


class Begun:
    """A timeline with something to move, and the way back to there in however many steps the
    machine has cut what came after it."""

    def __init__(self, place: Place) -> None:
        place.run("echo a > a; git add a; git commit -qm a; git branch two").ok()
        self._place = place
        self._row = len(place.rows())
        self.state: dict[str, Any] = place.state()

    def back(self) -> Answer:
        return self._place("rewind", str(self._row), "--yes")


# --- out of the tree ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "script",
    [
        pytest.param("mv .git old; ln -s {v}/.git .git", id="a link for .git"),
        pytest.param("mv .git old; echo 'gitdir: {v}/.git' > .git", id="a file for .git"),
        pytest.param("echo {v}/.git > .git/commondir", id="a common folder elsewhere"),
        pytest.param("mv .git/refs old; ln -s {v}/.git/refs .git/refs", id="references"),
        pytest.param(
            "mv .git/refs/heads old; ln -s {v}/.git/refs/heads .git/refs/heads", id="branches"
        ),
        pytest.param(
            "rm -rf .git/refs/cleveragents; ln -s {v}/.git/refs/heads .git/refs/cleveragents",
            id="our own references",
        ),
        pytest.param("mv .git/objects old; ln -s {v}/.git/objects .git/objects", id="objects"),
        pytest.param("rm -rf .git/logs; ln -s {v}/.git/logs .git/logs", id="logs"),
        pytest.param("ln -s {v} .git/.cleveragents-stage", id="our stage"),
        pytest.param("git config core.worktree {v}", id="files elsewhere"),
    ],
)
def test_nothing_outside_of_the_tree_is_written(place: Place, script: str) -> None:
    """Another repository of the same user, with the same commits: all moves would fit there."""
    other = place.world.top / "other"
    subprocess.run(["git", "clone", "-q", str(place.path), str(other)], check=True)
    begun = Begun(place)
    before = _every_file(other)

    place.run(f"git commit -q --allow-empty -m b; {script.format(v=other)}; echo b > b")
    begun.back()
    place("undo", "--yes")
    place("discard", "--yes")

    assert _every_file(other) == before


def _every_file(top: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(top.rglob("*")) if path.is_file()}


@pytest.mark.parametrize(
    "script",
    [
        pytest.param("git config core.fsmonitor 'touch {t}'", id="a monitor"),
        pytest.param(
            "for h in reference-transaction post-index-change; do printf '#!/bin/sh\\ntouch {t}'"
            " > .git/hooks/$h; done; chmod +x .git/hooks/*",
            id="hooks",
        ),
        pytest.param("git config core.alternateRefsCommand 'touch {t}; true'", id="alternates"),
        pytest.param(
            "git config core.repositoryformatversion 1; git config extensions.partialClone origin;"
            " git config remote.origin.promisor true; git config remote.origin.url"
            " 'ext::touch {t}'; git tag x $(git commit-tree HEAD^{{tree}} -m x);"
            " rm -rf .git/objects/??",
            id="a promise of objects",
        ),
    ],
)
def test_no_program_that_settings_name_is_started(place: Place, script: str) -> None:
    before = Begun(place)
    trace = place.world.top / "started"

    place.run(f"echo b > b; git add b; {script.format(t=trace)}; true")
    before.back().ok()

    assert not trace.exists()
    assert not (place.path / "b").exists()


# --- repositories that nobody expects -------------------------------------------------------------


@pytest.mark.parametrize(
    "script",
    [
        pytest.param(f"git branch {_LATIN}", id="a branch whose name is no text"),
        pytest.param(f"git symbolic-ref refs/heads/sym refs/heads/{_LATIN}", id="a link to one"),
        pytest.param(f"echo x > .git/hooks/{_LATIN}", id="a hook whose name is no text"),
        pytest.param(
            f"mkdir .git/rebase-merge; echo x > .git/rebase-merge/{_LATIN}", id="so in a rebase"
        ),
        pytest.param("b=$(git symbolic-ref HEAD); rm .git/HEAD; ln -s $b .git/HEAD", id="old HEAD"),
        pytest.param("echo junk > .git/index", id="an index that is none"),
        pytest.param("rm .git/index; mkdir .git/index", id="a folder for the index"),
        pytest.param("git commit -q --allow-empty -m b; mkdir .git/cleveragents-index", id="ours"),
        pytest.param("git commit -q --allow-empty -m b; rm .git/cleveragents-in-place", id="note"),
        pytest.param(
            'h=$(git rev-parse HEAD); seq 2000 | sed "s,.*,create refs/heads/m/& $h," |'
            " git update-ref --stdin",
            id="thousands of branches",
        ),
    ],
)
def test_all_of_it_goes_back_from_what_git_would_not_make(place: Place, script: str) -> None:
    before = Begun(place)

    place.run(f"echo b > b; {script}").ok()
    done = before.back().ok()

    assert tree_of(place.path) == before.state["tree"]
    if not done.data["left"]:
        place.project.git("symbolic-ref", "-d", "refs/heads/sym", check=False)
        assert place.state() == before.state
    place("redo", "--yes").ok()


@pytest.mark.parametrize(
    ("script", "told"),
    [
        pytest.param("echo junk > .git/HEAD", "its HEAD names nothing", id="junk for HEAD"),
        pytest.param(": > .git/HEAD", "its HEAD names nothing", id="an empty HEAD"),
        pytest.param("echo '[[[' >> .git/config", "git cannot read it", id="settings"),
        pytest.param(
            "git config core.repositoryformatversion 1; git config extensions.new 1",
            "git cannot read it",
            id="an extension",
        ),
        pytest.param(
            "rm .git/config; mkfifo .git/config", "its config is no file", id="a pipe for settings"
        ),
        pytest.param(
            "rm -f .git/packed-refs; mkfifo .git/packed-refs",
            "its packed-refs is no file",
            id="a pipe for references",
        ),
        pytest.param("mkdir .git/reftable", "in a reftable", id="a reftable"),
    ],
)
def test_files_go_back_where_the_repository_cannot_and_that_is_told(
    place: Place, script: str, told: str
) -> None:
    before = Begun(place)

    place.run(f"echo b > b; {script}").ok()
    done = before.back().ok()

    assert tree_of(place.path) == before.state["tree"]
    assert any(told in line for line in done.data["left"]), done.data["left"]
    place("redo", "--yes").ok()
    assert (place.path / "b").exists()


def test_thousands_of_folders_in_each_other_stop_nothing(place: Place) -> None:
    before = Begun(place)
    deep = "import os; [(os.mkdir('d'), os.chdir('d')) for _ in range(1200)]"

    place.run(f"cd .git/refs/heads; python3 -c {shlex.quote(deep)}; cd ../../..; echo b > b").ok()
    before.back().ok()

    assert tree_of(place.path) == before.state["tree"]
    subprocess.run(["rm", "-rf", str(place.path / ".git/refs/heads/d")], check=True)


# --- in our way, and told -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("script", "code"),
    [
        pytest.param("b=$(git symbolic-ref HEAD); : > .git/$b.lock", "repository-busy", id="ref"),
        pytest.param(": > .git/packed-refs.lock", "repository-busy", id="packed references"),
        pytest.param(": > .git/index.lock", "repository-busy", id="index"),
        pytest.param("echo x > .git/.cleveragents-stage", "in-place-refused", id="a file"),
        pytest.param("mkfifo .git/.cleveragents-stage", "in-place-refused", id="a pipe"),
        pytest.param(
            'echo \'{"installation": "x", "data_dir": "/x", "plan_id":'
            ' "01ARZ3NDEKTSV4RRFFQ69G5FAV"}\' > .git/cleveragents-in-place',
            "in-place-refused",
            id="a forged note",
        ),
    ],
)
def test_what_is_in_our_way_is_refused_and_the_hint_gets_it_out(
    place: Place, script: str, code: str
) -> None:
    before = Begun(place)
    place.run(f"echo b > b; git commit -q --allow-empty -m b; {script}")
    held = place.tree()

    refused = before.back()

    assert error_of(refused) == code
    assert place.tree() == held
    remedy = shlex.split(refused.error["hint"].rpartition("rm ")[2])
    Path(remedy[0]).unlink()
    before.back().ok()
    assert place.state() == before.state


def test_a_note_that_names_a_plan_of_a_tree_that_is_gone_brings_none_of_it(
    place: Place, tmp_path: Path
) -> None:
    """By its note a tree that was moved is found again."""
    gone = tmp_path / "gone"
    gone.mkdir()
    (gone / "secret").write_text("1")
    agents = place.world.agents.at(gone)
    agents("run", "--in-place", "--", "sh", "-c", "echo 2 > secret").ok()
    note = (gone / ".cleveragents-in-place").read_text()
    subprocess.run(["rm", "-r", str(gone)], check=True)
    before = Begun(place)

    place.run(f"echo {shlex.quote(note)} > .git/cleveragents-in-place; echo b > b")
    held = place.tree()
    refused = before.back()

    assert error_of(refused) == "in-place-refused"
    assert place.tree() == held


def test_a_note_that_was_removed_is_there_again_for_a_second_home(
    place: Place, tmp_path: Path
) -> None:
    before = Begun(place)
    place.run("rm .git/cleveragents-in-place; echo b > b").ok()
    before.back().ok()
    home = tmp_path / "second"
    home.mkdir()

    refused = Agents(home, place.path)("run", "--in-place", "--", "true")

    assert error_of(refused) == "place-taken"
