"""The git side of a snapshot: HEAD, references, index, settings, operations in progress.

Of a repository that is worked on in place: `sandbox/in_place/git_state.py`.

Objects that only the sandbox's own repository has are stored with the snapshot, as packs: a step
may run a `git gc` there, or remove the repository altogether.
Reading, in its order: a fingerprint of the files' marks, which tells without git that nothing has
changed; files and references; what the index says; and if any of it differs, the ends that objects
are reached from, then the index, as git still notes something in it for those, then the packs.
Restoring, in its order: objects first (`prepare`), while nothing has changed yet; then locks and
planted links go, and references, index, files and the `.git` are written.
What is not guaranteed: that objects go back. What nothing names any more stays until git collects.
"""

import hashlib
import json
import os
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, TypedDict

from cleveragents.domain.errors import RestoreFailedError, SnapshotFailedError
from cleveragents.domain.resource import PlanResource
from cleveragents.infrastructure.files.durable_files import put_file, remove
from cleveragents.infrastructure.sandbox.git.command import OFFLINE, Git
from cleveragents.infrastructure.sandbox.git.repository.git_dir import GitFolder, StateFile, quoted
from cleveragents.infrastructure.sandbox.git.repository.own_place import (
    details_of,
    folder_of,
    new_git,
)
from cleveragents.infrastructure.sandbox.git.repository.packs import Packs, is_pack, places_in
from cleveragents.infrastructure.sandbox.git.repository.ref_files import (
    Refs,
    existing,
    objects_in,
    read_refs,
    refs_in,
    text_of,
    write_refs,
)
from cleveragents.infrastructure.sandbox.git.repository.tips import commit_of, tips_of_project
from cleveragents.infrastructure.sandbox.git.submodules.records import in_repository, submodules_of
from cleveragents.infrastructure.sandbox.git.submodules.state import Submodules, below
from cleveragents.infrastructure.sandbox.git.views import GitViews
from cleveragents.infrastructure.snapshots.tree.extra_state import Before, ExtraRecord, StoredSide

if TYPE_CHECKING:
    from cleveragents.infrastructure.snapshots.tree.first_look import Proof


class _Identity(TypedDict):
    """What counts as git state; `commit` is empty where HEAD is on a branch without one."""

    commit: str
    refs: str
    index: str
    files: dict[str, str]
    pointer: bool


# By the length of the name of an object.
_ALGORITHMS = {40: "sha1", 64: "sha256"}


def algorithm_of(oid: str) -> str:
    """By which the objects of a repository are named that has this one."""
    return _ALGORITHMS[len(oid)]


class GitBlobs:
    """Blobs of a repository that keeps them as long as there is a plan."""

    def __init__(self, git: Git, algorithm: str) -> None:
        self._git = git
        self.algorithm = algorithm

    def read(self, oids: Sequence[str]) -> Iterator[bytes | None]:
        request = "".join(f"{oid}\n" for oid in oids).encode("ascii")
        output = memoryview(self._git.run("cat-file", "--batch", "--buffer", input=request).stdout)
        position = 0
        for oid in oids:
            # "<oid> blob <size>\n<bytes>\n", or "<oid> missing\n"
            line = bytes(output[position : position + len(oid) + 40]).partition(b"\n")[0]
            position += len(line) + 1
            fields = line.split(b" ")
            if len(fields) != 3 or fields[1] != b"blob":
                yield None
                continue
            yield bytes(output[position : position + int(fields[2])])
            position += int(fields[2]) + 1


