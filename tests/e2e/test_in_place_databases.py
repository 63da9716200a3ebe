"""`agents run --in-place --db`: the user's own database, with files on one timeline (ADR 0103)."""

from pathlib import Path

import pytest
from tests.support.in_place import Place, error_of
from tests.support.in_place_databases import Kept, Server, make, notes, write, writing
from tests.support.world import World


@pytest.fixture
def place(world: World) -> Kept:
    return Kept(world)


@pytest.fixture
def logged(world: World) -> Kept:
    return Kept(world, wal=True)


# --- the whole way ------------------------------------------------------------------------------


def test_files_and_the_database_go_back_and_forth_together(place: Kept) -> None:
    before, bytes_before = place.state(), place.db.read_bytes()

    done = place.run(
        f"echo two > README.md; {writing('bread')}; echo $CLEVERAGENTS_SANDBOX_DB > at"
    )

    after, bytes_after = place.state(), place.db.read_bytes()
    assert done.ok().data["in_place"] is True
    assert (place.path / "at").read_text().strip() == str(place.db)
    assert notes(place.db) == ["milk", "bread"]
    place("undo").ok()
    assert (place.state(), place.db.read_bytes()) == (before, bytes_before)
    place("redo").ok()
    assert (place.state(), place.db.read_bytes()) == (after, bytes_after)


def test_every_word_is_about_both(place: Kept) -> None:
    place.run(f"echo two > README.md; {writing('bread')}").ok()
    place.run(writing("tea")).ok()

    assert "app.db" in place.world.agents.inside("log").ok().out
    files = place("diff").ok().data["files"]
    assert {"code:README.md", "db:app.db/note"} <= {item["path"] for item in files}
    strategies = {item["resource"]: item for item in place("status").ok().data["sandboxes"]}
    assert strategies["db"]["strategy"] == "in-place"
    assert strategies["db"]["path"] == str(place.db)
    place("plan", "rollback", "--yes", "in-place-1", "1").ok()
    assert notes(place.db) == ["milk", "bread"]
    place("rewind", "0", "--yes").ok()
    assert notes(place.db) == ["milk"]
    assert place.project.read("README.md") != "two\n"
    place("redo").ok()
    assert notes(place.db) == ["milk", "bread"]


def test_one_database_alone_comes_back_with_only(place: Kept) -> None:
    place.run(f"echo two > README.md; {writing('bread')}").ok()

    place("plan", "rollback", "--yes", "--only", "db:app.db", "in-place-1", "0").ok()

    assert notes(place.db) == ["milk"]
    assert place.project.read("README.md") == "two\n"


@pytest.mark.parametrize("word", ["apply", "discard"])
def test_the_end_of_a_timeline_leaves_the_database_as_it_is(place: Kept, word: str) -> None:
    place.run(writing("bread")).ok()
    before, beside = place.db.read_bytes(), sorted(place.path.iterdir())

    place(word, "--yes").ok()

    assert place.db.read_bytes() == before
    assert sorted(place.path.iterdir()) == beside
    place.run(writing("tea")).ok()
    place("undo").ok()
    assert notes(place.db) == ["milk", "bread"]


def test_later_runs_go_on_with_the_databases_of_the_timeline(place: Kept) -> None:
    place.run(writing("bread")).ok()
    place("run", "--in-place", "--", "sh", "-c", writing("tea")).ok()
    place.run(writing("salt")).ok()

    for wanted in (["milk", "bread", "tea"], ["milk", "bread"], ["milk"]):
        place("undo").ok()
        assert notes(place.db) == wanted


def test_a_database_that_comes_later_needs_a_new_timeline(place: Kept) -> None:
    other = make(place.path / "other.db")
    place.run(writing("bread")).ok()

    refused = place.run("true", "--db", "other.db")

    assert error_of(refused) == "timeline-terms"
    assert str(other) in refused.error["message"]
    assert "agents apply" in refused.error["hint"]
    place("apply", "--yes").ok()
    place.run(f"{writing('a')}; {writing('b', 'other.db')}", "--db", "other.db").ok()
    place("undo").ok()
    assert (notes(place.db), notes(other)) == (["milk", "bread"], ["milk"])


