"""Many snapshots are verified together: each content is read once, and whoever needs one that is
damaged is named."""

import hashlib
import sqlite3
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import closing
from pathlib import Path

import pytest
from pages_world import FILE, PLAN, Database, database
from tests.support.runners import adapters_in

from cleveragents.application.ports.runtime import Expected
from cleveragents.domain.checkpoint import Snapshot
from cleveragents.domain.ids import ResourceId
from cleveragents.domain.resource import PlanResource
from cleveragents.domain.resource_kinds import FS_DIRECTORY
from cleveragents.infrastructure.sandbox.checkpoint_manager import CheckpointManager
from cleveragents.infrastructure.sandbox.git.repository.state import GitBlobs
from cleveragents.infrastructure.snapshots.pages.base_copy import BasePages
from cleveragents.infrastructure.snapshots.store.content_store import ContentStore

__all__ = ["database"]

Reads = Counter[object]


class Folder:
    """A sandbox of a plain folder with two files, and the store that takes snapshots of it."""

    def __init__(self, top: Path) -> None:
        self.sandbox = top / "folder"
        self.sandbox.mkdir(parents=True)
        for name in ("a.txt", "b.txt"):
            (self.sandbox / name).write_text(f"{name} as it was\n")
        self.resource = PlanResource(
            resource_id=ResourceId("01ARZ3NDEKTSV4RRFFQ69G5FAY"),
            plan_id=PLAN,
            name="assets",
            type=FS_DIRECTORY.type,
            location=str(self.sandbox),
            base="",
            sandbox_path=str(self.sandbox),
        )
        self.store = CheckpointManager(adapters_in(top))

    def capture(self) -> Snapshot:
        return self.store.capture(self.resource)


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> Reads:
    """How often each content, blob of git, and block of a base copy was read."""
    found: Reads = Counter()
    read, blobs, check_block = ContentStore.read, GitBlobs.read, BasePages.check_block

    def counted(self: ContentStore, wanted: Mapping[bytes, str]):
        for key, pieces in read(self, wanted):
            found[key] += 1
            yield key, pieces

    def counted_blobs(self: GitBlobs, oids: Collection[str]) -> Iterator[bytes | None]:
        found.update(oids)
        return blobs(self, list(oids))

    def counted_block(self: BasePages, block: int, hashes: list[bytes], size: int) -> None:
        found[block] += 1
        check_block(self, block, hashes, size)

    monkeypatch.setattr(ContentStore, "read", counted)
    monkeypatch.setattr(GitBlobs, "read", counted_blobs)
    monkeypatch.setattr(BasePages, "check_block", counted_block)
    return found


def _five(world, change: Callable[[int], object]) -> list[Snapshot]:
    """Snapshots, each but the first after a change."""
    taken = [world.capture()]
    for number in range(2, 6):
        change(number)
        taken.append(world.capture())
    return taken


def _damaged(world, snapshots: list[Snapshot]) -> dict[str, str]:
    """The reasons, by ref."""
    expected = [Expected(ref=s.ref, state_hash=s.state_hash) for s in snapshots]
    damages = world.store.damages(world.resource, expected)
    return {snapshot.ref: reason for snapshot, reason in damages.items()}


def _edit(file: Path, *statements: str) -> None:
    with closing(sqlite3.connect(file)) as db:
        for statement in statements:
            assert db.execute(statement).rowcount
        db.commit()


def _lost(text: str) -> str:
    """Of the files' contents, the one of this text is lost."""
    return f"DELETE FROM contents WHERE hash=X'{hashlib.sha256(text.encode()).hexdigest()}'"


def _file_of(world) -> Path:
    return Path(world.resource.sandbox_path).parents[0] / "snapshots" / f"{PLAN}.db"


# --- trees --------------------------------------------------------------------------------------


def test_of_five_snapshots_of_a_checkout_each_content_is_read_once(world, reads: Reads) -> None:
    snapshots = _five(world, lambda n: (world.sandbox / f"new{n}").write_text(f"new {n}\n"))
    blobs = set(world.sh("git ls-tree -r HEAD --format='%(objectname)'").split())
    blobs -= {world.sh("git rev-parse HEAD:link").strip()}
    reads.clear()

    assert _damaged(world, snapshots) == {}

    assert set(reads.values()) == {1}
    assert blobs < reads.keys()
    assert {hashlib.sha256(f"new {n}\n".encode()).digest() for n in range(2, 6)} < reads.keys()


def test_of_five_snapshots_of_a_folder_each_content_is_read_once(
    folder: Folder, reads: Reads
) -> None:
    snapshots = _five(folder, lambda n: (folder.sandbox / "a.txt").write_text(f"a {n}\n"))
    reads.clear()

    assert _damaged(folder, snapshots) == {}

    texts = ["a.txt as it was\n", "b.txt as it was\n", *(f"a {n}\n" for n in range(2, 6))]
    assert reads == {hashlib.sha256(text.encode()).digest(): 1 for text in texts}


def test_what_was_proven_is_read_again_the_next_time(folder: Folder) -> None:
    snapshots = [folder.capture()]
    assert _damaged(folder, snapshots) == {}
    _edit(_file_of(folder), _lost("b.txt as it was\n"))
    assert list(_damaged(folder, snapshots)) == ["1"]


