"""The rules of the store: what counts as a change, and what is kept."""

import os
import socket
import stat
import time

import pytest
from msgspec.structs import replace

from cleveragents.domain.changes import ChangeKind
from cleveragents.domain.errors import SnapshotDamagedError
from cleveragents.infrastructure.sandbox.git.repository.own_repository import make_repository


def _changes(result) -> dict[str, ChangeKind]:
    return {change.path: change.kind for change in result.changes}


ADDED, MODIFIED, DELETED = ChangeKind.ADDED, ChangeKind.MODIFIED, ChangeKind.DELETED
MIB = 1 << 20


# --- what counts as a change --------------------------------------------------------------------


def test_an_unchanged_sandbox_gives_the_same_snapshot(world) -> None:
    first = world.capture()
    for _ in range(2):
        again = world.capture()
        assert (again.ref, again.state_hash) == (first.ref, first.state_hash)
        assert (again.changes, again.size_bytes) == ((), 0)
        world.new_process()


def test_a_first_snapshot_has_no_changes(world) -> None:
    assert world.capture().changes == ()


def test_changes_name_files_links_and_empty_folders(world) -> None:
    world.capture()
    world.work("echo x > a.txt; rm src/b.txt; mkdir -p new/empty; echo y > new/y; ln -sf x link")
    second = world.capture()
    expected = {"a.txt": MODIFIED, "src/b.txt": DELETED, "new/empty": ADDED}
    assert _changes(second) == expected | {"new/y": ADDED, "link": MODIFIED}


def test_a_folder_counts_only_where_it_is_empty(world) -> None:
    world.work("mkdir hollow")
    world.capture()
    world.work("chmod 700 hollow src; rm -r src/b.txt; echo x > src/c")
    assert _changes(world.capture()) == {
        "hollow": MODIFIED,
        "src/b.txt": DELETED,
        "src/c": ADDED,
    }
    world.work("rmdir hollow; echo x > hollow")
    assert _changes(world.capture()) == {"hollow": MODIFIED}
    world.work("rm hollow; mkdir hollow; echo x > hollow/x")
    assert _changes(world.capture()) == {"hollow": DELETED, "hollow/x": ADDED}


def test_a_restore_tells_what_it_did(world) -> None:
    first = world.capture()
    world.work("echo x > a.txt; rm src/b.txt; echo new > new")
    restored = world.restore(first.ref)
    assert _changes(restored) == {"a.txt": MODIFIED, "src/b.txt": ADDED, "new": DELETED}
    assert world.restore(first.ref).changes == ()


def test_changes_between_any_two(world) -> None:
    first = world.capture()
    world.work("echo x > a.txt; mkdir e")
    second = world.capture()
    world.work("echo one > a.txt; rmdir e; rm src/b.txt")
    third = world.capture()

    def between(old, new) -> dict[str, ChangeKind]:
        found = world.store.changes_between(world.resource, old.ref, new.ref)
        return {change.path: change.kind for change in found}

    assert between(first, second) == {"a.txt": MODIFIED, "e": ADDED}
    assert between(second, first) == {"a.txt": MODIFIED, "e": DELETED}
    assert between(first, third) == {"src/b.txt": DELETED}
    assert between(third, third) == {}


def test_the_same_state_has_the_same_hash_on_another_way(world) -> None:
    first = world.capture()
    world.work("mv a.txt b; echo x > c")
    assert world.capture().state_hash != first.state_hash
    world.work("mv b a.txt; rm c; touch a.txt")
    again = world.capture()
    assert again.state_hash == first.state_hash
    assert again.ref != first.ref


def test_a_same_size_edit_with_the_old_times_is_seen(world) -> None:
    world.work("touch -d '2020-01-01' a.txt")
    time.sleep(0.1)  # old enough to be trusted by its times
    world.capture()
    path = world.sandbox / "a.txt"
    before = path.stat()
    path.write_text("eno\n")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    world.new_process()
    assert _changes(world.capture()) == {"a.txt": MODIFIED}


