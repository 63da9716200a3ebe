"""A restore that fails half-way leaves a tree that the next restore of the same process knows."""

import pytest

from cleveragents.domain.errors import RestoreFailedError, SnapshotDamagedError
from cleveragents.infrastructure.snapshots.changes.watcher import Watcher


@pytest.fixture
def two_states(world):
    first = world.capture()
    world.work("echo changed > a.txt; rm src/b.txt; echo new > new.txt; ln -sf run.sh link")
    return first, world.capture(), world.state()


@pytest.mark.parametrize("single", [(), ("a.txt", "new.txt", "src")])
def test_the_present_can_be_put_back_after_the_proof_failed(
    world, two_states, single, monkeypatch
) -> None:
    first, present, before = two_states
    real = Watcher.look_again

    def disturbed(self, anchor, known, paths) -> None:
        real(self, anchor, known, paths)
        world.work("echo somebody else > a.txt")

    with monkeypatch.context() as patch:
        patch.setattr(Watcher, "look_again", disturbed)
        with pytest.raises(RestoreFailedError, match=r"'a\.txt' is not what it should be"):
            if single:
                world.store.restore_paths(world.resource, first.ref, single)
            else:
                world.restore(first.ref)
    assert world.state() != before

    restored = world.restore(present.ref)

    assert world.state() == before
    assert restored.snapshot.state_hash == present.state_hash


def test_rows_that_do_not_come_to_the_hash_are_refused_before_anything_changes(
    world, two_states
) -> None:
    first, present, before = two_states
    with world.trees.reading(world.resource) as reader:
        database = reader.session.versions.db
        for table in ("versions", "recent_paths"):
            database.execute(f"UPDATE {table} SET mode=511 WHERE path=? AND seq=1", (b"a.txt",))
        database.execute("COMMIT")
        database.execute("BEGIN")

    with pytest.raises(SnapshotDamagedError, match="would not have the hash"):
        world.restore(first.ref)

    assert world.state() == before
    with pytest.raises(SnapshotDamagedError, match="not the one that was recorded"):
        world.store.verify_restorable(world.resource, first.ref, first.state_hash)
    world.store.verify_restorable(world.resource, present.ref, present.state_hash)
