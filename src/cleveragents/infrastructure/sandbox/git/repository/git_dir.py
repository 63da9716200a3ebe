"""The folder of a sandbox's own repository as files: what of it is state, and where it lies.

The folder is beside the sandbox, never inside it, and is found by its name alone: what the
sandbox's `.git` says may have been altered by a step.
"""

import hashlib
import os
import re
import stat
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain

from msgspec import Struct

from cleveragents.infrastructure.files.durable_files import (
    below,
    kinds_below,
    kinds_in,
    link_target,
    make_folder,
    put_file,
    put_link,
    read_file,
    remove,
    status,
)
from cleveragents.infrastructure.files.entry import RACY_NS
from cleveragents.infrastructure.sandbox.git.submodules.checked_out import (
    Stamp,
    checked_out,
    stamp_of,
    stamps_of,
)

# What merges, picks, reverts, rebases and bisections leave between their commands.
_OPERATION_FILES = frozenset(
    {"MERGE_HEAD", "MERGE_MSG", "MERGE_MODE", "MERGE_AUTOSTASH", "AUTO_MERGE", "SQUASH_MSG"}
    | {"CHERRY_PICK_HEAD", "REVERT_HEAD", "REBASE_HEAD", "MERGE_RR"}
    | {"BISECT_LOG", "BISECT_NAMES", "BISECT_START", "BISECT_TERMS", "BISECT_EXPECTED_REV"}
)
_OPERATION_FOLDERS = ("rebase-merge", "rebase-apply", "sequencer")
_OWN_FILES = frozenset({"HEAD", "config", "config.worktree", "shallow"})
_OWN_FOLDERS = ("info", "hooks")
# Where git of ours would go through a link.
_FOLLOWED = ("refs", "logs", "objects")
_MODULE_FILES = ("index", "packed-refs", "ORIG_HEAD")
# Every stash but the newest is named in this log alone.
STASH_LOG = "logs/refs/stash"
_SPLIT_INDEX = "sharedindex."
# No resource has a dot in its name, so that this is never another resource's sandbox.
REPOSITORY = ".git"
# The index as the checkout of the sandbox wrote it, where no step can write.
FIRST_INDEX = ".index"
_HEAD = rb"(ref: [^\0\n]+|[0-9a-f]{40,64})\n?"
_INDEX = b"DIRC"
_ESCAPES = {b"\\": b"\\\\", b'"': b'\\"', b"\n": b"\\n"}


class StateFile(Struct, frozen=True, kw_only=True):
    """A file that is written back as it was: its bytes, or where it leads to if it is a link."""

    mode: int
    data: bytes

    def described(self) -> str:
        return f"{self.mode:o} {hashlib.sha256(self.data).hexdigest()}"


