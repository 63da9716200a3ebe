"""Owns the files of a worktree's git folder that git has no command to save or to restore."""

import hashlib
import json
import os
import shutil
import stat
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass

from cleveragents.infrastructure.sandbox.git_modules import module_states
from cleveragents.infrastructure.snapshots.entry import RACY_NS

_POINTER = "gitdir: "
# What merges, picks, reverts, rebases and bisections leave between their commands.
_OPERATION_FILES = frozenset(
    {"MERGE_HEAD", "MERGE_MSG", "MERGE_MODE", "MERGE_AUTOSTASH", "AUTO_MERGE", "SQUASH_MSG"}
    | {"CHERRY_PICK_HEAD", "REVERT_HEAD", "REBASE_HEAD", "MERGE_RR"}
    | {"BISECT_LOG", "BISECT_NAMES", "BISECT_START", "BISECT_TERMS", "BISECT_EXPECTED_REV"}
)
_LOCKS = ("index.lock", "HEAD.lock")
_OPERATION_FOLDERS = frozenset({"rebase-merge", "rebase-apply", "sequencer"})


@dataclass(frozen=True, slots=True, kw_only=True)
class GitFolder:
    """`pointer` is the text of the sandbox's `.git` file; None if `.git` is the folder itself."""

    sandbox: str
    gitdir: str
    pointer: str | None
    own_ref: str = ""

    @classmethod
    def found(cls, sandbox: str) -> "GitFolder":
        """By the `.git` in the sandbox. Raises OSError."""
        place = _join(sandbox, ".git")
        if stat.S_ISDIR(os.lstat(place).st_mode):
            return cls(sandbox=sandbox, gitdir=place, pointer=None)
        pointer = os.fsdecode(_read(place) or b"")
        if not pointer.startswith(_POINTER):
            raise NotADirectoryError(f"{place} names no git folder")
        named = pointer.removeprefix(_POINTER).removesuffix("\n")
        return cls(sandbox=sandbox, gitdir=_join(sandbox, named), pointer=pointer)

    @classmethod
    def remembered(cls, sandbox: str, memory: str) -> "GitFolder":
        gitdir, pointer, own_ref = json.loads(memory)
        return cls(sandbox=sandbox, gitdir=gitdir, pointer=pointer, own_ref=own_ref)

    def memory(self, own_ref: str) -> str:
        return json.dumps([self.gitdir, self.pointer, own_ref])

    def path(self, name: str) -> str:
        return _join(self.gitdir, name)

    def read(self, name: str) -> bytes | None:
        return _read(self.path(name))

    def pointer_is_ours(self) -> bool:
        """A missing one counts: it is put back, and there is nothing else to see."""
        if self.pointer is None:
            return True
        place = _join(self.sandbox, ".git")
        try:
            is_file = stat.S_ISREG(os.lstat(place).st_mode)
        except FileNotFoundError:
            return True
        return is_file and _read(place) == os.fsencode(self.pointer)

    def write_pointer(self) -> None:
        if self.pointer is None or _read(_join(self.sandbox, ".git")) == os.fsencode(self.pointer):
            return
        write_file(_join(self.sandbox, ".git"), os.fsencode(self.pointer), mode=0o644)

    def fingerprint(self, now_ns: int) -> str:
        """Equal ones promise that HEAD, branch, index and operation are the same; "" nothing."""
        common = self._common()
        head = self.read("HEAD") or b""
        stats = [_stamp(self.path("index")), _stamp(_join(common, "packed-refs"))]
        if any(stamp and max(stamp[1:3]) >= now_ns - RACY_NS for stamp in stats):
            return ""
        ref = os.fsdecode(head.removeprefix(b"ref: ").rstrip(b"\n"))
        loose = _read(_join(common, ref)) if head.startswith(b"ref: refs/") else b""
        tables = [_read(_join(top, "reftable/tables.list")) for top in (self.gitdir, common)]
        operation = sorted(self.operation().items())
        parts = (head, stats, loose, tables, operation, self.pointer_is_ours())
        return hashlib.sha256(repr(parts).encode()).hexdigest()

    def operation(self) -> dict[str, bytes]:
        """The files of an operation in progress, the shared part of a split index, and the state
        of submodules."""
        found: dict[str, bytes] = {}
        for name in self._operation_paths():
            data = self.read(name)
            if data is not None:
                found[name] = data
        return found

    def write_operation(self, wanted: Mapping[str, bytes]) -> None:
        for name in self.operation().keys() - wanted.keys():
            with suppress(FileNotFoundError):
                os.unlink(self.path(name))
        for name, data in wanted.items():
            os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
            write_file(self.path(name), data, mode=0o644)
        for name in _OPERATION_FOLDERS:
            if not any(path.startswith(name + "/") for path in wanted):
                shutil.rmtree(self.path(name), ignore_errors=True)

    def is_tidy(self) -> bool:
        """True if there is no lock to remove and no pointer to put back."""
        if any(os.path.lexists(self.path(name)) for name in _LOCKS):
            return False
        return self.pointer is None or os.path.lexists(_join(self.sandbox, ".git"))

    def remove_locks(self) -> None:
        """Only those of this worktree: nobody else works in it while a plan is locked by us."""
        for name in _LOCKS:
            with suppress(FileNotFoundError):
                os.unlink(self.path(name))

    def _common(self) -> str:
        named = self.read("commondir")
        return _join(self.gitdir, os.fsdecode(named).removesuffix("\n")) if named else self.gitdir

    def _operation_paths(self) -> Iterator[str]:
        for name in os.listdir(self.gitdir):
            if name in _OPERATION_FILES or name.startswith("sharedindex."):
                yield name
            elif name in _OPERATION_FOLDERS:
                yield from self._below(name)
            elif name == "modules":
                yield from module_states(self.gitdir, _OPERATION_FILES)

    def _below(self, folder: str) -> Iterator[str]:
        for top, _, names in os.walk(self.path(folder)):
            for name in names:
                yield os.path.relpath(_join(top, name), self.gitdir)


def write_file(path: str, data: bytes, mode: int = 0o600) -> None:
    """Replace the whole file in one step that survives a crash."""
    folder = os.path.dirname(path)
    temporary = path + ".cleveragents-tmp"
    with suppress(FileNotFoundError):
        os.unlink(temporary)
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    with os.fdopen(fd, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(fd)
    os.replace(temporary, path)
    folder_fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(folder_fd)
    finally:
        os.close(folder_fd)


def _join(one: str, two: str) -> str:
    return os.path.join(one, two)


def _read(path: str) -> bytes | None:
    try:
        with open(path, "rb") as file:
            return file.read()
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
        return None


def _stamp(path: str) -> tuple[int, int, int, int] | None:
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return None
    return found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino
