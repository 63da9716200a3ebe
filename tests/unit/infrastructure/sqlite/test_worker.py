"""The process in which SQLite runs: started when it is needed, held inside, never waited for."""

import os
import signal
import sqlite3
import sys
import threading
import time
from collections.abc import Generator
from contextlib import closing, suppress
from pathlib import Path

import pytest
from tests.support.journals import journal_naming
from tests.support.runners import database_workers

from cleveragents.domain.confinement import Confinement, ConfinementMode
from cleveragents.infrastructure.processes.process_tree import descendants
from cleveragents.infrastructure.sqlite import talk, worker
from cleveragents.infrastructure.sqlite.answers import RefusedInsideError
from cleveragents.infrastructure.sqlite.messages import NO_DATABASE, Value, framed
from cleveragents.infrastructure.sqlite.worker import (
    DatabasePlace,
    DatabaseWorkers,
    LostInsideError,
)

ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n) SELECT sum(i) FROM n"


# What other tests have left below this process, which may live as long as it does.
STRANGERS: set[int] = set()


@pytest.fixture(autouse=True)
def strangers() -> None:
    STRANGERS.clear()
    STRANGERS.update(descendants(os.getpid()))


@pytest.fixture
def workers() -> Generator[DatabaseWorkers]:
    made = database_workers()
    yield made
    made.close()
    assert ours() == []


@pytest.fixture
def place(tmp_path: Path) -> DatabasePlace:
    (tmp_path / "db").mkdir()
    path = tmp_path / "db" / "app.db"
    with closing(sqlite3.connect(path)) as db:
        db.executescript("CREATE TABLE t (a); INSERT INTO t VALUES (1)")
    return DatabasePlace(str(path), Confinement(mode=ConfinementMode.PREFERRED))


def ours() -> list[int]:
    """The processes inside, which have none below them; those that keep them are between us."""
    found = {k: v for k, v in descendants(os.getpid()).items() if k not in STRANGERS}
    parents = {place.parent for place in found.values()}
    return [pid for pid in found if pid not in parents]


def rows(workers: DatabaseWorkers, place: DatabasePlace) -> list[list[object]]:
    return [list(row) for row in workers.query(place, "SELECT a FROM t", (), 10, 5).rows]


def test_one_process_answers_all_questions_about_a_database(
    workers: DatabaseWorkers, place: DatabasePlace
) -> None:
    assert ours() == []
    assert rows(workers, place) == [[1]]
    [first] = ours()
    assert workers.execute(place, "INSERT INTO t VALUES (2)", (), 5).changed == 1
    with workers.held(place, 5) as notes:
        assert notes == ()
    assert workers.check(place, place.path) == "ok"
    assert ours() == [first]


def test_what_is_held_is_still_until_it_is_released(
    workers: DatabaseWorkers, place: DatabasePlace
) -> None:
    with closing(sqlite3.connect(place.path, timeout=0.05, isolation_level=None)) as db:
        db.execute("PRAGMA journal_mode=WAL")
        db.execute("INSERT INTO t VALUES (2)")
        with workers.held(place, 5):
            assert not Path(f"{place.path}-wal").stat().st_size
            db.execute("INSERT INTO t VALUES (3)")  # into the log, which nobody can fold in now
            assert db.execute("PRAGMA wal_checkpoint").fetchone()[2] == 0
        assert db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] == 0


def test_it_can_write_in_the_folder_of_the_database_and_nowhere_else(
    workers: DatabaseWorkers, place: DatabasePlace, tmp_path: Path
) -> None:
    other = tmp_path / "other.db"
    with closing(sqlite3.connect(other)) as db:
        db.execute("CREATE TABLE t (a)")
    asked = ("execute", str(other), "INSERT INTO t VALUES (1)", (), 5.0)
    with pytest.raises(RefusedInsideError, match="unable to open|readonly"):
        workers._ask(place, asked, 5, lambda value: value)


def test_the_network_and_further_places_of_the_steps_are_not_for_it(
    workers: DatabaseWorkers, place: DatabasePlace, tmp_path: Path
) -> None:
    free = Confinement(network=True, write=(str(tmp_path),), environment=("SECRET",))
    rows(workers, place)
    rows(workers, DatabasePlace(place.path, free))
    with pytest.raises(RefusedInsideError):
        workers._ask(
            DatabasePlace(place.path, free),
            ("execute", str(tmp_path / "new.db"), "CREATE TABLE t (a)", (), 5.0),
            5,
            lambda value: value,
        )