class GitFolder(Struct, frozen=True):
    """`elsewhere` is where the repository of a submodule is; others are beside their files."""

    sandbox: str
    elsewhere: str = ""

    @property
    def path(self) -> str:
        return self.elsewhere or self.sandbox + REPOSITORY

    def file(self, name: str) -> str:
        return os.path.join(self.path, name)

    def read(self, name: str) -> bytes | None:
        return read_file(self.path, name)

    def make(self, objects: str) -> None:
        """The least that git needs; all other objects are those of the folder `objects`."""
        make_folder(self.path, "objects/info")
        make_folder(self.path, "objects/pack")
        make_folder(self.path, "refs/heads")
        borrowed = os.fsencode(quoted(objects) if "\n" in objects else objects) + b"\n"
        if self.read("objects/info/alternates") != borrowed:
            put_file(self.path, "objects/info/alternates", borrowed)

    def looks_whole(self) -> bool:
        """HEAD says something, the index begins as one does, and no file is empty that never is:
        what a power cut or a program that went astray leaves. Nothing is proven by it."""
        index = self.read("index")
        return (
            re.fullmatch(_HEAD, self.read("HEAD") or b"") is not None
            and (index is None or index.startswith(_INDEX))
            and not any(self._is_empty(name) for name in self._never_empty())
        )

    def _never_empty(self) -> Iterator[str]:
        yield "config"
        yield from (n for n in below(self.path, "objects") if not n.startswith("objects/info/"))
        yield from below(self.path, "refs")

    def _is_empty(self, name: str) -> bool:
        found = status(self.path, name)
        return found is not None and stat.S_ISREG(found.st_mode) and not found.st_size

    def borrowed(self) -> str | None:
        """The folder of objects that `make` was given; None if there is no repository."""
        named = self.read("objects/info/alternates")
        return None if named is None else _unquoted(named.removesuffix(b"\n"))

    def as_work_tree(self) -> dict[str, str]:
        """The sandbox with its own index and objects, for git over another repository."""
        return {
            "GIT_WORK_TREE": self.sandbox,
            "GIT_INDEX_FILE": self.file("index"),
            "GIT_OBJECT_DIRECTORY": self.file("objects"),
        }

    # --- the pointer in the sandbox -------------------------------------------------------------

    def pointer_is_ours(self) -> bool:
        """A missing one counts: it is put back, and there is nothing else to see."""
        there = os.path.lexists(os.path.join(self.sandbox, ".git"))
        return not there or read_file(self.sandbox, ".git") == self._pointer()

    def write_pointer(self, *, synced: bool = True) -> None:
        if read_file(self.sandbox, ".git") != self._pointer():
            put_file(self.sandbox, ".git", self._pointer(), synced=synced)

    def _pointer(self) -> bytes:
        # Relative: it holds wherever the two are, and whatever characters the way there has.
        return b"gitdir: " + os.fsencode(os.path.relpath(self.path, self.sandbox)) + b"\n"

    # --- what is state --------------------------------------------------------------------------

    def fingerprint(self, now_ns: int) -> str:
        """Equal ones promise that nothing of the state has changed; "" promises nothing."""
        names = [*self._own_names(""), "index", "packed-refs", *below(self.path, "refs")]
        stamps = [(name, _stamp(self.file(name))) for name in names]
        for place in self.modules():
            stamps += sorted(stamps_of(self.file(place)))
        if any(stamp and max(stamp[1:3]) >= now_ns - RACY_NS for _, stamp in stamps):
            return ""
        parts = (stamps, self.pointer_is_ours())
        return hashlib.sha256(repr(parts).encode("utf-8", "surrogateescape")).hexdigest()

    def files(self) -> dict[str, StateFile]:
        """HEAD, settings, hooks, what an operation in progress has left, and submodules' state."""
        found = ((name, self._state_file(name)) for name in self._names())
        return {name: file for name, file in found if file is not None}

    def write_files(self, wanted: Mapping[str, StateFile], places: Sequence[str] = ()) -> None:
        """`places` are those of submodules among them."""
        present = self.files()
        inside = (name for place in places for name in self._names_inside(place))
        for name in {*self._names(), *inside} - wanted.keys():
            remove(self.path, name)
        for name, file in wanted.items():
            if present.get(name) != file:
                self._write(name, file)
        for place in ("", *places):
            for folder in (os.path.join(place, name) for name in _OPERATION_FOLDERS):
                if not any(path.startswith(folder + "/") for path in wanted):
                    remove(self.path, folder)

    def write_module(self, place: str, wanted: Mapping[str, StateFile]) -> None:
        """Only the repository of the submodule at this place."""
        make_folder(self.path, place)
        for name in set(self._names_inside(place)) - wanted.keys():
            remove(self.path, name)
        for name, file in wanted.items():
            self._write(name, file)

    def has_split_index(self) -> bool:
        return any(name.startswith(_SPLIT_INDEX) for name, _ in kinds_in(self.path))

    def is_tidy(self) -> bool:
        """True if there is nothing to clear away and no pointer to put back."""
        pointer = os.path.lexists(os.path.join(self.sandbox, ".git"))
        return pointer and not any(self._in_the_way())

    def clear(self) -> None:
        """Remove locks, which nobody can hold while we work, and links that lead elsewhere.

        git would write through them, and read for ever from a pipe.
        """
        for name in list(self._in_the_way()):
            remove(self.path, name)

    def _in_the_way(self) -> Iterator[str]:
        for place in ("", *self.modules()):
            here = kinds_in(self.path, place or ".")
            followed = (kinds_below(self.path, os.path.join(place, name)) for name in _FOLLOWED)
            direct = ((os.path.join(place, name), is_plain) for name, is_plain in here)
            for name, is_plain in chain(direct, *followed):
                if name.endswith(".lock") or not is_plain:
                    yield name

    def modules(self) -> list[str]:
        """Where the submodules that are checked out have their repositories, outer ones first."""
        return sorted(checked_out(self.path))

    def _names(self) -> Iterator[str]:
        yield from self._own_names("")
        for place in self.modules():
            yield from self._names_inside(place)

    def _own_names(self, place: str) -> Iterator[str]:
        """The state of one repository but for its index and references."""
        for name, _ in kinds_in(self.path, place or "."):
            if name in _OPERATION_FILES | _OWN_FILES or name.startswith(_SPLIT_INDEX):
                yield os.path.join(place, name)
        for folder in (*_OPERATION_FOLDERS, *_OWN_FOLDERS):
            yield from below(self.path, os.path.join(place, folder))
        if status(self.path, os.path.join(place, STASH_LOG)) is not None:
            yield os.path.join(place, STASH_LOG)

    def _names_inside(self, place: str) -> Iterator[str]:
        """Of a submodule index and references too: they are files like others."""
        yield from self._own_names(place)
        further = (f"{place}/{name}" for name in _MODULE_FILES)
        yield from (name for name in further if status(self.path, name) is not None)
        yield from below(self.path, f"{place}/refs")

    def _state_file(self, name: str) -> StateFile | None:
        found = status(self.path, name)
        if found is None:
            return None
        if stat.S_ISLNK(found.st_mode) and "/" in name:
            return StateFile(mode=stat.S_IFLNK, data=link_target(self.path, name))
        data = self.read(name)
        return None if data is None else StateFile(mode=stat.S_IMODE(found.st_mode), data=data)

    def _write(self, name: str, file: StateFile) -> None:
        if file.mode == stat.S_IFLNK:
            put_link(self.path, name, file.data)
        else:
            put_file(self.path, name, file.data, file.mode)


def quoted(path: str) -> str:
    """As git reads it in a list: in quotes, neither a line end nor a colon is the end of it.

    Only where it has to be: a clone of a sandbox copies such a line without understanding it.
    """
    if not re.search(r'^["#]|[\n:]', path):
        return path
    plain = re.sub(rb'[\\"\n]', lambda found: _ESCAPES[found[0]], os.fsencode(path))
    return os.fsdecode(b'"' + plain + b'"')


def _unquoted(text: bytes) -> str:
    if not text.startswith(b'"'):
        return os.fsdecode(text)
    plain = {escaped: byte for byte, escaped in _ESCAPES.items()}
    return os.fsdecode(re.sub(rb"\\(.)", lambda found: plain.get(found[0], found[1]), text[1:-1]))


def _stamp(path: str) -> Stamp | None:
    try:
        return stamp_of(os.lstat(path))
    except OSError:
        return None
