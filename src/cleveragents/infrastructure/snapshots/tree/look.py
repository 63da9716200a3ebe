"""What is in a tree now: the paths that may differ are read, and git is asked about what is beside.

At a first look, and where many files have changed, git has much to say: it is asked in a thread of
its own while files are read.
"""

import time
from collections.abc import Callable
from contextlib import ExitStack

from cleveragents.infrastructure.files.entry import ManifestRow
from cleveragents.infrastructure.files.read_path import examine_file, examine_mapped, read_path
from cleveragents.infrastructure.files.rooted_folder import RootedFolder
from cleveragents.infrastructure.snapshots.beside import Beside, beside
from cleveragents.infrastructure.snapshots.changes.tracker import Candidates, ChangeTracker
from cleveragents.infrastructure.snapshots.tree.extra_state import ExtraRecord
from cleveragents.infrastructure.snapshots.tree.manifest import Delta
from cleveragents.infrastructure.snapshots.tree.session import Session, open_sandbox

# For fewer changed files a thread would not pay.
_MANY = 64
_Record = ExtraRecord | None


def looked(session: Session, tracker: ChangeTracker) -> tuple[Delta, Candidates, _Record]:
    """The record is None if what is beside the files certainly is as it was."""
    asked: list[Beside[_Record]] = []
    with ExitStack() as ending:

        def ask(work: Callable[[], _Record]) -> None:
            asked.append(ending.enter_context(beside(work)))

        if (head := session.head) is not None:
            found = captured(session, tracker, lambda: ask(session.extra_state_apart(head)))
        elif session.begins_small():
            found = captured(session, tracker)
        else:
            ask(session.read_extra_state)
            found = captured(session, tracker)
        return *found, asked[0].result() if asked else session.read_extra_state()


def captured(
    session: Session, tracker: ChangeTracker, of_many: Callable[[], None] = lambda: None
) -> tuple[Delta, Candidates]:
    """`of_many` is called before many files are read."""
    with open_sandbox(session.resource) as anchor:
        taken_ns = time.time_ns()
        found = tracker.candidates(anchor, session.exclude, session.known)
        if len(found.paths) > _MANY:
            of_many()
        return _read(session, anchor, found, taken_ns), found


def _read(session: Session, anchor: RootedFolder, found: Candidates, taken_ns: int) -> Delta:
    proven = session.proven(found, taken_ns)
    now: dict[bytes, ManifestRow | None] = dict(proven)
    left = [path for path in found.paths if path not in now]
    put, hashed = session.contents.put_file, session.hashing(left)
    files, mapped = session.likely_files(left), found.mapped
    plain = [path for path in left if path not in mapped]
    now |= {p: (examine_file if p in files else read_path)(anchor, p, put) for p in plain}
    now |= {p: examine_mapped(anchor, p, put, hashed) for p in left if p in mapped}
    return Delta(now=now, listing=found.listing, stat_index=found.stat_index, told=proven)