class GitState:
    """The side state of one sandbox of a git checkout."""

    def __init__(self, resource: PlanResource, views: GitViews) -> None:
        self._resource = resource
        self._views = views
        self._folder: GitFolder = folder_of(resource)
        self._project = Git(resource.location)
        self.blobs = GitBlobs(
            _with_submodules(self._project, resource), algorithm_of(resource.base)
        )
        # What the index of a sandbox says that has just been made: that it holds the base.
        self._new_index: bytes | None = None
        self._entries: Mapping[bytes, Proof] = {}

    def base(self) -> Mapping[bytes, str]:
        # Of the commit: only what that holds is kept for good. For the first snapshot of a sandbox
        # that was just made from it, that is what its index says, which is asked for in any case.
        if self._views.is_as_made(self._resource):
            self._new_index = self._list_new_index()
            listing, entries = self._new_index, self._entries
            known = _NewBlobs(entries) if entries else _blobs_in(listing)
        else:
            known = _blobs_of(self._project, self._resource.base)
        if not (modules := submodules_of(self._resource)):
            return known
        known = dict(known)
        for module in modules:
            git = in_repository(self._resource.location, module)
            known |= _blobs_of(git, module.commit, os.fsencode(module.path) + b"/")
        return known

    def expected(self) -> Collection[bytes]:
        return self._entries.keys()

    def proven(self, found: Collection[bytes]) -> Mapping[bytes, "Proof"]:  # noqa: ARG002 - all is ours
        """What git has just checked out, and nobody else has written."""
        settings = self._views.settings_of(self._resource)
        if not self._entries or settings is None:
            return {}
        from cleveragents.infrastructure.sandbox.git.proofs.conversions import (  # noqa: PLC0415 - of a new sandbox only
            proven_entries,
        )

        git_dir = details_of(self._resource).git_dir
        return proven_entries(new_git(self._resource), settings, git_dir, self._entries)

    def hidden(self) -> frozenset[bytes]:
        """The top `.git` is no content as long as it is the one that the sandbox was made with."""
        return frozenset({b".git"}) if self._folder.pointer_is_ours() else frozenset()

    def read(self, before: Before | None) -> ExtraRecord | None:
        fingerprint = self._folder.fingerprint(time.time_ns())
        if before and fingerprint and fingerprint == before.fingerprint:
            return None
        with self._views.of_state(self._resource) as git:
            files, refs = self._folder.files(), read_refs(self._folder.path)
            state = self._identity(files, refs, self._index_hash(git, before))
            identity = json.dumps(state, sort_keys=True)
            contents: dict[str, bytes] = {}
            inherited: Mapping[str, bytes] = before.stored.hashes if before else {}
            if before is None or identity != before.stored.identity:
                contents, inherited = self._contents(git, files, refs, before)
        return ExtraRecord(
            identity=identity,
            sandbox_ref=state["commit"],
            fingerprint=fingerprint,
            contents=contents,
            inherited=inherited,
        )

    def copied(self, of: StoredSide) -> ExtraRecord | None:
        """A branch at the same commit adds nothing that was not there: git need not be asked."""
        files, refs = self._folder.files(), read_refs(self._folder.path)
        there: _Identity = json.loads(of.identity)
        state = self._identity(files, refs, there["index"])
        added = refs.items() - refs_in(of.content("refs")).items()
        alike = (
            state["commit"] == there["commit"] != ""
            and {oid.decode("ascii", "replace") for _, oid in added} <= {state["commit"]}
            and _but_head(state) == _but_head(there)
            and self._has_index_of(of)
        )
        if not alike:
            return None
        contents = {_stored("HEAD"): files["HEAD"].data, "refs": text_of(refs)}
        return ExtraRecord(
            identity=json.dumps(state, sort_keys=True),
            sandbox_ref=state["commit"],
            fingerprint=self._folder.fingerprint(time.time_ns()),
            contents=contents,
            inherited={name: key for name, key in of.hashes.items() if name not in contents},
        )

    def stands(self, target: StoredSide, before: Before) -> bool:
        # Packs may have to be unpacked again: what only the sandbox names can be gone from git.
        if target.identity != before.stored.identity or any(map(is_pack, target.hashes)):
            return False
        fingerprint = self._folder.fingerprint(time.time_ns())
        return bool(fingerprint) and fingerprint == before.fingerprint and self._folder.is_tidy()

    def prepare(self, target: StoredSide) -> None:
        with self._views.of_state(self._resource) as git:
            inside = Submodules(self._resource, git)
            whole = Packs().put_back(git, self._base(), target)
            if not (whole and all(inside.put_back(place, target) for place in places_in(target))):
                why = "git objects of the snapshot are missing"
                raise RestoreFailedError(self._resource.name, why)

    def write(self, target: StoredSide) -> None:
        state: _Identity = json.loads(target.identity)
        files = _files_in(target, state["files"])
        try:
            self._folder.clear()
            write_refs(self._folder.path, refs_in(target.content("refs")), self._project)
            self._write_index(target)
            self._folder.write_files(files, places_in(target))
            if state["pointer"]:
                self._folder.write_pointer()
        except OSError as error:
            raise RestoreFailedError(self._resource.name, str(error)) from error

    def take_over(self, place: str, other: StoredSide) -> None:
        """Make the repository of one submodule what another sandbox of the family had."""
        with self._views.of_state(self._resource) as git:
            whole = Submodules(self._resource, git).put_back(place, other)
        if not whole:
            raise RestoreFailedError(self._resource.name, "git objects of the snapshot are missing")
        state: _Identity = json.loads(other.identity)
        names = [f"{place}/{name}" for name in below(place, state["files"])]
        files = _files_in(other, {name: state["files"][name] for name in names})
        try:
            self._folder.clear()
            self._folder.write_module(place, files)
        except OSError as error:
            raise RestoreFailedError(self._resource.name, str(error)) from error

    def _identity(self, files: Mapping[str, StateFile], refs: Refs, index: str) -> _Identity:
        return {
            "commit": commit_of(files, refs),
            "refs": hashlib.sha256(text_of(refs)).hexdigest(),
            "index": index,
            "files": {name: file.described() for name, file in sorted(files.items())},
            "pointer": self._folder.pointer_is_ours(),
        }

    def _index_hash(self, git: Git, before: Before | None) -> str:
        """Of what the index says, not of its bytes: those also change when git only looks."""
        if before and self._has_index_of(before.stored):
            known: _Identity = json.loads(before.stored.identity)
            return known["index"]
        listing = _listing(git) if self._new_index is None else self._new_index
        return hashlib.sha256(listing).hexdigest()

    def _list_new_index(self) -> bytes:
        """Mostly without git: no step can have written to it."""
        from cleveragents.infrastructure.sandbox.git.repository.new_index_reader import (  # noqa: PLC0415 - of a new sandbox only
            read_new_index,
        )

        data = self._folder.read("index") or b""
        known = read_new_index(data, len(self._resource.base) // 2)
        if known is not None:
            self._entries = known.entries
            return known.listing
        with self._views.of_state(self._resource) as git:
            return _listing(git)

    def _has_index_of(self, stored: StoredSide) -> bool:
        """Byte for byte. One that is split says only half of it."""
        if "index" not in stored.hashes or self._folder.has_split_index():
            return False
        return self._folder.read("index") == stored.content("index")

    def _contents(
        self, git: Git, files: Mapping[str, StateFile], refs: Refs, before: Before | None
    ) -> tuple[dict[str, bytes], dict[str, bytes]]:
        """What is to be stored, and the hashes of what is needed still and is stored already."""
        contents = {_stored(name): file.data for name, file in files.items()}
        contents["refs"] = text_of(refs)
        stored = before.stored if before else None
        first = Packs().first_refs(stored) if stored else None
        if self._new_index is not None:
            # All references were just copied, and there is nothing that the base does not hold.
            first, tips = text_of(refs), [self._resource.base]
        else:
            first = text_of(self._of_project(refs)) if first is None else first
            tips = tips_of_project(git, files, refs, refs_in(first))
        # Not earlier: for the tips, git notes in the index which trees it has.
        if (index := self._folder.read("index")) is not None:
            contents["index"] = index
        parts = [Packs().store(git, tips, self._base(), first, stored)]
        inside = Submodules(self._resource, git)
        parts += [inside.stored(place, files, stored) for place in self._folder.modules()]
        inherited: dict[str, bytes] = {}
        for part in parts:
            if part is None:
                raise SnapshotFailedError(
                    f"git could not pack the commits of `{self._resource.name}`",
                    "check the repository with `git fsck`",
                )
            contents |= part.contents
            inherited |= part.inherited
        return contents, inherited

    def _of_project(self, refs: Refs) -> dict[bytes, bytes]:
        """Those of which the user has the object; a parent plan may have made others."""
        theirs = set(existing(self._project.with_env(OFFLINE), objects_in(refs)))
        return {name: oid for name, oid in refs.items() if oid.decode("ascii", "replace") in theirs}

    def _base(self) -> list[str]:
        """What is kept alive for us, and need neither be stored nor looked through."""
        # The tree by itself too: of a commit alone, git leaves out only what its history leads to.
        return [self._resource.base, f"{self._resource.base}^{{tree}}"]

    def _write_index(self, target: StoredSide) -> None:
        if "index" in target.hashes:
            put_file(self._folder.path, "index", target.content("index"))
            return
        remove(self._folder.path, "index")


def _files_in(stored: StoredSide, described: Mapping[str, str]) -> dict[str, StateFile]:
    return {
        name: StateFile(mode=int(told.split()[0], 8), data=stored.content(_stored(name)))
        for name, told in described.items()
    }


def _listing(git: Git) -> bytes:
    return git.run("ls-files", "--stage", "-v", "-z").stdout


class _NewBlobs(Mapping[bytes, str]):
    """The files of an index that was just made, without links and submodules. Most of them are
    proven, and nobody asks for more than the rest."""

    def __init__(self, entries: Mapping[bytes, "Proof"]) -> None:
        self._entries = entries

    def __getitem__(self, path: bytes) -> str:
        entry = self._entries[path]
        if not entry.is_file:
            raise KeyError(path)
        return entry.oid.hex()

    def __iter__(self) -> Iterator[bytes]:
        return (path for path, entry in self._entries.items() if entry.is_file)

    def __len__(self) -> int:
        return sum(1 for _ in self)


def _blobs_in(listing: bytes) -> dict[bytes, str]:
    """The same as git lists it."""
    lines = (line.partition(b"\t") for line in listing.split(b"\0")[:-1])
    # "<flag> <mode> <object> <stage>"
    parts = ((told.decode("ascii").split(" "), path) for told, _, path in lines)
    return {path: oid for (_, mode, oid, _), path in parts if mode.startswith("100")}


def _blobs_of(git: Git, commit: str, prefix: bytes = b"") -> dict[bytes, str]:
    listing = git.run("ls-tree", "-r", "-z", "--full-tree", commit, check=False)
    known: dict[bytes, str] = {}
    for line in listing.stdout.split(b"\0")[:-1] if listing.code == 0 else ():
        described, _, path = line.partition(b"\t")
        mode, _, oid = described.decode("ascii").split(" ")
        if mode.startswith("100"):
            known[prefix + path] = oid
    return known


def _with_submodules(project: Git, resource: PlanResource) -> Git:
    """The user's repository, and what those of its submodules keep for the plan."""
    places = [m.repository(resource.location) for m in submodules_of(resource)]
    if not places:
        return project
    objects = ":".join(quoted(os.path.join(place, "objects")) for place in places)
    return project.with_env({"GIT_ALTERNATE_OBJECT_DIRECTORIES": objects})


def _but_head(state: _Identity) -> dict[str, str]:
    return {name: told for name, told in state["files"].items() if name != "HEAD"}


def _stored(name: str) -> str:
    """The name under which the store has a file; it takes no name that is not UTF-8."""
    return "file:" + os.fsencode(name).decode("latin-1")