def test_edits_within_one_clock_tick_are_seen(world) -> None:
    path = world.sandbox / "a.txt"
    for number in range(60):
        path.write_text(f"{number:04}")
        assert world.capture().ref == str(number + 1)


def test_names_that_are_not_utf8_are_shown_escaped(world) -> None:
    world.capture()
    (world.sandbox / os.fsdecode(b"\xffx\n")).touch()
    assert _changes(world.capture()) == {"\\xffx\n": ADDED}


def test_sockets_and_pipes_are_reported_and_left_alone(world) -> None:
    first = world.capture()
    os.mkfifo(world.sandbox / "pipe")
    with socket.socket(socket.AF_UNIX) as server:
        here = os.open(world.sandbox, os.O_RDONLY)
        server.bind(f"/proc/self/fd/{here}/sock")
        os.close(here)
    again = world.capture()
    assert (again.ref, again.skipped) == (first.ref, ("pipe", "sock"))
    world.restore(first.ref)
    assert stat.S_ISFIFO((world.sandbox / "pipe").stat().st_mode)


def test_a_pipe_does_not_keep_its_folder_alive(world) -> None:
    first = world.capture()
    world.work("mkdir d; mkfifo d/pipe; echo x > d/x; rm a.txt; mkfifo a.txt")
    world.restore(first.ref)
    assert not (world.sandbox / "d").exists()
    assert (world.sandbox / "a.txt").read_text() == "one\n"


# --- excludes -----------------------------------------------------------------------------------


def test_excluded_paths_are_not_captured_and_left_in_place(world) -> None:
    world.excluding("target/", "*.tmp", "src/gen", "./cache")
    first, before = world.capture(), world.state()
    world.work("mkdir -p target/x src/gen cache new/deep; echo 1 > target/x/y; echo 1 > src/gen/g")
    world.work("echo 1 > cache/c; echo 1 > new/deep/a.tmp; echo 1 > new/f; echo 1 > b.tmp")
    second = world.capture()
    assert _changes(second) == {"new/f": ADDED}
    world.restore(first.ref)
    left = set(world.state()) - set(before)
    assert left == {b"target", b"target/x", b"target/x/y", b"src/gen", b"src/gen/g", b"cache"} | {
        b"cache/c",
        b"b.tmp",
        b"new",
        b"new/deep",
        b"new/deep/a.tmp",
    }
    assert world.capture().state_hash == first.state_hash
    world.restore(second.ref)
    assert world.capture().state_hash == second.state_hash
    assert (world.sandbox / "new/f").exists()


def test_a_folder_pattern_does_not_match_a_file(world) -> None:
    world.excluding("target/")
    world.capture()
    world.work("echo x > target")
    assert _changes(world.capture()) == {"target": ADDED}


# --- contents -----------------------------------------------------------------------------------


def test_one_changed_chunk_of_a_large_file_stores_one_chunk(world) -> None:
    path = world.sandbox / "large"
    path.write_bytes(os.urandom(21 * MIB))
    first = world.capture()
    assert first.size_bytes > 21 * MIB
    before = path.read_bytes()
    with path.open("r+b") as file:
        file.seek(9 * MIB)
        file.write(b"changed")
    second = world.capture()
    assert 4 * MIB <= second.size_bytes < 4.1 * MIB
    world.restore(first.ref)
    assert path.read_bytes() == before
    assert world.store.keep_only(world.resource, [first.ref]) >= 3.9 * MIB
    world.verify(first.ref, first.state_hash)


def test_equal_content_is_stored_once(world) -> None:
    world.capture()
    data = os.urandom(100_000)
    for name in "abc":
        (world.sandbox / name).write_bytes(data)
    assert world.capture().size_bytes < 110_000


def test_the_store_is_private(world) -> None:
    world.capture()
    assert stat.S_IMODE(world.database.stat().st_mode) == 0o600
    assert stat.S_IMODE(world.database.parent.stat().st_mode) == 0o700


