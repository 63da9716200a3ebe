"""What one look at a path promises to the next."""

import os
from pathlib import Path

from cleveragents.infrastructure.files.entry import (
    RACY_NS,
    Entry,
    Kind,
    ManifestRow,
    shown,
    status_of,
)
from cleveragents.infrastructure.files.excludes import excludes
from cleveragents.infrastructure.files.tree_hash import token


def _stat(tmp_path: Path) -> os.stat_result:
    path = tmp_path / "f"
    path.write_text("x")
    return path.stat()


def test_a_file_just_touched_is_looked_at_again(tmp_path: Path) -> None:
    found = _stat(tmp_path)
    young = status_of(found, found.st_ctime_ns + RACY_NS)
    assert not young.seen(b"f").still_is(young)


def test_an_old_file_is_trusted_until_its_status_changes(tmp_path: Path) -> None:
    found = _stat(tmp_path)
    old = status_of(found, found.st_ctime_ns + RACY_NS + 1)
    seen = old.seen(b"f")
    assert seen.still_is(old)
    for name in ("mode", "size", "mtime_ns", "ctime_ns", "ino", "dev"):
        assert not seen.still_is(old._replace(**{name: getattr(old, name) + 1}))
    assert not seen.still_is(old._replace(kind=Kind.LINK))


def test_each_part_of_the_state_changes_the_token() -> None:
    entry = Entry(path=b"a", kind=Kind.FILE, mode=0o644, hash=b"h")
    others = [
        Entry(path=b"b", kind=Kind.FILE, mode=0o644, hash=b"h"),
        Entry(path=b"a", kind=Kind.DIR, mode=0o644, hash=b"h"),
        Entry(path=b"a", kind=Kind.FILE, mode=0o600, hash=b"h"),
        Entry(path=b"a", kind=Kind.FILE, mode=0o644, hash=b"i"),
        Entry(path=b"a", kind=Kind.FILE, mode=0o644, hash=b"h", target=b"t"),
        Entry(path=b"a", kind=Kind.FILE, mode=0o644, target=b"h"),
    ]
    assert len({token(entry), *map(token, others)}) == 7
    assert token(entry._replace(mtime_ns=9)) == token(entry)
    assert token(ManifestRow(*entry, ctime_ns=1, ino=2, dev=3)) == token(entry)


def test_paths_are_shown_as_text() -> None:
    assert shown("é".encode() + b"\xff") == "é\\xff"


def test_patterns() -> None:
    exclude = excludes(["build/", "*.o", "a/b", "**/cache"], frozenset({b".git"}))
    assert (b"build", True) in exclude
    assert (b"build", False) not in exclude
    assert (b"x/build", True) in exclude
    assert (b"x/y.o", False) in exclude
    assert (b"a/b/c", False) in exclude
    assert (b"a/bc", False) not in exclude
    assert (b"x/cache", True) in exclude
    assert (b"cache", True) in exclude
    assert (b".git", False) in exclude
    assert (b"x/.git", True) not in exclude
    assert (b"anything", True) not in excludes(["/", ""])
