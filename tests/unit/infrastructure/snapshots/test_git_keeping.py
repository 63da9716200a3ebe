"""What git keeps for a checkout, nobody else can read: others have to store it."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from msgspec.structs import replace

from cleveragents.application.ports.runtime import Expected
from cleveragents.domain.ids import ResourceId
from cleveragents.domain.resource import PlanResource
from cleveragents.domain.resource_kinds import FS_DIRECTORY, SQLITE, ResourceType

MIB = 1 << 20
PAGE = 4096
SETUP = f"echo license > LICENSE; : > empty; head -c {4 * MIB} /dev/zero > m.bin; seq 99999 > long"
OTHER = ResourceId("01ARZ3NDEKTSV4RRFFQ69G5FAX")


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory, world_class) -> Path:
    return world_class(tmp_path_factory.mktemp("template"), SETUP).project


@pytest.fixture
def checkout(tmp_path: Path, project: Path, world_class):
    return world_class(tmp_path / "w", template=project)


def _beside(checkout, kind: ResourceType, path: Path) -> PlanResource:
    """Another resource of the same plan."""
    return replace(
        checkout.resource,
        resource_id=OTHER,
        name="other",
        type=kind,
        location=str(path),
        sandbox_path=str(path),
        base="",
        details={},
    )


def _comes_back(checkout, other: PlanResource, spoil: Callable[[], object]) -> None:
    """Both are captured, the checkout first, the other is spoilt, and restored."""
    first = checkout.capture()
    taken = checkout.store.capture(other)
    spoil()
    checkout.store.capture(other)
    restored = checkout.store.restore(other, taken.ref)
    assert restored.snapshot.state_hash == taken.state_hash
    checkout.verify(first.ref, first.state_hash)


@pytest.mark.parametrize("name", ["LICENSE", "empty", "m.bin", "long"])
def test_a_folder_with_a_file_that_the_checkout_has_too(checkout, name: str) -> None:
    folder = checkout.top / "folder"
    folder.mkdir()
    data = (checkout.sandbox / name).read_bytes()
    (folder / "same").write_bytes(data)
    (folder / "larger").write_bytes(data + b"\0" * 5 * MIB)
    other = _beside(checkout, FS_DIRECTORY.type, folder)
    _comes_back(checkout, other, lambda: [path.unlink() for path in folder.iterdir()])
    assert (folder / "same").read_bytes() == data
    assert (folder / "larger").read_bytes() == data + b"\0" * 5 * MIB


def test_a_checkout_with_a_file_that_another_one_tracks(checkout, make_world) -> None:
    second = make_world("", "second")
    (second.sandbox / "untracked").write_text("license\n")
    other = replace(second.resource, resource_id=OTHER, name="other")
    _comes_back(checkout, other, (second.sandbox / "untracked").unlink)
    assert (second.sandbox / "untracked").read_text() == "license\n"


def test_a_database_with_a_page_that_the_checkout_has_as_a_file(tmp_path, make_world) -> None:
    place = tmp_path / "data.db"

    def fill(text: str) -> None:
        with closing(sqlite3.connect(place)) as db, db:
            db.execute("CREATE TABLE IF NOT EXISTS t (a)")
            db.execute("INSERT INTO t VALUES (?)", (text * 2000,))

    fill("a")
    fill("b")
    pages = place.read_bytes()
    place.unlink()
    fill("a")
    for at in range(PAGE, len(pages), PAGE):
        (tmp_path / f"page{at}").write_bytes(pages[at : at + PAGE])
    checkout = make_world(f"cp {tmp_path}/page* .")
    checkout.capture()
    other = _beside(checkout, SQLITE.type, place)
    checkout.store.capture(other)
    fill("b")
    taken = checkout.store.capture(other)
    place.write_bytes(pages[:PAGE])
    checkout.store.restore(other, taken.ref)
    with closing(sqlite3.connect(place)) as db:
        assert [a for (a,) in db.execute("SELECT a FROM t")] == ["a" * 2000, "b" * 2000]


def test_damage_to_what_a_folder_stored_is_no_damage_of_the_checkout(checkout) -> None:
    folder = checkout.top / "folder"
    folder.mkdir()
    (folder / "same").write_text("license\n")
    other = _beside(checkout, FS_DIRECTORY.type, folder)
    first, taken = checkout.capture(), checkout.store.capture(other)
    with closing(sqlite3.connect(checkout.database)) as db, db:
        assert db.execute("UPDATE contents SET data=x'00' WHERE size=8").rowcount == 1
    checkout.verify(first.ref, first.state_hash)
    expected = Expected(ref=taken.ref, state_hash=taken.state_hash)
    assert "'same'" in checkout.store.damages(other, [expected])[expected]


# --- parts of large files -----------------------------------------------------------------------


@pytest.mark.parametrize("name", ["a.bin", "z.bin"], ids=["looked at first", "looked at last"])
@pytest.mark.parametrize("later", [True, False])
def test_a_large_file_with_a_part_that_is_a_tracked_file(checkout, name: str, later) -> None:
    if later:
        checkout.capture()
    # Its parts are two times what the tracked m.bin is, and then what LICENSE is.
    data = b"\0" * 8 * MIB + b"license\n"
    (checkout.sandbox / name).write_bytes(data)
    taken = checkout.capture()
    checkout.verify(taken.ref, taken.state_hash)
    checkout.work(f"rm {name} m.bin LICENSE")
    checkout.capture()
    checkout.restore(taken.ref)
    assert (checkout.sandbox / name).read_bytes() == data
    assert (checkout.sandbox / "LICENSE").read_text() == "license\n"


def test_what_git_keeps_is_not_stored_when_it_is_put_again(checkout) -> None:
    first = checkout.capture()
    checkout.work("touch LICENSE m.bin long; cp long copy")
    again = checkout.capture()
    assert again.size_bytes == 0
    checkout.work("rm long copy")
    checkout.capture()
    checkout.restore(again.ref)
    assert (checkout.sandbox / "copy").read_bytes() == (checkout.project / "long").read_bytes()
    checkout.verify(first.ref, first.state_hash)


def test_what_no_snapshot_needs_any_more_is_forgotten(checkout) -> None:
    checkout.capture()
    checkout.work("rm long")
    last = checkout.capture()
    checkout.store.keep_only(checkout.resource, [last.ref])
    with closing(sqlite3.connect(checkout.database)) as db:
        kept = {size for (size,) in db.execute("SELECT size FROM git_contents")}
    assert len(b"license\n") in kept
    assert (checkout.project / "long").stat().st_size not in kept
    checkout.verify(last.ref, last.state_hash)
