"""Whatever is done to a tree, in whatever order it is undone, each snapshot comes back exactly."""

import os
import shutil
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

NAMES = st.sampled_from(
    ["a.txt", "src", "src/b.txt", "d", "d/e", "d/e/f", os.fsdecode(b"\xff"), "n\nl"]
)
MODES = [0o600, 0o755, 0o444, 0o500, 0o1777, 0o000, 0o200, 0o300, 0o100]
OPERATIONS = st.one_of(
    st.tuples(st.just("write"), NAMES, st.binary(max_size=6)),
    st.tuples(st.just("remove"), NAMES, st.none()),
    st.tuples(st.just("folder"), NAMES, st.none()),
    st.tuples(st.just("link"), NAMES, st.sampled_from(["nowhere", "src", "/etc", ".."])),
    st.tuples(st.just("mode"), NAMES, st.sampled_from(MODES)),
    st.tuples(st.just("rename"), NAMES, NAMES),
)


def _do(root: Path, operation: str, name: str, value) -> None:
    with suppress(PermissionError):  # a folder above is closed to whoever is not root
        _try(root, operation, name, value)


def _try(root: Path, operation: str, name: str, value) -> None:
    path = root / name
    if operation == "mode":
        if path.exists() and not path.is_symlink():
            path.chmod(value)
    elif operation == "rename":
        if os.path.lexists(path) and not value.startswith(name):
            _clear(root, value)
            if os.path.lexists(path):
                path.rename(root / value)
    else:
        _clear(root, name)
        _make(path, operation, value)


def _make(path: Path, operation: str, value) -> None:
    if operation == "write":
        path.write_bytes(value)
    elif operation == "folder":
        path.mkdir()
    elif operation == "link":
        path.symlink_to(value)


def _clear(root: Path, name: str) -> None:
    """Make room at a path: real folders above it, nothing at it."""
    path = root / name
    for parent in reversed(path.relative_to(root).parents[:-1]):
        folder = root / parent
        if folder.is_symlink() or folder.is_file():
            folder.unlink()
        folder.mkdir(exist_ok=True)
    if path.is_symlink() or path.is_file():
        path.unlink()
    elif path.is_dir():
        path.chmod(0o700)
        shutil.rmtree(path)


@pytest.fixture(scope="module")
def shared(world_class, tmp_path_factory: pytest.TempPathFactory):
    """One world for all histories: each begins where the first snapshot was taken."""
    world = world_class(tmp_path_factory.mktemp("histories") / "w")
    world.capture()
    return world


@settings(max_examples=30, deadline=None)
@given(
    history=st.lists(st.lists(OPERATIONS, min_size=1, max_size=4), min_size=1, max_size=5),
    picks=st.lists(st.integers(0, 5), min_size=1, max_size=5),
    fresh=st.booleans(),
)
def test_any_history_can_be_walked_in_any_order(shared, history, picks, fresh) -> None:
    shared.restore("1")
    taken = [(shared.capture(), shared.state())]
    for operations in history:
        for operation, name, value in operations:
            _do(shared.sandbox, operation, name, value)
        taken.append((shared.capture(), shared.state()))
    for pick in picks:
        if fresh:
            shared.new_process()
        snapshot, state = taken[pick % len(taken)]
        restored = shared.restore(snapshot.ref)
        assert shared.state() == state
        assert restored.snapshot.state_hash == snapshot.state_hash
    for snapshot, _ in taken:
        shared.verify(snapshot.ref, snapshot.state_hash)
    shared.store.keep_only(shared.resource, ["1", taken[-1][0].ref])
    shared.verify(taken[-1][0].ref, taken[-1][0].state_hash)


def _below(chosen: set[bytes], path: bytes) -> bool:
    return any(path == one or path.startswith(one + b"/") for one in chosen)


@settings(max_examples=40, deadline=None)
@given(
    before=st.lists(OPERATIONS, max_size=5),
    after=st.lists(OPERATIONS, min_size=1, max_size=5),
    names=st.sets(NAMES, min_size=1, max_size=3),
    captured=st.booleans(),
)
def test_chosen_paths_come_back_and_everything_else_stays(
    shared, before, after, names, captured
) -> None:
    shared.restore("1")
    for operation, name, value in before:
        _do(shared.sandbox, operation, name, value)
    target, wanted = shared.capture(), shared.state()
    for operation, name, value in after:
        _do(shared.sandbox, operation, name, value)
    if captured:
        shared.capture()
    present, git = shared.state(), shared.git()
    foretold = shared.store.compare(shared.resource, target.ref, names)

    restored = shared.store.restore_paths(shared.resource, target.ref, names)

    chosen, now = {os.fsencode(name) for name in names}, shared.state()
    for path in wanted.keys() | present.keys() | now.keys():
        if _below(chosen, path):
            assert now.get(path) == wanted.get(path), path
    # Elsewhere only folders that a chosen path needs, and what stood in their place.
    for path in present.keys() | now.keys():
        if not _below(chosen, path) and now.get(path) != present.get(path):
            in_the_way = any(
                path == folder or path.startswith(folder + b"/")
                for one in chosen
                for folder in map(os.fsencode, Path(os.fsdecode(one)).parents[:-1])
            )
            assert in_the_way, path
    assert [change.path for change in restored.changes] == [change.path for change in foretold]
    assert shared.git() == git
    shared.verify(restored.snapshot.ref, restored.snapshot.state_hash)
    again = shared.store.restore_paths(shared.resource, target.ref, names)
    assert (again.changes, again.snapshot.ref) == ((), restored.snapshot.ref)
