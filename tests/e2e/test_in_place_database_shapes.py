"""A database in place, whatever a program makes of it; what is refused; action files (ADR 0103)."""

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from tests.support.in_place import Place, error_of
from tests.support.in_place_databases import Kept, make, notes, sql, write, writing
from tests.support.world import World


@pytest.fixture
def place(world: World) -> Kept:
    return Kept(world)


# --- what a program makes of it -------------------------------------------------------------------


@pytest.mark.parametrize(
    "script",
    [
        pytest.param("rm app.db", id="removed"),
        pytest.param("echo junk > app.db", id="junk"),
        pytest.param(": > app.db", id="emptied"),
        pytest.param("chmod 444 app.db", id="mode"),
        pytest.param("rm app.db; ln -s README.md app.db", id="link"),
        pytest.param(f"cp app.db x; {writing('bread', 'x')}; mv x app.db", id="replaced"),
        pytest.param(
            f"{writing('bread')}; cp app.db-wal x 2>/dev/null; rm -f app.db; touch app.db-wal",
            id="orphaned log",
        ),
    ],
)
@pytest.mark.parametrize("wal", [False, True])
def test_whatever_a_program_did_to_it_is_taken_back(
    world: World, script: str, *, wal: bool
) -> None:
    place = Kept(world, wal=wal)
    before, mode = place.db.read_bytes(), place.db.stat().st_mode

    place.run(script).ok()
    place("undo").ok()

    assert not place.db.is_symlink()
    assert (place.db.read_bytes(), place.db.stat().st_mode) == (before, mode)
    assert notes(place.db) == ["milk"]
    assert not list(place.path.glob("*-cleveragents"))


@pytest.mark.parametrize("script", ["mv data data2", "mv data data2; ln -s data2 data"])
def test_a_folder_that_moved_away_under_it_comes_back(world: World, script: str) -> None:
    place = Place(world)
    db = make_below(place)
    before = db.read_bytes()

    place(
        "run", "--in-place", "--db", "data/app.db", "--", "sh", "-c", f"{script}; echo x > x"
    ).ok()
    place("undo").ok()

    assert not db.parent.is_symlink()
    assert db.read_bytes() == before
    assert not (place.path / "data2").exists()
    place("redo").ok()
    assert (place.path / "data2/app.db").read_bytes() == before


def test_no_link_leads_a_way_back_to_another_database(world: World, tmp_path: Path) -> None:
    """Nor is what it leads to ever read."""
    place = Place(world)
    db = make_below(place)
    other = make(tmp_path / "app.db")
    write(other, "precious")
    theirs = other.read_bytes()
    run = ("run", "--in-place", "--db", "data/app.db", "--", "sh", "-c")
    place(*run, writing("bread", "data/app.db")).ok()
    place(*run, f"mv data old; ln -s {tmp_path} data").ok()

    plan = place("status").ok().data["plan_id"]
    refused = place("plan", "rollback", "--yes", "--only", "db:app.db", plan, "1")

    assert error_of(refused) == "restore-failed"
    assert other.read_bytes() == theirs
    place("undo").ok()
    assert other.read_bytes() == theirs
    assert notes(db) == ["milk", "bread"]
    store = b"".join(path.read_bytes() for path in place.world.agents.data_dir.glob("snapshots/*"))
    assert b"precious" not in store


def make_below(place: Place) -> Path:
    (place.path / "data").mkdir()
    (place.path / "data/keep").write_text("kept\n")
    return make(place.path / "data/app.db")


def test_what_only_looks_like_a_journal_is_not_thrown_away(place: Kept) -> None:
    place.run("rm app.db").ok()
    mine = place.path / "app.db-journal/mine"
    mine.parent.mkdir()
    mine.write_text("mine")

    refused = place("undo", "--yes")

    assert error_of(refused) == "restore-failed"
    assert str(mine.parent) in refused.error["message"]
    assert mine.read_text() == "mine"
    mine.unlink()
    mine.parent.rmdir()
    place("undo", "--yes").ok()
    assert notes(place.db) == ["milk"]


def test_an_empty_file_is_a_database_that_can_come_back(place: Kept) -> None:
    place.db.write_bytes(b"")

    place.run(sql("CREATE TABLE note (id INTEGER PRIMARY KEY, text TEXT)")).ok()
    after = place.db.read_bytes()
    place("undo").ok()

    assert place.db.read_bytes() == b""
    place("redo").ok()
    assert place.db.read_bytes() == after


def test_a_vacuum_and_another_page_size_are_taken_back(place: Kept) -> None:
    before = place.db.read_bytes()

    place.run(sql("PRAGMA page_size=512", "VACUUM")).ok()
    assert place.db.read_bytes() != before
    place("undo").ok()

    assert place.db.read_bytes() == before


