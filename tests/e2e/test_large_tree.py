"""A tree of thousands of files is sifted from command to command, and nothing falls through."""

import sqlite3
import time
from contextlib import closing

from tests.support.trees import tree_of
from tests.support.world import World, shell

FOLDERS, FILES = 50, 100
# The second in which a file changed has to be over before a stat index can tell of it.
OLD = 1.2


def test_what_was_done_between_two_commands_is_captured_and_taken_back(world: World) -> None:
    make = (
        f"for d in $(seq {FOLDERS}); do mkdir d$d; for f in $(seq {FILES}); do"
        " echo $d $f > d$d/f$f; done; done"
    )
    plan = world.run(shell(make))
    time.sleep(OLD)
    for number in range(2):
        plan("checkpoint", "create", "--label", f"quiet {number}").ok()
    assert _has_sieve(world)
    before = tree_of(plan.sandbox)

    (plan.sandbox / "d7/f7").write_text("7 8\n")
    (plan.sandbox / "d8/f8").unlink()
    (plan.sandbox / "d9/new").mkdir()
    (plan.sandbox / "d9/new/file").write_text("new")
    after = tree_of(plan.sandbox)
    plan("checkpoint", "create", "--label", "changed").ok()
    assert _has_sieve(world)

    plan.rollback(plan.group("quiet 1").group_id).ok()
    assert tree_of(plan.sandbox) == before
    plan.rollback(plan.group("changed").group_id).ok()
    assert tree_of(plan.sandbox) == after


def _has_sieve(world: World) -> bool:
    with closing(sqlite3.connect(next(world.agents.data_dir.glob("snapshots/*.db")))) as db:
        return db.execute("SELECT COUNT(*) FROM stat_indexes").fetchone() == (1,)
