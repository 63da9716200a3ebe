"""The state of the user's own repository beside its files, read without changing any of it.

What counts: HEAD, the index, branches, tags, the stash and an operation in progress. What does
not: remote branches, settings, hooks, logs, packs; that settings and hooks have changed is told.
Reading, in its order: marks of all these files; their bytes; marks again. If somebody's git has
worked in between, it is read anew (ADR 0102).
"""

import hashlib
import json
import os
import re
import time
from collections.abc import Iterator, Mapping

from msgspec import Struct, convert, field

from cleveragents.domain.errors import SnapshotFailedError
from cleveragents.infrastructure.files.durable_files import below, read_file
from cleveragents.infrastructure.files.entry import RACY_NS
from cleveragents.infrastructure.sandbox.git.command import Git
from cleveragents.infrastructure.sandbox.git.inside import GitUnansweredError
from cleveragents.infrastructure.sandbox.git.repository.ref_files import read_refs
from cleveragents.infrastructure.sandbox.in_place.git_there import (
    HEAD,
    git_folder,
    head_of,
    why_not,
)

STASH = "refs/stash"
STASH_LOG = "logs/refs/stash"
INDEX, INDEX_LOCK = "index", "index.lock"
_COUNTED = (b"refs/heads/", b"refs/tags/", STASH.encode())
_OPERATION_FILES = (
    *("MERGE_HEAD", "MERGE_MSG", "MERGE_MODE", "MERGE_AUTOSTASH", "AUTO_MERGE", "SQUASH_MSG"),
    *("CHERRY_PICK_HEAD", "REVERT_HEAD", "REBASE_HEAD", "MERGE_RR"),
    *("BISECT_LOG", "BISECT_NAMES", "BISECT_START", "BISECT_TERMS", "BISECT_EXPECTED_REV"),
)
OPERATION_FOLDERS = ("rebase-merge", "rebase-apply", "sequencer")
_TRIES, _PAUSE_SECONDS = 50, 0.1
# So often git has to fail over the same bytes before it is believed that it cannot read them.
_FAILURES = 3
_UNREAD = "unread "
_HEADS = re.compile(rb"ref: refs/[^\s\0]+|[0-9a-f]{40}(?:[0-9a-f]{24})?")
_OID = re.compile(rb"\b[0-9a-f]{40}(?:[0-9a-f]{24})?\b")


class RepositoryState(Struct, frozen=True, kw_only=True):
    """What counts, as it is stored. `index` is the hash of what the index says, not of its bytes;
    `operation` the hash of each file that an operation in progress has. `told` is only compared:
    settings and hooks. Where there is no repository, or none that can be worked with, which is
    `why`, all of it is empty, and it `is_gone`."""

    head: str = ""
    refs: Mapping[str, str] = field(default_factory=dict[str, str])
    index: str = ""
    operation: Mapping[str, str] = field(default_factory=dict[str, str])
    stash_log: str = ""
    is_gone: bool = False
    why: str = ""

    @classmethod
    def of(cls, identity: str) -> "RepositoryState":
        # Names of branches are bytes, which not every reader of JSON takes.
        return convert(json.loads(identity), cls) if identity else cls(is_gone=True)

    @property
    def identity(self) -> str:
        told = {name: getattr(self, name) for name in self.__struct_fields__}
        if not self.why:
            del told["why"]
        return json.dumps(told, sort_keys=True)

    @property
    def branch(self) -> str:
        """The name that HEAD stands for, if it is one."""
        return self.head.removeprefix("ref: ") if self.head.startswith("ref: ") else ""

    @property
    def commit(self) -> str:
        """The commit that HEAD is; "" on a branch without one."""
        return self.refs.get(self.branch, "") if self.branch else self.head


class FoundRepository(Struct, frozen=True, kw_only=True):
    """A state with the bytes behind it, by the name of each file."""

    state: RepositoryState
    files: Mapping[str, bytes]

    def objects(self) -> set[str]:
        """All that its references and files name; not all of it need be there."""
        named = {oid for oid in self.state.refs.values() if not oid.startswith("ref: ")}
        texts = [data for name, data in self.files.items() if name != INDEX]
        named |= {oid.decode() for text in texts for oid in _OID.findall(text)}
        return named | ({self.state.head} if not self.state.branch and self.state.head else set())


