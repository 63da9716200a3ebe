"""What of our own a command gets to see: which places are covered, and which shown nevertheless."""

from pathlib import Path

import pytest

from cleveragents.infrastructure.confinement.bubblewrap import wrapped
from cleveragents.infrastructure.confinement.places import Places, Store
from cleveragents.infrastructure.confinement.read_only_view import outermost


@pytest.fixture
def data(tmp_path: Path) -> Path:
    for name in ("sandboxes/p/code", "sandboxes/q/code", "scratch/step", "locks"):
        (tmp_path / "data" / name).mkdir(parents=True)
    return tmp_path / "data"


def places(data: Path) -> Places:
    sandbox = str(data / "sandboxes/p/code")
    return Places(folder=sandbox, writable=[sandbox])


def test_of_places_in_each_other_the_outermost_are_shown() -> None:
    paths = [b"/d/s/a", b"/d/s/a/b", b"/d/s/ab", b"/d", b"/x", b"/d/t"]
    assert outermost(paths, b"/d") == [b"/d/s/a", b"/d/s/ab", b"/d/t"]
    assert outermost([b"/data", b"/d"], b"/d") == []
    between = [b"/d/code", b"/d/code.git", b"/d/code/docs"]
    assert outermost(between, b"/d") == [b"/d/code", b"/d/code.git"]


def test_a_step_is_shown_its_own_places_and_our_own_programs_all_that_is_worked_on(
    data: Path,
) -> None:
    store = Store(folder=str(data))
    private = str(data / "scratch/step")
    step = store.hidden_in(places(data), private, is_ours=False)
    assert step.hidden == [str(data)]
    assert set(step.shown) == {str(data / "sandboxes/p/code"), private}
    ours = store.hidden_in(places(data), private, is_ours=True)
    assert set(ours.shown) > {str(data / "sandboxes"), str(data / "scratch")}
    assert str(data / "locks") not in ours.shown


def test_a_database_elsewhere_is_hidden_with_what_lies_beside_it(data: Path) -> None:
    database = data.parent / "my.db"
    for name in ("my.db", "my.db-shm"):
        (data.parent / name).touch()
    found = Store(folder=str(data), database=str(database)).hidden_in(
        places(data), str(data / "scratch/step"), is_ours=False
    )
    assert found.hidden == [str(data), str(database), f"{database}-shm"]


def test_without_a_store_nothing_is_hidden(data: Path) -> None:
    assert Store(folder="").hidden_in(places(data), "/x", is_ours=False) == places(data)


def test_bubblewrap_covers_first_and_shows_then(data: Path) -> None:
    home, sandbox = str(data.parent), str(data / "sandboxes/p/code")
    other = str(data / "locks")
    line = wrapped(
        "bwrap",
        ["true"],
        Places(
            folder=sandbox,
            writable=[sandbox, home, other],
            hidden=[str(data)],
            shown=[sandbox],
        ),
        None,
    )
    words = " ".join(line)
    order = [f"--bind {home} {home}", f"--tmpfs {data}", f"--bind {sandbox} {sandbox}"]
    found = [words.index(part) for part in (*order, f"--remount-ro {data}")]
    assert found == sorted(found)
    assert f"--bind {other}" not in words  # named by an action, and ours