# --- keeping and forgetting ---------------------------------------------------------------------


def test_keep_only_frees_what_nobody_needs(world) -> None:
    kept, states = [], []
    for number in range(6):
        (world.sandbox / "big").write_bytes(os.urandom(MIB))
        (world.sandbox / f"f{number}").write_text(str(number))
        (world.sandbox / f"f{number - 2}").unlink(missing_ok=True)
        kept.append(world.capture())
        states.append(world.state())
    world.store.close()  # so that all of it is in the file, and nothing in its journal
    size = world.database.stat().st_size
    freed = world.store.keep_only(world.resource, [kept[1].ref, kept[3].ref])
    assert 3 * MIB <= freed < 3.2 * MIB
    assert world.database.stat().st_size <= size - 2.9 * MIB
    assert world.capture().ref == kept[5].ref
    for number in (0, 2, 4):
        with pytest.raises(SnapshotDamagedError):
            world.verify(kept[number].ref, kept[number].state_hash)
    for number in (3, 1, 5, 3):
        world.verify(kept[number].ref, kept[number].state_hash)
        world.restore(kept[number].ref)
        assert world.state() == states[number]
    assert world.store.keep_only(world.resource, [one.ref for one in kept]) >= 0


def test_what_is_little_waits_for_a_later_sweep(world) -> None:
    (world.sandbox / "big").write_bytes(os.urandom(2 * MIB))
    first = world.capture()
    (world.sandbox / "small").write_bytes(os.urandom(10_000))
    passing = world.capture()
    (world.sandbox / "small").unlink()
    last = world.capture()
    kept = [first.ref, last.ref]
    assert world.store.keep_only(world.resource, kept, if_worth=True) == 0
    world.verify(passing.ref, passing.state_hash)
    world.store.keep_only(world.resource, kept)
    with pytest.raises(SnapshotDamagedError):
        world.verify(passing.ref, passing.state_hash)


@pytest.mark.parametrize("times", [1, 5])
def test_what_is_much_of_the_store_goes_at_once(world, times: int) -> None:
    """Also if it has come together from little."""
    (world.sandbox / "big").write_bytes(os.urandom(2 * MIB))
    kept = [world.capture().ref]
    passing = []
    for number in range(times):
        (world.sandbox / "file").write_bytes(os.urandom(MIB // times))
        passing.append(world.capture())
        (world.sandbox / "file").write_bytes(str(number).encode())
        kept.append(world.capture().ref)
    assert world.store.keep_only(world.resource, kept, if_worth=True) > 0.9 * MIB
    for one in passing:
        with pytest.raises(SnapshotDamagedError):
            world.verify(one.ref, one.state_hash)


def test_what_a_kept_snapshot_has_too_is_not_counted_as_free(world) -> None:
    path = world.sandbox / "big"
    path.write_bytes(os.urandom(2 * MIB))
    first = world.capture()
    path.write_bytes(b"gone")
    second = world.capture()
    back = world.restore(first.ref).snapshot
    path.write_bytes(b"gone again")
    last = world.capture()
    kept = [first.ref, second.ref, last.ref]
    assert world.store.keep_only(world.resource, kept, if_worth=True) == 0
    world.verify(back.ref, back.state_hash)


def test_two_trees_of_one_plan_share_a_store_but_no_state(world) -> None:
    first = world.capture()
    one = world.resource
    world.resource = replace(
        one, resource_id="01ARZ3NDEKTSV4RRFFQ69G5FAX", sandbox_path=str(world.top / "second")
    )
    make_repository(world.resource)
    other = world.capture()
    world.store.keep_only(world.resource, [other.ref])
    world.verify(other.ref, other.state_hash)
    world.resource = one
    world.verify(first.ref, first.state_hash)


def test_forget_removes_the_files(world) -> None:
    world.capture()
    world.store.forget(world.resource.plan_id)
    world.store.forget(world.resource.plan_id)
    assert list(world.database.parent.iterdir()) == []
    assert world.capture().ref == "1"