def test_a_killed_one_is_replaced_before_the_next_question(
    workers: DatabaseWorkers, place: DatabasePlace
) -> None:
    rows(workers, place)
    [first] = ours()
    os.kill(first, signal.SIGKILL)
    time.sleep(0.2)
    assert rows(workers, place) == [[1]]
    assert first not in ours()


def test_one_that_dies_of_a_question_is_told_and_nothing_is_lost(
    workers: DatabaseWorkers, place: DatabasePlace
) -> None:
    rows(workers, place)
    [first] = ours()
    threading.Timer(0.3, os.kill, (first, signal.SIGSEGV)).start()
    with pytest.raises(LostInsideError, match="SQLite died of it .it ended with -11") as caught:
        workers.execute(place, f"INSERT INTO t VALUES (2); {ENDLESS}", (), 30)
    assert not caught.value.late
    assert rows(workers, place) == [[1]]


def test_one_that_gives_no_answer_is_ended(
    workers: DatabaseWorkers, place: DatabasePlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "_GRACE_SECONDS", 0.1)
    rows(workers, place)
    [first] = ours()
    os.kill(first, signal.SIGSTOP)
    with pytest.raises(LostInsideError, match="no answer within") as caught:
        workers.query(place, "SELECT 1", (), 1, 0.1)
    assert caught.value.late
    assert first not in ours()
    assert rows(workers, place) == [[1]]


def test_one_that_does_not_even_read_is_ended(
    workers: DatabaseWorkers, place: DatabasePlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "_GRACE_SECONDS", 0.1)
    rows(workers, place)
    [first] = ours()
    os.kill(first, signal.SIGSTOP)
    with pytest.raises(LostInsideError, match="no answer within"):
        workers.query(place, f"SELECT '{'x' * 5_000_000}'", (), 1, 0.1)


def test_what_dies_while_it_holds_is_told_at_the_end(
    workers: DatabaseWorkers, place: DatabasePlace
) -> None:
    with pytest.raises(LostInsideError), workers.held(place, 5):
        [first] = ours()
        os.kill(first, signal.SIGKILL)
    with pytest.raises(ValueError, match="ours"), workers.held(place, 5):
        os.kill(ours()[0], signal.SIGKILL)
        raise ValueError("ours")