def test_a_folder_in_its_place_is_left_alone(place: Kept) -> None:
    place.run("rm app.db; mkdir app.db; echo mine > app.db/mine").ok()

    place("undo", "--yes")

    assert (place.db / "mine").read_text() == "mine\n"


def test_what_poses_as_a_journal_is_left_alone(place: Kept) -> None:
    place.run(f"{writing('bread')}; echo mine > mine; ln -s mine app.db-wal").ok()
    before = place.db.read_bytes()

    refused = place("undo")

    assert error_of(refused) == "restore-failed"
    assert (place.path / "app.db-wal").is_symlink()
    assert place.db.read_bytes() == before
    (place.path / "app.db-wal").unlink()
    place("undo").ok()
    assert notes(place.db) == ["milk"]


def test_its_folder_comes_back_with_it(world: World) -> None:
    place = Place(world)
    (place.path / "data").mkdir()
    db = make(place.path / "data/app.db")

    place.run("rm -r data", "--db", "data/app.db").ok()
    place("undo").ok()

    assert notes(db) == ["milk"]


# --- what is refused ------------------------------------------------------------------------------


def _refused(place: Place, path: str) -> str:
    before = place.state()
    answer = place.run("true", "--db", path)
    assert error_of(answer) in ("in-place-refused", "resource-unusable", "resource"), answer
    assert place.state() == before
    return answer.error["message"] + answer.error["hint"]


def test_what_is_no_database_is_refused(world: World, tmp_path: Path) -> None:
    place = Place(world)
    (place.path / "junk.db").write_text("no database at all, or one that is encrypted")
    (place.path / "folder.db").mkdir()

    assert "touch" in _refused(place, "missing.db")
    assert "encrypted" in _refused(place, "junk.db")
    assert "folder" in _refused(place, "folder.db")


def test_a_place_that_a_program_should_not_write_in_is_refused(world: World) -> None:
    place = Place(world)
    home = Path(world.agents.home)

    assert "home folder" in _refused(place, str(make(home / "at-home.db")))
    inside = world.agents.data_dir
    inside.mkdir(exist_ok=True)
    assert "own data" in _refused(place, str(make(inside / "ours.db")))


def test_a_database_with_two_names_or_of_another_user_is_refused(world: World) -> None:
    place = Place(world)
    db = make(place.path / "two.db")
    os.link(db, place.path / "names.db")

    assert "several names" in _refused(place, "two.db")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_what_cannot_be_written_is_refused(world: World) -> None:
    place = Place(world)
    db = make(place.path / "closed.db")
    db.chmod(0o444)
    assert "written" in _refused(place, "closed.db")
    (place.path / "data").mkdir()
    make(place.path / "data/app.db")
    (place.path / "data").chmod(0o555)
    try:
        assert "journals" in _refused(place, "data/app.db")
    finally:
        (place.path / "data").chmod(0o755)


def test_a_server_of_databases_is_refused_in_words(world: World) -> None:
    refused = Place(world).run("true", "--db", "postgresql://localhost/app")

    assert "postgres" in refused.error["message"]
    assert refused.code != 0


def test_a_link_leads_to_the_database_itself(world: World) -> None:
    place = Place(world)
    db = make(place.path / "real.db")
    (place.path / "app.db").symlink_to("real.db")

    place.run(writing("bread"), "--db", "app.db").ok()
    place("undo").ok()

    assert notes(db) == ["milk"]
    assert (place.path / "app.db").is_symlink()


def test_large_ones_with_other_page_sizes(world: World) -> None:
    place = Place(world)
    db = make(place.path / "app.db", page_size=65536)
    with closing(sqlite3.connect(db)) as connection, connection:
        connection.executemany(
            "INSERT INTO note (text) VALUES (?)", [(str(n) * 400,) for n in range(5000)]
        )
    before = db.read_bytes()

    place.run(sql("DELETE FROM note WHERE id % 3 = 0", "VACUUM"), "--db", "app.db").ok()
    assert len(db.read_bytes()) < len(before)
    place("undo").ok()

    assert db.read_bytes() == before


# --- action files ---------------------------------------------------------------------------------


def test_an_action_file_works_on_a_database_in_place_too(place: Kept, tmp_path: Path) -> None:
    action = tmp_path / "fill.yaml"
    action.write_text(
        "name: fill\ndescription: Fill it\nresources:\n"
        "  code: {type: git-checkout, path: ., strategy: in-place}\n"
        "  db: {type: sqlite, path: app.db, strategy: in-place}\n"
        "steps:\n  - name: a row\n    tool: sql.execute\n"
        "    with: {resource: db, sql: \"INSERT INTO note (text) VALUES ('bread')\"}\n"
    )
    place("plan", "use", str(action)).ok()
    place("plan", "execute").ok()
    assert notes(place.db) == ["milk", "bread"]
    place.run(writing("tea")).ok()

    place("undo").ok()
    place("undo").ok()

    assert notes(place.db) == ["milk"]