def marks_of(gitdir: str) -> str:
    """Equal ones promise that nothing has changed that counts; "" promises nothing."""
    names = [*_names(gitdir), "packed-refs", "config", *below(gitdir, "hooks")]
    names += (name for top in ("refs/heads", "refs/tags") for name in below(gitdir, top))
    stamps = [(name, _stamp(os.path.join(gitdir, name))) for name in sorted({*names, STASH})]
    newest = max((max(stamp[1:3]) for _, stamp in stamps if stamp), default=0)
    if newest >= time.time_ns() - RACY_NS:
        return ""
    return hashlib.sha256(repr(stamps).encode("utf-8", "surrogateescape")).hexdigest()


def read_repository(location: str, git: Git) -> FoundRepository:
    """Raises SnapshotFailedError if somebody's git is never at rest."""
    gitdir = git_folder(location)
    if why := why_not(gitdir):
        return _gone("" if not os.path.lexists(gitdir) else why)
    failures = 0
    for _ in range(_TRIES):
        before = _bytes_of(gitdir)
        if _HEADS.fullmatch(before.get(HEAD, b"").strip()) is None:
            return _gone("its HEAD names nothing")
        try:
            index = _index_hash(git, before)
        except GitUnansweredError:
            return _gone("git does not answer there")
        if _bytes_of(gitdir) == before and not _is_locked(gitdir, index):
            failures += index is None
            if index is not None or failures >= _FAILURES:
                return _found(before, index) if index is not None else _unread(git, before)
        time.sleep(_PAUSE_SECONDS)
    raise SnapshotFailedError(
        f"a git command works in {location} all the time",
        "wait until it is done, then repeat the command",
    )


def _is_locked(gitdir: str, index: str | None) -> bool:
    """Somebody is about to replace the index that git could not read."""
    return index is None and os.path.lexists(os.path.join(gitdir, INDEX_LOCK))


def _unread(git: Git, files: dict[str, bytes]) -> FoundRepository:
    """Nobody works on what git cannot read: then an index is its bytes, if that is all."""
    if git.run("rev-parse", "--git-dir", check=False).code != 0:
        return _gone("git cannot read it")
    return _found(files, f"{_UNREAD}{hashlib.sha256(files[INDEX]).hexdigest()}")


def is_unread(state: RepositoryState) -> bool:
    return state.index.startswith(_UNREAD)


def _gone(why: str) -> FoundRepository:
    return FoundRepository(state=RepositoryState(is_gone=True, why=why), files={})


def notable(gitdir: str) -> str:
    """A hash of settings and hooks: they are never brought back, and a change of them is told."""
    names = ["config", *below(gitdir, "hooks")]
    return hashlib.sha256(
        b"".join(os.fsencode(name) + b"\0" + (read_file(gitdir, name) or b"") for name in names)
    ).hexdigest()


def _bytes_of(gitdir: str) -> dict[str, bytes]:
    found = {name: read_file(gitdir, name) for name in _names(gitdir)} | {HEAD: head_of(gitdir)}
    refs = {_text(name): _text(value) for name, value in read_refs(gitdir).items() if _counts(name)}
    text = json.dumps(refs, sort_keys=True)
    return {**{n: data for n, data in found.items() if data is not None}, "refs": text.encode()}


def _names(gitdir: str) -> Iterator[str]:
    yield from (HEAD, INDEX, STASH_LOG, *_OPERATION_FILES)
    for folder in OPERATION_FOLDERS:
        # What git did not make there need not have a name that is text.
        yield from (name for name in below(gitdir, folder) if name.isprintable())


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def _counts(name: bytes) -> bool:
    return name.startswith(_COUNTED[:2]) or name == _COUNTED[2]


def _index_hash(git: Git, files: Mapping[str, bytes]) -> str | None:
    """None if git cannot read it, as it is being replaced."""
    if INDEX not in files:
        return ""
    listed = git.run("ls-files", "--stage", "-v", "-z", check=False)
    return hashlib.sha256(listed.stdout).hexdigest() if listed.code == 0 else None


def _found(files: dict[str, bytes], index: str) -> FoundRepository:
    operation = {
        name: hashlib.sha256(data).hexdigest()
        for name, data in files.items()
        if name in _OPERATION_FILES or name.startswith(OPERATION_FOLDERS)
    }
    log = files.get(STASH_LOG, b"")
    state = RepositoryState(
        head=_text(files[HEAD]).strip(),
        refs=json.loads(files["refs"]),
        index=index,
        operation=operation,
        stash_log=hashlib.sha256(log).hexdigest() if log else "",
    )
    return FoundRepository(state=state, files=files)


def _stamp(path: str) -> tuple[int, ...] | None:
    try:
        found = os.lstat(path)
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_ctime_ns, found.st_size
