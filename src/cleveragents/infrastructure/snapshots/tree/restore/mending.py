"""Contents damaged in the store that the sandbox still has: stored anew before its own copy goes.

A safety group shares what was stored before, and nobody has read that since. So whatever is about
to replace files reads first what is stored of them (ADR 0037).
"""

import hashlib
from collections.abc import Mapping

from cleveragents.domain.errors import SnapshotDamagedError, SnapshotFailedError
from cleveragents.infrastructure.files.entry import Entry, Kind, shown
from cleveragents.infrastructure.files.read_path import read_path
from cleveragents.infrastructure.files.rooted_folder import RootedFolder
from cleveragents.infrastructure.snapshots.damage import mended
from cleveragents.infrastructure.snapshots.store.plan_store import keep_so_far
from cleveragents.infrastructure.snapshots.tree.session import Session, needed_contents


def mend_files(session: Session, anchor: RootedFolder, present: Mapping[bytes, Entry]) -> list[str]:
    """`present` are files of the newest snapshot as the sandbox still has them.

    Gives back what to tell people. Durable when this returns. Raises SnapshotDamagedError if the
    sandbox does not have one of the damaged contents either.
    """
    files = {p: entry for p, entry in present.items() if entry.kind is Kind.FILE}
    needed = needed_contents(files)
    fresh = session.just_stored
    damaged = session.contents.damaged({k: name for k, name in needed.items() if k not in fresh})
    if not damaged:
        return []
    paths = {entry.hash: path for path, entry in files.items()}
    for key in damaged:
        _store_anew(session, anchor, paths[key], key)
    session.finish()
    keep_so_far(session.present.db)
    return [mended(repr(shown(paths[key]))) for key in damaged]


def mend_side(session: Session) -> list[str]:
    """The same for what the newest snapshot has beside its files."""
    head = session.head
    stored = session.versions.side_contents(head.seq) if head else {}
    damaged = session.contents.damaged({key: name for name, key in stored.items()})
    if not damaged or head is None:
        return []
    record = session.side.read(None)
    if record is None or record.identity != head.identity:
        raise SnapshotDamagedError(
            session.resource.name, "its git state is damaged, and is not what the sandbox has now"
        )
    hashes = {name: _kept(session, data, damaged) for name, data in record.contents.items()}
    session.versions.replace_side(head.seq, hashes)
    session.finish()
    keep_so_far(session.present.db)
    return [mended(f"the git state of `{session.resource.name}`")]


def _store_anew(session: Session, anchor: RootedFolder, path: bytes, key: bytes) -> None:
    try:
        # Read before anything is given up for it.
        for sink in (session.contents.hash_file, session.contents.renew):
            seen = read_path(anchor, path, sink)
            if seen is None or seen.hash != key:
                raise _lost(session, path)
    except SnapshotFailedError as error:
        raise _lost(session, path) from error


def _kept(session: Session, data: bytes, damaged: list[bytes]) -> bytes:
    key = hashlib.sha256(data).digest()
    if key in damaged:
        session.contents.renew((data,), b"", len(data))
        return key
    return session.contents.put(data)


def _lost(session: Session, path: bytes) -> SnapshotDamagedError:
    name = shown(path)
    return SnapshotDamagedError(
        session.resource.name,
        f"the content of {name!r} is, and the sandbox has another one by now that no checkpoint"
        f" knows: `touch` it there, so that the next one does",
    )