def test_a_lost_content_is_told_of_every_snapshot_that_needs_it_by_the_name_it_has_there(
    folder: Folder,
) -> None:
    changes: dict[int, Callable[[], object]] = {
        2: lambda: (folder.sandbox / "new").write_text("new\n"),
        3: lambda: (folder.sandbox / "other").write_text("other\n"),
        4: lambda: (folder.sandbox / "new").rename(folder.sandbox / "moved"),
        5: lambda: (folder.sandbox / "moved").unlink(),
    }
    snapshots = _five(folder, lambda n: changes[n]())
    _edit(_file_of(folder), _lost("new\n"))

    damages = _damaged(folder, snapshots)

    names = {ref: reason.partition("the content of ")[2] for ref, reason in damages.items()}
    assert names == {"2": "'new' is missing", "3": "'new' is missing", "4": "'moved' is missing"}


def test_a_blob_that_git_lost_is_told_of_every_snapshot_that_needs_it(world) -> None:
    snapshots = _five(world, lambda n: world.work("rm a.txt" if n == 4 else f"echo {n} > new"))
    blob = world.sh("git rev-parse HEAD:a.txt").strip()
    (world.project / ".git/objects" / blob[:2] / blob[2:]).unlink()

    damages = _damaged(world, snapshots)

    assert list(damages) == ["1", "2", "3"]
    assert all("'a.txt' is missing in git" in reason for reason in damages.values())


def test_wrong_rows_of_one_snapshot_are_told_of_that_one_only(folder: Folder) -> None:
    snapshots = _five(folder, lambda n: (folder.sandbox / "a.txt").write_text(f"a {n}\n"))
    with closing(sqlite3.connect(_file_of(folder))) as db:
        tables = [
            name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type='table'")
        ]
        for table in tables:
            columns = {row[1] for row in db.execute(f"PRAGMA table_info({table})")}
            if {"path", "seq", "mode"} <= columns:
                db.execute(f"UPDATE {table} SET mode=511 WHERE path=? AND seq=3", (b"a.txt",))
        assert db.total_changes == 1
        db.commit()

    damages = _damaged(folder, snapshots)

    assert list(damages) == ["3"]
    assert "the hash of snapshot 3 is not the one that was recorded" in damages["3"]


def test_one_snapshot_may_be_what_one_checkpoint_expects_and_another_does_not(
    folder: Folder,
) -> None:
    first = folder.capture()
    right = Expected(ref=first.ref, state_hash=first.state_hash)
    wrong = Expected(ref=first.ref, state_hash="sha256:" + "0" * 64)
    assert list(folder.store.damages(folder.resource, [wrong, right])) == [wrong]


def test_a_snapshot_file_that_is_no_database_is_told_of_every_snapshot(folder: Folder) -> None:
    snapshots = _five(folder, lambda n: (folder.sandbox / "a.txt").write_text(f"a {n}\n"))
    folder.store.close()
    _file_of(folder).write_bytes(b"nonsense" * 1000)
    assert list(_damaged(folder, snapshots)) == ["1", "2", "3", "4", "5"]


# --- databases ----------------------------------------------------------------------------------


def _five_of(database: Database) -> list[Snapshot]:
    update = "UPDATE t SET a=hex(randomblob(150)) WHERE id={}"
    return _five(database, lambda n: database.sql(update.format(300 * n)))


def _store_of(database: Database) -> Path:
    database.store.close()
    return database.top / "snapshots" / f"{PLAN}.db"


def test_of_five_snapshots_of_a_database_each_page_is_read_once(
    database: Database, reads: Reads
) -> None:
    snapshots = _five_of(database)
    with closing(sqlite3.connect(_store_of(database))) as db:
        pages = {key for (key,) in db.execute("SELECT hash FROM page_versions")}
        blocks = {block for (block,) in db.execute("SELECT block FROM page_bases")}
    reads.clear()

    assert _damaged(database, snapshots) == {}

    assert len(pages) > 4
    assert len(blocks) > 2
    assert reads == dict.fromkeys(pages | blocks, 1)


def test_a_damaged_base_copy_is_told_of_every_snapshot(database: Database) -> None:
    snapshots = _five_of(database)
    data = bytearray(database.base.read_bytes())
    data[9000] ^= 1
    database.base.write_bytes(data)

    damages = _damaged(database, snapshots)

    assert list(damages) == ["1", "2", "3", "4", "5"]
    assert all("has other bytes" in reason for reason in damages.values())


def test_a_damaged_page_is_told_of_every_snapshot_that_needs_it(database: Database) -> None:
    snapshots = _five_of(database)
    # The page of that row is changed by no later one.
    _edit(
        _store_of(database),
        "UPDATE contents SET data=zeroblob(length(data)) WHERE hash="
        f"(SELECT hash FROM page_versions WHERE tree='{FILE}' AND seq=3 ORDER BY page DESC)",
    )

    damages = _damaged(database, snapshots)

    assert list(damages) == ["3", "4", "5"]
    assert all("app.db at byte" in reason for reason in damages.values())


def test_a_wrong_sum_over_pages_is_told_of_that_snapshot_only(database: Database) -> None:
    snapshots = _five_of(database)
    _edit(_store_of(database), "UPDATE page_snapshots SET total=zeroblob(32) WHERE seq=3")
    assert list(_damaged(database, snapshots)) == ["3"]