@pytest.fixture
def interruptible() -> Generator[None]:
    """However the tests were started: in the background of a shell, nothing can be interrupted."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_an_interruption_ends_what_nobody_waits_for(
    workers: DatabaseWorkers, place: DatabasePlace
) -> None:
    threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        workers.query(place, ENDLESS, (), 1, 60)
    assert ours() == []
    assert rows(workers, place) == [[1]]


def test_each_thread_has_its_own_and_it_ends_with_the_thread(
    workers: DatabaseWorkers, place: DatabasePlace
) -> None:
    found: list[list[list[object]]] = []
    rows(workers, place)
    [main] = ours()
    thread = threading.Thread(target=lambda: found.append(rows(workers, place)))
    thread.start()
    thread.join()
    assert found == [[[1]]]
    assert rows(workers, place) == [[1]]
    workers.check(
        DatabasePlace(str(Path(place.path).parents[1] / "x"), place.confinement), place.path
    )
    assert main in ours()
    assert len(ours()) == 2


def test_only_a_few_wait_for_questions(workers: DatabaseWorkers, place: DatabasePlace) -> None:
    for number in range(6):
        folder = Path(place.path).parents[1] / str(number)
        folder.mkdir()
        workers.check(DatabasePlace(str(folder / "app.db"), place.confinement), place.path)
    assert len(ours()) == 4


def test_a_fork_starts_its_own(workers: DatabaseWorkers, place: DatabasePlace) -> None:
    rows(workers, place)
    [first] = ours()
    child = os.fork()
    if child == 0:
        found = rows(workers, place) == [[1]]
        workers.close()
        os._exit(0 if found else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert rows(workers, place) == [[1]]
    assert ours() == [first]


def test_without_confinement_a_journal_still_removes_nothing(
    workers: DatabaseWorkers, place: DatabasePlace, tmp_path: Path
) -> None:
    victim = tmp_path / "victim"
    victim.write_text("theirs")
    free = DatabasePlace(place.path, Confinement(mode=ConfinementMode.OFF))
    for ask in (
        lambda: workers.query(free, "SELECT a FROM t", (), 1, 5).notes,
        lambda: workers.execute(free, "INSERT INTO t VALUES (2)", (), 5).notes,
        lambda: workers.compare(place.path, free, "app.db").notes,
    ):
        Path(f"{place.path}-journal").write_bytes(journal_naming(victim, Path(place.path)))
        assert ask() == (f"app.db-journal names {victim}, which was left alone",)
        assert victim.read_text() == "theirs"


def test_a_journal_that_comes_after_the_look_removes_nothing_either(
    workers: DatabaseWorkers, place: DatabasePlace, tmp_path: Path
) -> None:
    victim, journal = tmp_path / "victim", Path(f"{place.path}-journal")
    victim.write_text("theirs")
    planted = journal_naming(victim, Path(place.path))
    over = threading.Event()

    def plant() -> None:
        while not over.is_set():
            (tmp_path / "next").write_bytes(planted)
            (tmp_path / "next").rename(journal)

    thread = threading.Thread(target=plant)
    thread.start()
    try:
        for _ in range(200):
            with suppress(RefusedInsideError), workers.held(place, 1):
                pass
    finally:
        over.set()
        thread.join()
    assert victim.read_text() == "theirs"


FORGED: list[Value | bytes] = [
    b"",
    b"\xff\xff\xff\xff",
    b"\0\0\0\5NNNNN",
    b"\0\0\0\xffN",
    None,
    [True],
    [True, None],
    [False, "busy", 1, ""],
    [True, [["a"], [[1], [1, 2]], False, 0, []]],
    [True, [["a"], [[b"bytes"]], False, 0, []]],
    [True, [["a"], [[True]], False, 0, []]],
    [True, [["a"], [[[1]]], False, 0, []]],
    [True, [["a"], [[1]] * 11, False, 0, []]],
    [True, [["a"], [], False, -1, []]],
    [True, [[1], [], False, 0, []]],
    [True, [[], [], False, 0, "no list"]],
    [True, [[], [], False, True, []]],
    [True, {"a": 1}],
]


@pytest.mark.parametrize("forged", FORGED, ids=repr)
def test_a_forged_answer_is_no_answer(
    workers: DatabaseWorkers,
    place: DatabasePlace,
    forged: Value | bytes,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    data = forged if isinstance(forged, bytes) else framed(forged)
    program = f"import sys; sys.stdin.buffer.read(4); sys.stdout.buffer.write({data!r})"
    monkeypatch.setattr(worker, "_ARGV", (sys.executable, "-I", "-S", "-c", program))
    with pytest.raises(LostInsideError):
        workers.query(place, "SELECT a FROM t", (), 10, 5)


@pytest.mark.parametrize("parts", [[["t", "gone", 0, 0]], [["t", "added", 0]], [["t", 1, 0, 0]], 1])
def test_a_forged_difference_is_none(
    workers: DatabaseWorkers, place: DatabasePlace, parts: Value, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = framed([True, [parts, "", []]])
    program = f"import sys; sys.stdin.buffer.read(4); sys.stdout.buffer.write({data!r})"
    monkeypatch.setattr(worker, "_ARGV", (sys.executable, "-I", "-S", "-c", program))
    with pytest.raises(LostInsideError):
        workers.compare(place.path, place, "app.db")


def test_what_it_said_last_is_told(
    workers: DatabaseWorkers, place: DatabasePlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = "import sys; sys.exit('first\\nno such luck')"
    monkeypatch.setattr(worker, "_ARGV", (sys.executable, "-I", "-S", "-c", program))
    with pytest.raises(LostInsideError, match="it ended with 1: no such luck"):
        workers.query(place, "SELECT 1", (), 1, 5)


def test_an_answer_that_nobody_asked_for_makes_it_useless(
    workers: DatabaseWorkers, place: DatabasePlace
) -> None:
    rows(workers, place)
    [held] = workers._workers
    assert isinstance(held.talk, talk.Talk)
    held.talk._send(framed(("release",)), time.monotonic() + 5)
    time.sleep(0.3)
    first = ours()
    assert rows(workers, place) == [[1]]
    assert ours() != first


def test_what_is_no_database_is_told_apart(workers: DatabaseWorkers, place: DatabasePlace) -> None:
    Path(place.path).write_bytes(b"garbage" * 1000)
    with pytest.raises(RefusedInsideError) as caught, workers.held(place, 5):
        pass
    assert caught.value.kind == NO_DATABASE
    assert "not a database" in workers.check(place, place.path)