def test_what_a_run_does_to_it_in_a_tracked_file_is_the_databases_own(place: Kept) -> None:
    place.project.git("add", "app.db")
    place.project.git("commit", "-qm", "the database too")
    before = place.state()

    place.run(f"{writing('bread')}; git commit -qam agent").ok()
    place("undo").ok()

    assert place.state() == before
    assert place.project.git("status", "--short") == ""


def test_outside_of_the_tree_its_folder_is_open_to_the_program(place: Kept, tmp_path: Path) -> None:
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    db = make(folder / "far.db")

    place("run", "--in-place", "--db", str(db), "--", "sh", "-c", writing("bread", str(db))).ok()

    assert notes(db) == ["milk", "bread"]
    place("undo").ok()
    assert notes(db) == ["milk"]


def test_a_tree_that_was_moved_has_its_database_with_it(place: Kept) -> None:
    place.run(writing("bread")).ok()
    moved = place.path.rename(place.path.with_name("moved"))

    agents = place.world.agents.at(moved)

    agents("run", "--in-place", "--db", "app.db", "--", "sh", "-c", writing("tea")).ok()

    assert notes(moved / "app.db") == ["milk", "bread", "tea"]
    agents("undo", "-n", "2").ok()
    assert notes(moved / "app.db") == ["milk"]


# --- a log, and others who have it open -----------------------------------------------------------


def test_what_is_only_in_the_log_is_captured_and_nothing_is_folded(logged: Kept) -> None:
    with Server(logged.db) as server:
        server("INSERT INTO note (text) VALUES ('by the server')")
        logged.run(writing("bread")).ok()
        log = logged.db.with_name("app.db-wal").read_bytes()
        logged("diff").ok()
        assert logged.db.with_name("app.db-wal").read_bytes() == log
        assert len(log) > 0

    logged("undo").ok()

    assert notes(logged.db) == ["milk", "by the server"]
    logged("redo").ok()
    assert notes(logged.db) == ["milk", "by the server", "bread"]


@pytest.mark.parametrize("wal", [False, True])
def test_nothing_is_taken_back_under_who_has_it_open_for_writing(
    world: World, *, wal: bool
) -> None:
    place = Kept(world, wal=wal)
    place.run(f"echo two > README.md; {writing('bread')}").ok()
    before, groups = place.state(), _groups(place)
    with Server(place.db) as server:
        server("SELECT * FROM note")

        refused = place("undo", "--now")

        assert error_of(refused) == "database-in-use"
        assert f"{server.pid} (" in refused.error["message"]
        assert _groups(place) == groups
        assert notes(place.db) == ["milk", "bread"]
        assert place.project.read("README.md") == "two\n"
    assert place.state() == before

    place("undo").ok()
    assert notes(place.db) == ["milk"]


def test_a_reader_of_a_log_has_it_open_too(logged: Kept) -> None:
    logged.run(writing("bread")).ok()
    with Server(logged.db, read_only=True) as server:
        server("SELECT * FROM note")

        refused = logged("undo")

        assert error_of(refused) == "database-in-use"
        assert f"{server.pid} (" in refused.error["message"]
    assert notes(logged.db) == ["milk", "bread"]


def test_who_only_reads_is_told_to_open_it_again(place: Kept) -> None:
    place.run(writing("bread")).ok()
    with Server(place.db, read_only=True) as server:
        server("SELECT * FROM note")

        done = place.world.agents.inside("undo").ok()

        assert f"{server.pid} (" in done.out + done.err
        assert server("SELECT count(*) FROM note") == "[(1,)]"


def test_files_alone_go_back_while_a_server_has_the_database_open(place: Kept) -> None:
    place.run("echo two > README.md").ok()
    with Server(place.db) as server:
        server("SELECT * FROM note")

        place("undo").ok()

        assert place.project.read("README.md") != "two\n"
        assert server("SELECT count(*) FROM note") == "[(1,)]"


def test_a_transaction_that_somebody_is_in_is_no_part_of_it(place: Kept) -> None:
    with Server(place.db) as server:
        server("BEGIN IMMEDIATE")
        server("INSERT INTO note (text) VALUES ('not yet')")
        place.run("echo two > README.md").ok()
        assert "app.db" not in "".join(place.rows())
        server("COMMIT")

    place("undo", "--yes").ok()

    assert notes(place.db) == ["milk"]
    place("redo", "--yes").ok()


def test_one_that_stays_locked_is_said_to_be(place: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    from cleveragents.infrastructure.snapshots.pages import database_file

    monkeypatch.setattr(database_file, "LOCK_SECONDS", 0.3)
    with Server(place.db) as server:
        server("BEGIN EXCLUSIVE")

        refused = place.run("true")

        assert error_of(refused) == "snapshot-failed"
        assert "locked" in refused.error["message"]
    place.run(writing("bread")).ok()
    place("undo").ok()


# --- what was left by somebody who was killed -----------------------------------------------------


def test_the_log_of_a_killed_writer_is_captured_and_goes_with_what_it_belongs_to(
    logged: Kept,
) -> None:
    server = Server(logged.db)
    server("INSERT INTO note (text) VALUES ('by the server')")
    server.kill()
    log = logged.db.with_name("app.db-wal")
    assert log.stat().st_size > 0
    logged.run("echo two > README.md").ok()
    assert log.stat().st_size > 0
    logged.run(f"{writing('bread')}").ok()
    server = Server(logged.db)
    server("INSERT INTO note (text) VALUES ('later')")
    server.kill()

    logged("undo", "--yes").ok()

    assert notes(logged.db) == ["milk", "by the server"]
    logged("redo", "--yes").ok()
    logged("redo", "--yes")
    assert notes(logged.db)[:3] == ["milk", "by the server", "bread"]


def _hot(db: Path) -> None:
    """A writer that was killed after it had begun to write in the file."""
    server = Server(db)
    server("PRAGMA cache_size=1")
    server("PRAGMA cache_spill=1")
    server("BEGIN IMMEDIATE")
    for _ in range(40):
        server("INSERT INTO note (text) VALUES (hex(randomblob(3000)))")
    server.kill()
    assert db.with_name(f"{db.name}-journal").stat().st_size > 0


def test_what_waits_to_be_rolled_back_is_captured_as_if_it_were(place: Kept) -> None:
    _hot(place.db)
    raw = place.db.read_bytes()

    place.run("echo two > README.md").ok()

    assert place.db.read_bytes() == raw
    place.run(writing("bread")).ok()
    _hot(place.db)
    place("undo").ok()
    assert not place.db.with_name("app.db-journal").exists()
    assert notes(place.db) == ["milk"]


# --- what others changed --------------------------------------------------------------------------


def test_what_others_wrote_is_told_and_kept_if_they_want(place: Kept) -> None:
    place.run(f"echo two > README.md; {writing('bread')}").ok()
    write(place.db, "by hand")

    told = place("undo")
    assert error_of(told) == "changed-by-others"
    assert "app.db" in told.error["message"]
    assert place("undo", "--keep").ok().data["tables"] == []

    assert notes(place.db) == ["milk", "bread", "by hand"]
    assert place.project.read("README.md") != "two\n"


def test_what_others_wrote_can_go_back_too_and_comes_again(place: Kept) -> None:
    place.run(writing("bread")).ok()
    write(place.db, "by hand")

    place("undo", "--yes").ok()
    assert notes(place.db) == ["milk"]

    place("redo", "--yes").ok()
    place("redo", "--yes").ok()
    assert notes(place.db) == ["milk", "bread", "by hand"]


def test_keep_is_no_reason_to_be_refused(place: Kept) -> None:
    place.run(f"echo two > README.md; {writing('bread')}").ok()
    with Server(place.db) as server:
        server("INSERT INTO note (text) VALUES ('by the server')")

        place("undo", "--keep").ok()

        assert server("SELECT count(*) FROM note") == "[(3,)]"


def _groups(place: Place) -> int:
    return place("status").ok().data["execution"]["checkpoints"]
